//! Paths of files of a run, whose names come from another machine.

/// Whether a path is one of a file below a folder, in its plain form: no `..`, no `.`, not
/// absolute, nothing empty, no NUL, and not longer than the kernel takes.
pub(crate) fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name != "." && name != ".." && name.len() <= NAME_BYTES_MAX
    };
    path.len() <= PATH_BYTES_MAX && !path.contains('\0') && path.split('/').all(is_name)
}

/// The longest name and path (path_resolution(7)).
pub(crate) const NAME_BYTES_MAX: usize = 255;
pub(crate) const PATH_BYTES_MAX: usize = 4095;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_names_of_files() {
        for plain in ["part.json", "nodes/a/stdout", "nodes/a/..x", "nodes/a/x y"] {
            assert!(is_plain(plain), "{plain}");
        }
        let long = format!("nodes/{}", "x".repeat(256));
        let deep = "x/".repeat(4096) + "x";
        let outside = ["", "/etc/passwd", "../y", "nodes/../../y", "a//b", "./a", "a/", "a\0b"];
        for outside in outside.into_iter().chain([long.as_str(), &deep]) {
            assert!(!is_plain(outside), "{outside}");
        }
    }
}
