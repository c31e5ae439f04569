//! What hides files of lower layers, in the way of overlayfs. Source: the kernel's
//! Documentation/filesystems/overlayfs.rst ("whiteouts and opaque directories", "User xattr").

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, XattrFlags};

use super::place_of;

/// Nothing of what lower layers have in a folder shows.
pub(super) fn set_opaque(folder: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::setxattr(place_of(folder), OPAQUE, b"y", XattrFlags::empty())?)
}

/// Whether a folder is opaque in the way of overlayfs.
pub(crate) fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 4];
    matches!(rustix::fs::getxattr(folder, OPAQUE, &mut value), Ok(1) if value[0] == b'y')
}

/// Whether a file is a whiteout in the way of overlayfs.
fn is_whiteout(folder: impl AsFd, name: &OsStr) -> bool {
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
