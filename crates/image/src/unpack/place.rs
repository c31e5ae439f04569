//! The place of an entry: what has its name is taken away, and folders are made.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{place_of, set_opaque};

/// Takes away what has this name, with all that is in it, unless it and what comes are folders: of two
/// entries of a layer the later one holds, as with Docker. Whether it hid what is below: a whiteout, or a
/// file of this layer.
pub(super) fn make_room(above: &OwnedFd, name: &OsStr, is_folder: bool) -> io::Result<bool> {
    let about = match rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(false),
        other => other?,
    };
    match (FileType::from_raw_mode(about.st_mode), is_folder) {
        (FileType::Directory, true) => Ok(false),
        (FileType::Directory, false) => {
            fs::remove_dir_all(place_of(above).join(name))?;
            Ok(false)
        }
        _ => {
            rustix::fs::unlinkat(above, name, AtFlags::empty())?;
            Ok(true)
        }
    }
}

/// A folder of this name, which may be there; where what was there hid what is below, it hides that too.
pub(super) fn make_folder(above: &OwnedFd, name: &OsStr, was_hidden: bool) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = folder_in(above, name)?;
    if was_hidden {
        set_opaque(&folder)?;
    }
    Ok(folder)
}

/// An open folder in another, not through a link.
pub(super) fn folder_in(above: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(above, name, flags, Mode::empty())?)
}
