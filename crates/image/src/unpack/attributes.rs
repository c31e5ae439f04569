//! The owner, mode, time and extended attributes of entries.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use super::{LeftOut, place_of};
use crate::entries::{TarEntryHeader, UnixTimestamp};
use crate::ids::ImageOwnerMapping;

/// Whether an extended attribute is taken over: capabilities of programs, and what users set. Those of
/// overlayfs would be orders to it.
pub(crate) fn is_taken_over(name: &str) -> bool {
    name == CAPABILITY || (name.starts_with("user.") && !name.starts_with("user.overlay."))
}

/// When something was changed.
pub(super) fn modified(about: &Metadata) -> UnixTimestamp {
    UnixTimestamp {
        seconds: about.mtime(),
        nanoseconds: u32::try_from(about.mtime_nsec()).unwrap_or(0),
    }
}

/// Sets them. The mode comes after the owner, which takes bits away.
pub(super) fn set(
    above: &OwnedFd,
    name: &OsStr,
    of: &TarEntryHeader,
    ids: &ImageOwnerMapping,
) -> io::Result<LeftOut> {
    let mut left_out = LeftOut::default();
    match ids.owner(of.uid, of.gid) {
        Some((uid, gid)) => {
            let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            match rustix::fs::chownat(above, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW) {
                // Not an identity of this user namespace.
                Err(Errno::INVAL) => left_out.owners += 1,
                other => other?,
            }
        }
        None if (of.uid, of.gid) == (0, 0) => {}
        None => left_out.owners += 1,
    }
    let about = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(about.st_mode).is_symlink() {
        return Ok(left_out);
    }
    let mode = Mode::from_raw_mode(of.mode);
    rustix::fs::chmodat(above, name, mode, AtFlags::empty())?;
    let mut path = OsString::from(place_of(above));
    path.push("/");
    path.push(name);
    for (attribute, value) in of.extended.iter().filter(|(name, _)| is_taken_over(name)) {
        if rustix::fs::setxattr(&path, attribute.as_str(), value, XattrFlags::empty()).is_err() {
            left_out.attributes += 1;
        }
    }
    set_time(above, name, of.modified)?;
    Ok(left_out)
}

/// Sets when something was changed.
pub(super) fn set_time(above: &OwnedFd, name: &OsStr, time: UnixTimestamp) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() },
    };
    Ok(rustix::fs::utimensat(above, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// capabilities(7).
const CAPABILITY: &str = "security.capability";
