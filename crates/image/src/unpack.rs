//! From a layer to a folder that overlayfs takes as a layer of its own. Source: OCI Image
//! Specification, layer.md; the kernel's Documentation/filesystems/overlayfs.rst ("whiteouts and
//! opaque directories", "User xattr").
//!
//! A layer is written by anyone. Its entries get their place by [`Inside`], so none is written outside
//! of the folder; names that lead out are refused by themselves. Device nodes are refused, but for
//! those below `dev`, which a node never sees: they are left out. A file that claims to be larger than
//! the disk has room is refused before anything of it is written.

mod attributes;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use tar::{Archive, Entry, EntryType};

use crate::ids::Ids;
use crate::inside::Inside;
use crate::name::{self, Asked};
use attributes::Attributes;

/// What a layer has and its folder has not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// Files whose owner is not the one that the image names.
    pub owners: u64,
    /// Extended attributes, of which those of capabilities give programs rights.
    pub attributes: u64,
    /// Device nodes below `/dev`.
    pub devices: u64,
}

/// Why an entry cannot be unpacked.
#[derive(Debug)]
pub(crate) enum EntryError {
    /// The layer as a whole.
    Read(io::Error),
    /// What it is, is not taken.
    Refused(String, String),
    /// It cannot be written.
    Failed(String, io::Error),
}

/// Unpacks the entries of a tar file into a folder.
pub(crate) fn unpack(tar: impl Read, folder: &Path, ids: &Ids) -> Result<LeftOut, EntryError> {
    let inside = Inside::open(folder).map_err(|error| failed("/", error))?;
    let mut unpacker = Unpacker {
        inside,
        root: folder,
        ids,
        left_out: LeftOut::default(),
        times: Vec::new(),
        entries: 0,
    };
    let mut archive = Archive::new(tar);
    for entry in archive.entries().map_err(EntryError::Read)? {
        unpacker.entry(entry.map_err(EntryError::Read)?)?;
    }
    unpacker.set_times();
    Ok(unpacker.left_out)
}

struct Unpacker<'a> {
    inside: Inside,
    root: &'a Path,
    ids: &'a Ids,
    left_out: LeftOut,
    /// Of folders, which change with what is put into them.
    times: Vec<(OsString, i64)>,
    entries: u64,
}

impl Unpacker<'_> {
    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), EntryError> {
        let bytes = entry.path_bytes().into_owned();
        let shown = shown(&bytes);
        let refused = |why: &str| EntryError::Refused(shown.clone(), why.to_owned());
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(refused("is one of more than ten million entries"));
        }
        let parts = name::parts(&bytes).map_err(refused)?;
        let write = |error| failed(&shown, error);
        match name::asked(parts).map_err(refused)? {
            Asked::Nothing => Ok(()),
            Asked::Opaque(folder) => {
                let folder = self.inside.folder(&joined(&folder)).map_err(write)?;
                set_opaque(&folder).map_err(write)
            }
            Asked::Whiteout(parts) => self.white_out(&parts).map_err(write),
            Asked::Entry(parts) if parts.is_empty() => {
                if !entry.header().entry_type().is_dir() {
                    return Err(refused("is the root, and not a folder"));
                }
                let attributes = Attributes::of(&mut entry).map_err(EntryError::Read)?;
                let root = self.inside.folder(OsStr::new("")).map_err(write)?;
                self.finish(&root, OsStr::new("."), &attributes).map_err(write)
            }
            Asked::Entry(parts) => self.place(entry, &parts, &shown),
        }
    }

    fn place<R: Read>(
        &mut self,
        mut entry: Entry<'_, R>,
        parts: &[OsString],
        shown: &str,
    ) -> Result<(), EntryError> {
        let refused = |why: String| EntryError::Refused(shown.to_owned(), why);
        let write = |error| failed(shown, error);
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::Char | EntryType::Block) {
            if parts[0] == "dev" {
                self.left_out.devices += 1;
                return Ok(());
            }
            return Err(refused("is a device node, which no node gets".to_owned()));
        }
        let attributes = Attributes::of(&mut entry).map_err(EntryError::Read)?;
        let Some((name, above)) = parts.split_last() else { return Ok(()) };
        let above = self.inside.folder(&joined(above)).map_err(write)?;
        let was_hidden = make_room(&above, name, kind.is_dir()).map_err(|error| match error {
            Errno::ISDIR => refused("is also a folder of the same layer".to_owned()),
            other => failed(shown, other.into()),
        })?;
        match kind {
            EntryType::Directory => {
                match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(write(error.into())),
                }
                let folder = folder_in(&above, name).map_err(write)?;
                if was_hidden {
                    set_opaque(&folder).map_err(write)?;
                }
                self.times.push((joined(parts), attributes.modified));
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                if target.is_empty() || target.contains(&0) {
                    return Err(refused("is a link to nothing".to_owned()));
                }
                rustix::fs::symlinkat(&target[..], &above, name).map_err(|e| write(e.into()))?;
            }
            EntryType::Link => return self.hard_link(&entry, &above, name, shown),
            EntryType::Fifo => {
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(&above, name, FileType::Fifo, mode, 0)
                    .map_err(|error| write(error.into()))?;
            }
            kind if kind.is_file() || kind == EntryType::GNUSparse => {
                self.check_room(entry.size()).map_err(refused)?;
                copy_file(&mut entry, &above, name).map_err(|error| match error {
                    Copied::Read(error) => EntryError::Read(error),
                    Copied::Write(error) => failed(shown, error),
                })?;
            }
            other => {
                return Err(refused(format!("is of an unknown kind ({:#x})", other.as_byte())));
            }
        }
        self.finish(&above, name, &attributes).map_err(write)
    }

    /// The owner, the mode, the time and the extended attributes.
    fn finish(&mut self, above: &OwnedFd, name: &OsStr, of: &Attributes) -> io::Result<()> {
        let left_out = attributes::set(above, name, of, self.ids)?;
        self.left_out.owners += left_out.owners;
        self.left_out.attributes += left_out.attributes;
        Ok(())
    }

    fn hard_link<R: Read>(
        &self,
        entry: &Entry<'_, R>,
        above: &OwnedFd,
        name: &OsStr,
        shown: &str,
    ) -> Result<(), EntryError> {
        let refused = |why: String| EntryError::Refused(shown.to_owned(), why);
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        // Some builders write the path from the root.
        let below = target.strip_prefix(b"/").unwrap_or(&target);
        let parts = name::parts(below).map_err(|why| {
            refused(format!("is a link to `{}`, which {why}", self::shown(&target)))
        })?;
        let linked = parts.split_last().ok_or(Errno::NOENT).and_then(|(last, folder)| {
            let folder = self.inside.find(joined(folder)).map_err(|_| Errno::NOENT)?;
            rustix::fs::linkat(&folder, last, above, name, AtFlags::empty())
        });
        linked.map_err(|error| match error {
            Errno::NOENT => refused(format!(
                "is a link to `{}`, which this layer does not have",
                self::shown(&target)
            )),
            other => failed(shown, other.into()),
        })
    }

    /// Hides what lower layers have: a character device 0/0, which needs no rights.
    fn white_out(&self, parts: &[OsString]) -> io::Result<()> {
        let Some((name, above)) = parts.split_last() else { return Ok(()) };
        let above = self.inside.folder(&joined(above))?;
        match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
            // This layer's own, which is above.
            Ok(about) if FileType::from_raw_mode(about.st_mode).is_dir() => {
                return set_opaque(&folder_in(&above, name)?);
            }
            Ok(_) => return Ok(()),
        }
        let mode = Mode::empty();
        Ok(rustix::fs::mknodat(&above, name, FileType::CharacterDevice, mode, 0)?)
    }

    /// Whether the disk has room for so many bytes.
    fn check_room(&self, bytes: u64) -> Result<(), String> {
        let Ok(about) = rustix::fs::statvfs(self.root) else { return Ok(()) };
        let free = about.f_bavail.saturating_mul(about.f_frsize);
        if bytes <= free {
            return Ok(());
        }
        Err(format!("claims to have {bytes} bytes, and the cache's disk has room for {free}"))
    }

    fn set_times(&self) {
        for (path, seconds) in self.times.iter().rev() {
            if let Ok(folder) = self.inside.find(path) {
                // It may have been replaced since.
                let _ = attributes::set_time(&folder, OsStr::new("."), *seconds);
            }
        }
    }
}

/// Takes away what has this name, unless it and what comes are folders. Whether it was a whiteout.
fn make_room(above: &OwnedFd, name: &OsStr, is_folder: bool) -> Result<bool, Errno> {
    let about = match rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(false),
        other => other?,
    };
    match (FileType::from_raw_mode(about.st_mode), is_folder) {
        (FileType::Directory, true) => Ok(false),
        (FileType::Directory, false) => Err(Errno::ISDIR),
        (kind, _) => {
            rustix::fs::unlinkat(above, name, AtFlags::empty())?;
            Ok(kind == FileType::CharacterDevice)
        }
    }
}

fn folder_in(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(above, name, flags, Mode::empty())?)
}

fn set_opaque(folder: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::setxattr(place_of(folder), OPAQUE, b"y", XattrFlags::empty())?)
}

/// A path to what is open, for calls that take no descriptor of this kind.
pub(crate) fn place_of(open: impl AsFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()))
}

enum Copied {
    Read(io::Error),
    Write(io::Error),
}

/// By hand, because an error of the layer is another one than an error of the disk.
fn copy_file(from: &mut impl Read, above: &OwnedFd, name: &OsStr) -> Result<(), Copied> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let file = rustix::fs::openat(above, name, flags, mode);
    let mut file = std::fs::File::from(file.map_err(|error| Copied::Write(error.into()))?);
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Copied::Read(error)),
        };
        io::Write::write_all(&mut file, &buffer[..read]).map_err(Copied::Write)?;
    }
}

fn joined(parts: &[OsString]) -> OsString {
    parts.join(OsStr::new("/"))
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn failed(entry: &str, error: io::Error) -> EntryError {
    EntryError::Failed(entry.to_owned(), error)
}

/// Whether a folder is opaque in the way of overlayfs.
pub(crate) fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 4];
    matches!(rustix::fs::getxattr(folder, OPAQUE, &mut value), Ok(1) if value[0] == b'y')
}

/// Whether a file is a whiteout in the way of overlayfs.
pub(crate) fn is_whiteout(folder: impl AsFd, name: &OsStr) -> bool {
    let about = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    about.is_ok_and(|about| {
        FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice && about.st_rdev == 0
    })
}

/// The same by its path.
pub(crate) fn is_whiteout_at(path: &Path) -> bool {
    is_whiteout(CWD, path.as_os_str())
}

/// overlayfs's own where it is mounted with `userxattr`.
const OPAQUE: &str = "user.overlay.opaque";
const COPY_BYTES: usize = 256 << 10;
const ENTRIES_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests;
