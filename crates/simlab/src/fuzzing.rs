//! Fuzzers' inputs that are kept as files, replayed and damaged by plain tests.
//!
//! Files are read in the order of their names, so that a test meets them in the same order on every
//! machine. The meaning of the bytes is not used here.
//!
//! ```
//! // Everything that is a byte away from a good input, and all of its beginnings.
//! use windtunnel_simlab::fuzzing::damage;
//! damage(b"good", 160, |byte| [0x00, 0xff, byte ^ 0x10], |bytes| assert_ne!(bytes, b"good"));
//! ```

pub mod json;

use std::fs;
use std::path::{Path, PathBuf};

/// All files of some folders of a crate, in the order of their paths.
///
/// # Panics
/// If a folder or a file cannot be read.
#[must_use]
pub fn files(root: impl AsRef<Path>, folders: &[&str]) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let folder = root.as_ref().join(folder);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| fail("list", &folder, &error));
        paths.extend(entries.map(|entry| match entry {
            Ok(entry) => entry.path(),
            Err(error) => fail("list", &folder, &error),
        }));
    }
    paths.sort();
    let read = |path: &PathBuf| fs::read(path).unwrap_or_else(|error| fail("read", path, &error));
    paths.iter().map(read).collect()
}

/// Gives every file of the folder `corpus` of a crate to `entry`.
///
/// # Panics
/// As `entry` does; if there are fewer than `least` files, or one cannot be read.
pub fn replay(root: impl AsRef<Path>, least: usize, entry: impl Fn(&[u8])) {
    let files = files(root, &["corpus"]);
    files.iter().for_each(|bytes| entry(bytes));
    assert!(files.len() >= least, "{} files", files.len());
}

/// The same, where the corpus began with `seeds`, by name. With `write` in the environment variable
/// `switch` their files are made again, as after a change of the format.
///
/// # Panics
/// As [`replay`], if there are fewer files than seeds; and if one cannot be written.
pub fn replay_seeds<N: AsRef<Path>>(
    root: impl AsRef<Path>,
    switch: &str,
    seeds: &[(N, Vec<u8>)],
    entry: impl Fn(&[u8]),
) {
    if std::env::var(switch).is_ok_and(|value| value == "write") {
        write(&root, seeds);
    }
    replay(root, seeds.len(), entry);
}

/// Gives `entry` each beginning of `bytes` that is shorter than `end`, and after each of them
/// `bytes` with the byte at its end replaced by each of those that `wrong` has for it.
///
/// # Panics
/// As `entry` does.
pub fn damage<const N: usize>(
    bytes: &[u8],
    end: usize,
    wrong: impl Fn(u8) -> [u8; N],
    entry: impl Fn(&[u8]),
) {
    for at in 0..bytes.len().min(end) {
        entry(&bytes[..at]);
        for value in wrong(bytes[at]) {
            let mut changed = bytes.to_vec();
            changed[at] = value;
            entry(&changed);
        }
    }
}

fn write<N: AsRef<Path>>(root: impl AsRef<Path>, seeds: &[(N, Vec<u8>)]) {
    for (name, bytes) in seeds {
        let path = root.as_ref().join("corpus").join(name);
        fs::write(&path, bytes).unwrap_or_else(|error| fail("write", &path, &error));
    }
}

fn fail(action: &str, path: &Path, error: &std::io::Error) -> ! {
    panic!("cannot {action} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A crate with an empty corpus, gone after the test.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let name = format!("windtunnel-fuzzing-{name}-{}", std::process::id());
            let root = Root(std::env::temp_dir().join(name));
            fs::create_dir_all(root.0.join("corpus")).unwrap();
            root
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn seeds() -> [(&'static str, Vec<u8>); 3] {
        [("c", vec![3]), ("a", vec![1]), ("b", Vec::new())]
    }

    #[test]
    fn written_inputs_are_replayed_in_the_order_of_names() {
        let root = Root::new("order");
        write(&root.0, &seeds());
        let seen = RefCell::new(Vec::new());
        replay_seeds(&root.0, "WINDTUNNEL_NO_SUCH_CORPUS", &seeds(), |bytes| {
            seen.borrow_mut().push(bytes.to_vec());
        });
        assert_eq!(seen.into_inner(), [vec![1], vec![], vec![3]]);
        assert_eq!(files(&root.0, &["corpus", "corpus"]).len(), 6);
    }

    #[test]
    #[should_panic(expected = "2 files")]
    fn a_missing_file_of_a_seed_is_noticed() {
        let root = Root::new("missing");
        write(&root.0, &seeds()[1..]);
        replay_seeds(&root.0, "WINDTUNNEL_NO_SUCH_CORPUS", &seeds(), |_| {});
    }

    #[test]
    #[should_panic(expected = "/corpus: ")]
    fn a_folder_that_is_missing_is_named() {
        replay("/nonexistent", 0, |_| {});
    }

    #[test]
    fn damage_is_every_beginning_and_every_wrong_byte_up_to_the_end() {
        let seen = RefCell::new(Vec::new());
        damage(b"abc", 2, |byte| [0, byte ^ 1], |bytes| seen.borrow_mut().push(bytes.to_vec()));
        let all: [&[u8]; 6] = [b"", b"\0bc", b"`bc", b"a", b"a\0c", b"acc"];
        assert_eq!(seen.into_inner(), all);
    }
}
