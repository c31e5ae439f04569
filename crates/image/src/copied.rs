//! Entries as others: with owner, mode, times and extended attributes, and with the holes of files.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, SeekFrom, Uid, XattrFlags};
use rustix::io::Errno;

use crate::unpack::is_taken_over;

/// Makes `to`, where nothing is, what `from` is: a file, a symbolic link or a pipe. Sockets of programs
/// that are gone, and devices, are left out.
pub(crate) fn entry(from: &Path, about: &Metadata, to: &Path) -> io::Result<()> {
    let kind = about.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        content(from, about.len(), to)?;
    } else if kind.is_fifo() {
        rustix::fs::mknodat(CWD, to, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    } else {
        return Ok(());
    }
    attributes(from, about, to)
}

/// Gives `to` the attributes of `from`. The owner comes before the mode, of which it takes bits away.
///
/// # Errors
/// As chown(2), chmod(2), setxattr(2) and utimensat(2) have them.
pub(crate) fn attributes(from: &Path, about: &Metadata, to: &Path) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(about.uid())), Some(Gid::from_raw(about.gid())));
    rustix::fs::chownat(CWD, to, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    if !about.is_symlink() {
        fs::set_permissions(to, fs::Permissions::from_mode(about.mode() & 0o7777))?;
        extended(from, to)?;
    }
    let time = |tv_sec, tv_nsec| rustix::fs::Timespec { tv_sec, tv_nsec };
    let times = rustix::fs::Timestamps {
        last_access: time(about.atime(), about.atime_nsec()),
        last_modification: time(about.mtime(), about.mtime_nsec()),
    };
    Ok(rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn extended(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = vec![0; NAMES_BYTES_MAX];
    let length = match rustix::fs::listxattr(from, &mut names[..]) {
        Err(Errno::NOTSUP) => return Ok(()),
        other => other?,
    };
    let mut value = vec![0; VALUE_BYTES_MAX];
    for name in names[..length].split(|byte| *byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if !is_taken_over(name) {
            continue;
        }
        let length = rustix::fs::getxattr(from, name, &mut value[..])?;
        match rustix::fs::setxattr(to, name, &value[..length], XattrFlags::empty()) {
            // As where the layer was unpacked, or the file system has none.
            Err(Errno::PERM | Errno::NOTSUP) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Copies what has data, lseek(2).
fn content(from: &Path, size: u64, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut to = File::options().write(true).create_new(true).open(to)?;
    let mut end = 0;
    while end < size {
        let start = match rustix::fs::seek(&from, SeekFrom::Data(end)) {
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            other => other?,
        };
        end = rustix::fs::seek(&from, SeekFrom::Hole(start))?.min(size);
        from.seek(io::SeekFrom::Start(start))?;
        to.seek(io::SeekFrom::Start(start))?;
        io::copy(&mut (&mut from).take(end.saturating_sub(start)), &mut to)?;
    }
    to.flush()?;
    to.set_len(size)
}

/// What Linux has at most (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const NAMES_BYTES_MAX: usize = 64 << 10;
const VALUE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_holes_the_mode_and_the_time_of_its_original() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let mut file = File::create(&from).unwrap();
        file.set_len(64 << 20).unwrap();
        file.seek(io::SeekFrom::Start(32 << 20)).unwrap();
        file.write_all(b"in the middle").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o4711)).unwrap();
        let about = fs::metadata(&from).unwrap();
        entry(&from, &about, &to).unwrap();
        let copy = fs::metadata(&to).unwrap();
        assert_eq!(
            (copy.len(), copy.mode(), copy.mtime()),
            (64 << 20, about.mode(), about.mtime())
        );
        assert_eq!(copy.blocks(), about.blocks(), "holes take no room");
        let bytes = fs::read(&to).unwrap();
        assert_eq!(&bytes[32 << 20..(32 << 20) + 13], b"in the middle");
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 13);
    }
}
