//! Files below a folder that is open, for folders in which others may have written: no link is
//! followed, nothing outside is reached, and what is not a regular file is neither read nor written.
//!
//! Source: openat2(2), open(2).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// An open folder.
#[derive(Debug)]
pub struct FolderHandle {
    folder: OwnedFd,
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    pub name: OsString,
    pub is_folder: bool,
}

impl FolderHandle {
    /// Opens a folder. Links that lead to it are followed: the caller has named it.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(path: impl AsRef<Path>) -> io::Result<FolderHandle> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(FolderHandle { folder: rustix::fs::open(path.as_ref(), flags, Mode::empty())? })
    }

    /// A folder in it.
    ///
    /// # Errors
    /// As openat2(2); that there is a link on the way.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<FolderHandle> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(FolderHandle { folder: self.resolve(path.as_ref(), flags)? })
    }

    /// Opens a regular file to be read.
    ///
    /// # Errors
    /// As openat2(2); that there is a link on the way, or that it is no regular file.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), OFlags::RDONLY)
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// As [`FolderHandle::file`]; `FileTooLarge` if it has more than `most` bytes.
    pub fn read(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        let file = self.file(path)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
            let text = format!("it has more than {most} bytes");
            return Err(io::Error::new(ErrorKind::FileTooLarge, text));
        }
        Ok(bytes)
    }

    /// Opens a regular file to be written, and makes it if there is none; what is in it stays.
    ///
    /// # Errors
    /// As [`FolderHandle::file`].
    pub fn over(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), OFlags::WRONLY | OFlags::CREATE)
    }

    /// The same, but one that is there is emptied.
    ///
    /// # Errors
    /// As [`FolderHandle::file`].
    pub fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let file = self.over(path)?;
        // Not before it is known to be a file of this folder.
        file.set_len(0)?;
        Ok(file)
    }

    /// Opens a regular file that is written at its end.
    ///
    /// # Errors
    /// As [`FolderHandle::file`].
    pub fn append(&self, path: impl AsRef<Path>) -> io::Result<File> {
        self.regular(path.as_ref(), OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }

    /// A folder in it, which is made if there is none.
    ///
    /// # Errors
    /// As [`FolderHandle::folder`].
    pub fn make_folder(&self, name: &OsStr) -> io::Result<FolderHandle> {
        if !is_one_name(name) {
            return Err(strange());
        }
        match rustix::fs::mkdirat(&self.folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames what is in it, a link itself and not what it points to.
    ///
    /// # Errors
    /// As renameat(2).
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if !is_one_name(from) || !is_one_name(to) {
            return Err(strange());
        }
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes a file of it, or a link itself.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        if !is_one_name(name) {
            return Err(strange());
        }
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Puts a file with these contents in the place of what has that name, a link included. After a
    /// failure all is as it was.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn replace(&self, name: &OsStr, contents: &[u8]) -> io::Result<()> {
        if !is_one_name(name) {
            return Err(strange());
        }
        let mut aside = OsString::from(".");
        aside.push(name);
        aside.push(format!(".{}", std::process::id()));
        // What an earlier process of that number has left.
        let _ = self.remove(&aside);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &aside, flags, mode())?;
        let written = File::from(file).write_all(contents).and_then(|()| self.rename(&aside, name));
        if written.is_err() {
            // It is of no use; that it cannot be removed needs no report.
            let _ = self.remove(&aside);
        }
        written
    }

    /// What is in it, by name, without links and what is neither a file nor a folder. At most `most`.
    ///
    /// # Errors
    /// What the kernel says, or that there is more.
    pub fn entries(&self, most: usize) -> io::Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system says it.
                FileType::Unknown => {
                    let about = rustix::fs::statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(about.st_mode)
                }
                kind => kind,
            };
            if !matches!(kind, FileType::RegularFile | FileType::Directory) {
                continue;
            }
            if entries.len() >= most {
                return Err(io::Error::other(format!("it has more than {most} entries")));
            }
            entries.push(DirectoryEntry { name, is_folder: kind == FileType::Directory });
        }
        entries.sort();
        Ok(entries)
    }

    fn regular(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        // A pipe without another end, or a terminal, must not hold the caller up, nor become its own.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.resolve(path, flags).map_err(|error| {
            // A pipe that nothing reads.
            let is_pipe = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
            if is_pipe { irregular() } else { error }
        })?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let (flags, mode) = (flags | OFlags::CLOEXEC, mode_of(flags));
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.folder, path, flags, mode, resolve) {
            // Before Linux 5.6, or under a filter that does not know it.
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(path, flags),
            opened => opened.map_err(explained),
        }
    }

    /// The same with the calls of older kernels.
    fn step_by_step(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let names = path.components().map(|part| match part {
            Component::Normal(name) => Ok(name),
            _ => Err(strange()),
        });
        let names = names.collect::<io::Result<Vec<&OsStr>>>()?;
        let (last, folders) = names.split_last().ok_or_else(strange)?;
        let mut at = self.folder.try_clone()?;
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for name in folders {
            at = rustix::fs::openat(&at, *name, through, Mode::empty())
                .map_err(|error| at_link(&at, name, error))?;
        }
        let opened = rustix::fs::openat(&at, *last, flags | OFlags::NOFOLLOW, mode_of(flags));
        opened.map_err(|error| at_link(&at, last, error))
    }
}

/// Opens a regular file to be read. Links to its folder are followed, but it is none itself.
///
/// # Errors
/// As [`FolderHandle::file`].
pub fn regular_file(path: &Path) -> io::Result<File> {
    let name = path.file_name().ok_or_else(strange)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    FolderHandle::open(folder.unwrap_or(Path::new(".")))?.file(name)
}

/// A link that is to be a folder is "not a directory".
fn at_link(folder: &OwnedFd, name: &OsStr, error: Errno) -> io::Error {
    let about = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_link =
        about.is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Symlink);
    explained(if is_link { Errno::LOOP } else { error })
}

fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::new(
            ErrorKind::InvalidInput,
            "there is a symbolic link on the way, and none is followed here",
        ),
        Errno::XDEV => strange(),
        error => error.into(),
    }
}

fn strange() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no name of a file in that folder")
}

fn irregular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no regular file")
}

fn is_one_name(name: &OsStr) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name)
}

/// openat2(2) refuses a mode where nothing is made.
fn mode_of(flags: OFlags) -> Mode {
    if flags.contains(OFlags::CREATE) { mode() } else { Mode::empty() }
}

/// Of new files, less what the umask takes.
fn mode() -> Mode {
    Mode::from_raw_mode(0o666)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::{fs, process::Command};

    use super::*;

    /// A folder with hostile contents, beside a secret.
    fn folder() -> (tempfile::TempDir, FolderHandle) {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("run");
        fs::create_dir_all(inside.join("nodes/a")).unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        fs::write(inside.join("nodes/a/stdout"), "text").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink("nodes/a/stdout", inside.join("inner")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        symlink("nodes", inside.join("others")).unwrap();
        symlink("/no/such/file", inside.join("dangling")).unwrap();
        assert!(Command::new("mkfifo").arg(inside.join("pipe")).status().unwrap().success());
        let below = FolderHandle::open(&inside).unwrap();
        (root, below)
    }

    const HOSTILE: [&str; 11] = [
        "link",
        "inner",
        "up/secret",
        "others/a/stdout",
        "dangling",
        "pipe",
        "../secret",
        "nodes/../../secret",
        "/etc/passwd",
        "nodes",
        "",
    ];

    #[test]
    fn only_regular_files_of_the_folder_are_opened_and_nothing_waits() {
        let (_root, below) = folder();
        assert_eq!(below.read("nodes/a/stdout", 4).unwrap(), b"text");
        for path in HOSTILE {
            assert!(below.file(path).is_err(), "{path}");
        }
        assert_eq!(below.file("none").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn nothing_is_written_through_a_link_or_to_a_pipe() {
        let (root, below) = folder();
        for path in HOSTILE {
            assert!(below.create(path).is_err(), "{path}");
            assert!(below.append(path).is_err(), "{path}");
        }
        assert_eq!(fs::read(root.path().join("secret")).unwrap(), b"secret");
        assert!(!Path::new("/no/such/file").exists());
        below.append("nodes/a/stdout").unwrap().write_all(b"!").unwrap();
        assert_eq!(below.read("nodes/a/stdout", 99).unwrap(), b"text!");
        below.create("nodes/a/stdout").unwrap().write_all(b"new").unwrap();
        assert_eq!(below.read("nodes/a/stdout", 99).unwrap(), b"new");
    }

    #[test]
    fn a_kernel_without_openat2_opens_the_same() {
        let (_root, below) = folder();
        let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        assert!(below.step_by_step(Path::new("nodes/a/stdout"), read).is_ok());
        for path in ["link", "inner", "up/secret", "others/a/stdout", "../secret", "/etc/passwd"] {
            let (one, other) = (below.resolve(Path::new(path), read), {
                below.step_by_step(Path::new(path), read)
            });
            let text = |opened: io::Result<OwnedFd>| opened.unwrap_err().to_string();
            assert_eq!(text(one), text(other), "{path}");
        }
    }

    #[test]
    fn what_takes_the_place_of_a_link_leaves_alone_what_it_pointed_to() {
        let (root, below) = folder();
        below.replace(OsStr::new("link"), b"page").unwrap();
        assert_eq!(fs::read(root.path().join("secret")).unwrap(), b"secret");
        assert_eq!(below.read("link", 99).unwrap(), b"page");
        assert!(below.replace(OsStr::new("../secret"), b"page").is_err());
        assert!(below.replace(OsStr::new("nodes"), b"page").is_err());
        let names = below.entries(99).unwrap();
        let names: Vec<&str> = names.iter().filter_map(|entry| entry.name.to_str()).collect();
        assert_eq!(names, ["link", "nodes"], "links, pipes and what failed are not among them");
    }

    #[test]
    fn what_is_larger_than_its_bound_is_refused_without_being_read_whole() {
        let (root, below) = folder();
        let large = File::create(root.path().join("run/large")).unwrap();
        large.set_len(1 << 40).unwrap();
        let error = below.read("large", 1000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has more than 1000 bytes");
        assert!(below.entries(1).is_err());
    }
}
