//! The folder in which the parts of an agent's runs have theirs.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A folder that is one agent's own for as long as this lives.
#[derive(Debug)]
pub(super) struct PartsFolder {
    _lock: File,
}

impl PartsFolder {
    /// Makes it, or removes the parts that an earlier agent has left there.
    ///
    /// # Errors
    /// If another agent has it; and if anything else is there, which may be precious: then nothing
    /// is removed.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Results and sockets of runs are private to the owner, whatever the umask.
        DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))?;
        let lock = File::open(path)?;
        // Not every file system can lock a folder.
        if let Err(Errno::WOULDBLOCK) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            return Err(io::Error::other("another agent has it"));
        }
        let entries: Vec<fs::DirEntry> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
        if let Some(other) = entries.iter().find(|entry| !is_part(&entry.file_name())) {
            let name = other.file_name();
            let why = format!("{} is there, which is not a part of a run", name.display());
            return Err(io::Error::other(why));
        }
        entries.iter().try_for_each(|part| fs::remove_dir_all(part.path()))?;
        Ok(PartsFolder { _lock: lock })
    }
}

const OWNER_ONLY: u32 = 0o700;

/// Whether a part of a run has a folder of that name: the run's number.
fn is_part(name: &OsStr) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.to_str().is_some_and(|text| text.len() == 16 && digits(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_earlier_agent_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("new/parts");
        drop(PartsFolder::open(&parts).unwrap());
        fs::create_dir_all(parts.join("9f2c41d07ab35e18/nodes/a")).unwrap();
        PartsFolder::open(&parts).unwrap();
        assert_eq!(fs::read_dir(&parts).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_with_anything_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("9f2c41d07ab35e18");
        fs::create_dir(&part).unwrap();
        fs::write(folder.path().join("thesis.tex"), "precious").unwrap();
        let error = PartsFolder::open(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "thesis.tex is there, which is not a part of a run");
        assert!(part.exists() && folder.path().join("thesis.tex").exists());
    }

    #[test]
    fn only_the_owner_can_look_into_a_folder_and_those_made_for_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("state/parts");
        fs::create_dir(root.path().join("open")).unwrap();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(root.path().join("open"), open).unwrap();
        for folder in [&path, &root.path().join("open")] {
            PartsFolder::open(folder).unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(folder), 0o700);
        }
        let made = fs::metadata(root.path().join("state")).unwrap().permissions().mode();
        assert_eq!(made & 0o777, 0o700);
    }

    #[test]
    fn two_agents_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = PartsFolder::open(folder.path()).unwrap();
        let error = PartsFolder::open(folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "another agent has it");
        drop(first);
        PartsFolder::open(folder.path()).unwrap();
    }
}
