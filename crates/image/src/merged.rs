//! Layers as the one tree that they are together, without overlayfs: to read a file of it, and to copy
//! it where overlayfs is denied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Uid};

use crate::inside::Inside;
use crate::unpack::{is_opaque, is_whiteout_at};

/// Unpacked layers.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The topmost first.
    layers: Vec<PathBuf>,
}

impl Merged {
    /// Of folders, the topmost first.
    #[must_use]
    pub fn new(layers: Vec<PathBuf>) -> Merged {
        Merged { layers }
    }

    /// The content of a file, of its first 4 MiB; `None` if there is no such file.
    #[must_use]
    pub fn read(&self, path: &Path) -> Option<Vec<u8>> {
        for layer in &self.layers {
            let inside = Inside::open(layer).ok()?;
            if let Ok(open) = inside.read(path) {
                let file = fs::File::from(open);
                let is_file = file.metadata().is_ok_and(|about| about.is_file());
                let mut bytes = Vec::new();
                let read = file.take(READ_BYTES_MAX).read_to_end(&mut bytes);
                return (is_file && read.is_ok()).then_some(bytes);
            }
            if hides(layer, path) {
                return None;
            }
        }
        None
    }

    /// Copies what is at `path` (the root: an empty path), if it is a folder, into the folder `target`,
    /// with owners, modes and times. The caller alone may write there. Whether there was one.
    ///
    /// # Errors
    /// What could not be copied.
    pub fn copy(&self, path: &Path, target: &Path) -> Result<bool, (PathBuf, io::Error)> {
        let mut lowest = 0;
        for layer in &self.layers {
            lowest += 1;
            if hides(layer, path) {
                break;
            }
        }
        let mut found = false;
        for layer in self.layers[..lowest].iter().rev() {
            let from = layer.join(path);
            let Ok(about) = fs::symlink_metadata(&from) else { continue };
            if !about.is_dir() {
                continue;
            }
            found = true;
            let mut copier = Copier { links: BTreeMap::new() };
            copier.folder(&from, &about, target)?;
        }
        Ok(found)
    }
}

/// Whether a layer hides what those below it have at the path.
fn hides(layer: &Path, path: &Path) -> bool {
    let mut at = layer.to_owned();
    for part in path.components() {
        let std::path::Component::Normal(part) = part else { continue };
        at.push(part);
        if is_whiteout_at(&at) || is_opaque(&at) {
            return true;
        }
    }
    false
}

struct Copier {
    /// Files with several names, by device and number: where they are already.
    links: BTreeMap<(u64, u64), PathBuf>,
}

impl Copier {
    fn folder(
        &mut self,
        from: &Path,
        about: &Metadata,
        to: &Path,
    ) -> Result<(), (PathBuf, io::Error)> {
        let failed = |error: io::Error| (from.to_owned(), error);
        match fs::symlink_metadata(to) {
            Ok(there) if there.is_dir() => {
                if is_opaque(from) {
                    empty(to).map_err(failed)?;
                }
            }
            Ok(_) => fs::remove_file(to).and_then(|()| fs::create_dir(to)).map_err(failed)?,
            Err(_) => fs::create_dir(to).map_err(failed)?,
        }
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entry(&entry.path(), &to.join(entry.file_name()))?;
        }
        finish(to, about).map_err(failed)
    }

    fn entry(&mut self, from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
        let failed = |error: io::Error| (from.to_owned(), error);
        let about = fs::symlink_metadata(from).map_err(failed)?;
        if about.is_dir() {
            return self.folder(from, &about, to);
        }
        remove(to).map_err(failed)?;
        if is_whiteout_at(from) {
            return Ok(());
        }
        if about.nlink() > 1 {
            let number = (about.dev(), about.ino());
            if let Some(first) = self.links.get(&number) {
                return fs::hard_link(first, to).map_err(failed);
            }
            self.links.insert(number, to.to_owned());
        }
        copy_one(from, &about, to).map_err(failed)
    }
}

fn copy_one(from: &Path, about: &Metadata, to: &Path) -> io::Result<()> {
    let kind = about.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        fs::copy(from, to)?;
    } else if kind.is_fifo() {
        rustix::fs::mknodat(CWD, to, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    } else {
        // Sockets of programs that are gone, and devices.
        return Ok(());
    }
    finish(to, about)
}

/// The owner, which comes before the mode, and the times.
fn finish(to: &Path, about: &Metadata) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(about.uid())), Some(Gid::from_raw(about.gid())));
    rustix::fs::chownat(CWD, to, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    if !about.is_symlink() {
        fs::set_permissions(to, fs::Permissions::from_mode(about.mode() & 0o7777))?;
    }
    let time = |tv_sec, tv_nsec| rustix::fs::Timespec { tv_sec, tv_nsec };
    let times = rustix::fs::Timestamps {
        last_access: time(about.atime(), about.atime_nsec()),
        last_modification: time(about.mtime(), about.mtime_nsec()),
    };
    Ok(rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn empty(folder: &Path) -> io::Result<()> {
    let names: io::Result<Vec<OsString>> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect();
    names?.into_iter().try_for_each(|name| remove(&folder.join(name)))
}

/// Whatever is there, if anything is.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    }
}

const READ_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use tar::EntryType;

    use super::*;
    use crate::ids::Ids;
    use crate::testing::{Made, file, other, tar};
    use crate::unpack::{EntryError, unpack};

    /// Layers, the lowest first; `None` where the file system has no extended attributes of users.
    fn merged(layers: &[&[Made]]) -> Option<(tempfile::TempDir, Merged)> {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (number, entries) in layers.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            match unpack(&tar(entries)[..], &path, &Ids::One) {
                Err(EntryError::Failed(_, error)) if error.raw_os_error() == Some(95) => {
                    return None;
                }
                other => drop(other.unwrap()),
            }
            paths.insert(0, path);
        }
        Some((folder, Merged::new(paths)))
    }

    fn layers() -> Option<(tempfile::TempDir, Merged)> {
        merged(&[
            &[
                file("etc/passwd", b"old"),
                file("etc/gone", b"x"),
                file("var/old", b"x"),
                file("d/x", b"1"),
            ],
            &[
                file("etc/passwd", b"new"),
                file("etc/.wh.gone", b""),
                file("var/.wh..wh..opq", b""),
                file("var/new", b"y"),
                other("var/same", EntryType::Link, "var/new"),
                file("d", b"a file now"),
            ],
        ])
    }

    #[test]
    fn a_file_is_that_of_the_topmost_layer_that_has_it_or_hides_it() {
        let Some((_folder, merged)) = layers() else { return };
        let read = |path: &str| merged.read(Path::new(path));
        assert_eq!(read("etc/passwd"), Some(b"new".to_vec()));
        assert_eq!(read("etc/gone"), None);
        assert_eq!(read("var/old"), None);
        assert_eq!(read("var/new"), Some(b"y".to_vec()));
        assert_eq!(read("etc"), None, "not a file");
    }

    #[test]
    fn a_copy_has_what_overlayfs_would_show() {
        let Some((folder, merged)) = layers() else { return };
        let target = folder.path().join("copy");
        fs::create_dir(&target).unwrap();
        assert!(merged.copy(Path::new(""), &target).unwrap());
        let mut names: Vec<String> = fs::read_dir(target.join("var"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["new", "same"]);
        assert!(!target.join("etc/gone").exists());
        assert_eq!(fs::read_to_string(target.join("etc/passwd")).unwrap(), "new");
        assert_eq!(fs::read_to_string(target.join("d")).unwrap(), "a file now");
        let number = |name: &str| fs::metadata(target.join(name)).unwrap().ino();
        assert_eq!(number("var/new"), number("var/same"));
    }

    #[test]
    fn a_folder_can_be_copied_by_itself() {
        let Some((folder, merged)) = layers() else { return };
        let target = folder.path().join("copy");
        fs::create_dir(&target).unwrap();
        assert!(merged.copy(Path::new("var"), &target).unwrap());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 2);
        assert!(!merged.copy(Path::new("nowhere"), &target).unwrap());
    }
}
