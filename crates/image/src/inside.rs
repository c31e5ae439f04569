//! Paths below a folder that no link leads out of: the kernel resolves them as if the folder was the
//! root, openat2(2) with `RESOLVE_IN_ROOT`. What is made is made by its last name in a folder that is
//! open, so that nothing can be exchanged between the look and the call.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A folder that counts as the root.
#[derive(Debug)]
pub struct ConfinedRootFolder {
    root: OwnedFd,
}

/// What something is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesystemEntryKind {
    File,
    Folder,
}

impl ConfinedRootFolder {
    /// Opens the folder.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(root: &Path) -> io::Result<ConfinedRootFolder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(ConfinedRootFolder { root: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// What is at the path below the root, by a descriptor that can be used as a place only
    /// (`O_PATH`); links are followed, and lead nowhere else than below the root.
    ///
    /// # Errors
    /// As openat2(2); `ENOSYS` before Linux 5.6.
    pub fn find(&self, path: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        Ok(self.resolve(path.as_ref(), OFlags::PATH, NO_MORE)?)
    }

    /// Opens a file for reading; a link at its end is followed.
    ///
    /// # Errors
    /// As openat2(2).
    pub fn read(&self, path: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
        Ok(self.resolve(
            path.as_ref(),
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            NO_MORE,
        )?)
    }

    /// What is at the path, made with the folders above it if nothing is there. A link at the end that
    /// leads nowhere is taken away before.
    ///
    /// # Errors
    /// `ENOTDIR` or `EISDIR` if something else is there; otherwise as openat2(2), mkdirat(2).
    pub fn find_or_make(
        &self,
        path: impl AsRef<OsStr>,
        kind: FilesystemEntryKind,
    ) -> io::Result<OwnedFd> {
        let path = path.as_ref();
        if let Ok(found) = self.resolve(path, OFlags::PATH, NO_MORE) {
            let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode).is_dir();
            return match (kind, is_folder) {
                (FilesystemEntryKind::Folder, false) => Err(Errno::NOTDIR.into()),
                (FilesystemEntryKind::File, true) => Err(Errno::ISDIR.into()),
                _ => Ok(found),
            };
        }
        let (folder, name) = split(path).ok_or(Errno::INVAL)?;
        let folder = self.folder(folder)?;
        if is_link(&folder, name) {
            rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
        }
        match kind {
            FilesystemEntryKind::Folder => make_folder(&folder, name)?,
            FilesystemEntryKind::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(0o644);
                let file = rustix::fs::openat(&folder, name, flags, mode)?;
                rustix::fs::fchmod(&file, mode)?;
            }
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&folder, name, flags, Mode::empty())?)
    }

    /// The folder at the path, on which no link is.
    ///
    /// # Errors
    /// As openat2(2); `ELOOP` if there is a link.
    pub(crate) fn folder_without_links(&self, path: &OsStr) -> io::Result<OwnedFd> {
        Ok(self.resolve(path, OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS)?)
    }

    /// The folder at the path, made with those above it where they are missing.
    ///
    /// # Errors
    /// `ENOTDIR` if something else is in the way.
    fn folder(&self, path: &OsStr) -> io::Result<OwnedFd> {
        match self.resolve(path, OFlags::PATH | OFlags::DIRECTORY, NO_MORE) {
            Ok(found) => return Ok(found),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let (above, name) = split(path).ok_or(Errno::NOENT)?;
        let above = self.folder(above)?;
        match make_folder(&above, name) {
            // A link there leads nowhere.
            Err(Errno::EXIST) => return Err(Errno::NOTDIR.into()),
            made => made?,
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&above, name, flags, Mode::empty())?)
    }

    fn resolve(&self, path: &OsStr, flags: OFlags, more: ResolveFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | more;
        let path = if path.is_empty() { OsStr::new(".") } else { path };
        loop {
            let flags = flags | OFlags::CLOEXEC;
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), resolve) {
                // Something was renamed meanwhile.
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
    }
}

impl AsFd for ConfinedRootFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

/// The folder and the last name of a path.
pub(crate) fn split(path: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/')? + 1;
    let bytes = &bytes[..end];
    let (folder, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&b""[..], bytes),
    };
    Some((OsStr::from_bytes(folder), OsStr::from_bytes(name)))
}

/// Whatever the umask.
fn make_folder(above: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o755);
    rustix::fs::mkdirat(above, name, mode)?;
    rustix::fs::chmodat(above, name, mode, AtFlags::empty())
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    let about = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_symlink())
}

const NO_MORE: ResolveFlags = ResolveFlags::empty();

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_lead_nowhere_but_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        symlink("../../secret", root.join("up")).unwrap();
        symlink("/etc", root.join("absolute")).unwrap();
        let inside = ConfinedRootFolder::open(&root).unwrap();
        assert!(inside.find("up").is_err());
        assert!(inside.find("absolute/passwd").is_err());
        inside.find_or_make("etc/passwd", FilesystemEntryKind::File).unwrap();
        assert!(inside.find("absolute/passwd").is_ok(), "the root's own");
        assert!(root.join("etc/passwd").exists());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_replaced_by_what_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/run/systemd/resolve/stub", folder.path().join("resolv.conf")).unwrap();
        let inside = ConfinedRootFolder::open(folder.path()).unwrap();
        inside.find_or_make("/resolv.conf", FilesystemEntryKind::File).unwrap();
        assert!(folder.path().join("resolv.conf").symlink_metadata().unwrap().is_file());
        assert!(inside.find_or_make("/resolv.conf", FilesystemEntryKind::Folder).is_err());
    }

    #[test]
    fn the_last_name_of_a_path_is_split_off() {
        let of = |path: &'static str| split(OsStr::new(path));
        let some = |one: &'static str, two: &'static str| Some((OsStr::new(one), OsStr::new(two)));
        assert_eq!(of("a/b//"), some("a", "b"));
        assert_eq!(of("b"), some("", "b"));
        assert_eq!(of("/"), None);
    }
}
