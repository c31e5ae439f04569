//! A folder with what programs load, which goes with the process that has made it: at its end, or, where
//! it was killed, with the next such folder of the same user.
//!
//! A lock says that the process lives (flock(2)): the kernel gives it back whatever ends it. The folder
//! gets its name when the lock is there.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, StatVfsMountFlags, flock};
use windtunnel_sys::process::{self, Pid};

/// The folder, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl OwnFolder {
    /// In the first of the usual places from which programs can load a library: the user's alone.
    /// What killed processes have left there is removed.
    pub(crate) fn make() -> io::Result<OwnFolder> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "no folder may hold a library");
        for parent in places().filter(|place| may_hold_library(place)) {
            sweep(&parent);
            match OwnFolder::make_in(&parent) {
                Ok(folder) => return Ok(folder),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn make_in(parent: &Path) -> io::Result<OwnFolder> {
        let name = format!("{PREFIX}{}-{:x}", process::current().as_raw_nonzero(), random());
        let (path, aside) = (parent.join(&name), parent.join(format!(".{name}")));
        DirBuilder::new().mode(0o700).create(&aside)?;
        let made = File::open(&aside).and_then(|lock| {
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            fs::rename(&aside, &path)?;
            Ok(lock)
        });
        match made {
            Ok(lock) => Ok(OwnFolder { path, _lock: lock }),
            Err(error) => {
                let _ = fs::remove_dir(&aside);
                Err(error)
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed is a few kilobytes.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what killed processes of this user have left in all places.
pub(crate) fn sweep_all() {
    places().for_each(|place| sweep(&place));
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        let is_left = process.is_some_and(|process| {
            process::test_kill(process)
                .is_err_and(|error| error.raw_os_error() == Some(ERRNO_ESRCH))
        });
        if is_left && is_own(&entry.path()) {
            let path = entry.path();
            // One that lives where processes have other numbers has the lock.
            let lock = File::open(&path).and_then(|lock| {
                flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                Ok(lock)
            });
            if lock.is_ok() {
                // Another process may have removed it meanwhile.
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

/// The process that has made a folder of this name.
fn process_of(name: &str) -> Option<Pid> {
    let (number, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    u64::from_str_radix(rest, 16).ok()?;
    Pid::from_raw(number.parse().ok()?)
}

fn is_own(path: &Path) -> bool {
    let uid = process::current_user().uid;
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && about.uid() == uid)
}

fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    [Some(std::env::temp_dir()), runtime, Some("/dev/shm".into())].into_iter().flatten()
}

/// Whether programs may be executed from there, and ld.so(8) can name it.
fn may_hold_library(folder: &Path) -> bool {
    let is_named = folder.is_absolute() && !folder.as_os_str().as_bytes().contains(&b':');
    let is_named = is_named && !folder.as_os_str().as_bytes().contains(&b' ');
    let about = rustix::fs::statvfs(folder);
    is_named && about.is_ok_and(|about| !about.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

const PREFIX: &str = "windtunnel-record-";
/// "No such process", of errno(3).
const ERRNO_ESRCH: i32 = 3;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The number of a process that has ended.
    fn ended() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn what_a_killed_process_has_left_goes_with_the_next_and_nothing_else_does() {
        let parent = tempfile::tempdir().unwrap();
        let name = |number: u32| parent.path().join(format!("{PREFIX}{number}-1f"));
        let (left, of_living, locked) = (name(ended()), name(std::process::id()), name(ended()));
        let strange = [format!("{PREFIX}{}", ended()), format!("{PREFIX}x-1f"), "thesis".into()];
        let kept: Vec<PathBuf> = strange.iter().map(|name| parent.path().join(name)).collect();
        for folder in kept.iter().chain([&left, &of_living, &locked]) {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("libwindtunnel.so"), "library").unwrap();
        }
        let link = parent.path().join(format!("{PREFIX}{}-2f", ended()));
        symlink(&kept[2], &link).unwrap();
        // As one has it whose process has another number elsewhere.
        let lock = File::open(&locked).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let made = OwnFolder::make_in(parent.path()).unwrap();
        sweep(parent.path());
        assert!(!left.exists());
        for path in kept.iter().chain([&of_living, &locked, &link]) {
            assert!(path.exists(), "{}", path.display());
        }
        assert!(made.path().exists() && kept[2].join("libwindtunnel.so").exists());
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }

    #[test]
    fn folders_that_a_list_of_libraries_cannot_name_are_not_taken() {
        assert!(!may_hold_library(Path::new("/no such folder")));
        assert!(!may_hold_library(Path::new("relative")));
        assert!(!may_hold_library(Path::new("/a:b")));
    }
}
