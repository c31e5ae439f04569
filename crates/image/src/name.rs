//! Names of a layer's entries, and what they mean. Source: OCI Image Specification, layer.md,
//! "Whiteouts".

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What a name asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LayerEntryAction {
    /// Something with this path; without parts it is the root itself.
    Entry(Vec<OsString>),
    /// That what lower layers have at this path is gone.
    Whiteout(Vec<OsString>),
    /// That what lower layers have in this folder is gone.
    Opaque(Vec<OsString>),
    /// Nothing: a file of another union file system's own.
    Nothing,
}

/// The path below the root that the name of an entry means.
///
/// # Errors
/// Why the name may not be one: it leads out of the layer, or is none.
pub(crate) fn parts(name: &[u8]) -> Result<Vec<OsString>, &'static str> {
    if name.starts_with(b"/") {
        return Err("is an absolute path");
    }
    if name.contains(&0) {
        return Err("holds a NUL byte");
    }
    let parts = name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let parts: Vec<OsString> = parts.map(|part| OsStr::from_bytes(part).to_owned()).collect();
    if parts.iter().any(|part| part == "..") {
        return Err("leads out of its folder by `..`");
    }
    if name.len() > PATH_BYTES_MAX || parts.iter().any(|part| part.len() > NAME_BYTES_MAX) {
        return Err("is longer than a path may be");
    }
    Ok(parts)
}

/// What an entry asks for.
pub(crate) fn asked(mut parts: Vec<OsString>) -> Result<LayerEntryAction, &'static str> {
    let Some(last) = parts.last().cloned() else { return Ok(LayerEntryAction::Entry(parts)) };
    let Some(hidden) = last.as_bytes().strip_prefix(WHITEOUT) else {
        return Ok(LayerEntryAction::Entry(parts));
    };
    parts.pop();
    if hidden == OPAQUE {
        return Ok(LayerEntryAction::Opaque(parts));
    }
    if hidden.starts_with(WHITEOUT) {
        return Ok(LayerEntryAction::Nothing);
    }
    if hidden.is_empty() || hidden == b"." || hidden == b".." {
        return Err("is a whiteout of nothing");
    }
    parts.push(OsStr::from_bytes(hidden).to_owned());
    Ok(LayerEntryAction::Whiteout(parts))
}

const WHITEOUT: &[u8] = b".wh.";
/// Behind the first `.wh.`.
const OPAQUE: &[u8] = b".wh..opq";
/// `PATH_MAX` and `NAME_MAX` of Linux's limits.h.
const PATH_BYTES_MAX: usize = 4095;
const NAME_BYTES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Result<LayerEntryAction, &'static str> {
        parts(name.as_bytes()).and_then(asked)
    }

    fn path(text: &str) -> Vec<OsString> {
        text.split('/').filter(|part| !part.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn names_are_paths_below_the_root() {
        assert_eq!(read("./etc//passwd/"), Ok(LayerEntryAction::Entry(path("etc/passwd"))));
        assert_eq!(read("./"), Ok(LayerEntryAction::Entry(Vec::new())));
        assert_eq!(read("a/..b/...c"), Ok(LayerEntryAction::Entry(path("a/..b/...c"))));
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        for name in ["../x", "a/../../x", "a/..", "/etc/passwd", "a\0b"] {
            assert!(read(name).is_err(), "{name}");
        }
        assert!(parts(&[b'a'; 256]).is_err());
        assert!(parts("a/".repeat(3000).as_bytes()).is_err());
    }

    #[test]
    fn whiteouts_hide_what_is_behind_their_prefix() {
        assert_eq!(read("a/.wh.b"), Ok(LayerEntryAction::Whiteout(path("a/b"))));
        assert_eq!(read("a/.wh..wh..opq"), Ok(LayerEntryAction::Opaque(path("a"))));
        assert_eq!(read(".wh..wh.plnk"), Ok(LayerEntryAction::Nothing));
        for name in ["a/.wh.", "a/.wh..", "a/.wh..."] {
            assert!(read(name).is_err(), "{name}");
        }
    }
}
