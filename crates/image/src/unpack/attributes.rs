//! The owner, mode, time and extended attributes of entries.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;
use tar::Entry;

use super::{LeftOut, place_of};
use crate::ids::Ids;

/// What a layer says of an entry beside its content.
#[derive(Debug)]
pub(super) struct Attributes {
    uid: u64,
    gid: u64,
    mode: u32,
    /// Seconds since 1970.
    pub(super) modified: i64,
    extended: Vec<(String, Vec<u8>)>,
}

impl Attributes {
    pub(super) fn of<R: Read>(entry: &mut Entry<'_, R>) -> io::Result<Attributes> {
        let header = entry.header();
        let (uid, gid) = (header.uid()?, header.gid()?);
        let mode = header.mode()? & 0o7777;
        let modified = i64::try_from(header.mtime()?).unwrap_or(0);
        let extended = match entry.pax_extensions()? {
            None => Vec::new(),
            Some(extensions) => {
                extensions.filter_map(|extension| extended(&extension.ok()?)).collect()
            }
        };
        Ok(Attributes { uid, gid, mode, modified, extended })
    }
}

/// An extended attribute that is taken over: capabilities of programs, and what users set. Those of
/// overlayfs would be orders to it.
fn extended(extension: &tar::PaxExtension<'_>) -> Option<(String, Vec<u8>)> {
    let name = extension.key().ok()?.strip_prefix("SCHILY.xattr.")?;
    let wanted =
        name == CAPABILITY || (name.starts_with("user.") && !name.starts_with("user.overlay."));
    wanted.then(|| (name.to_owned(), extension.value_bytes().to_vec()))
}

/// Sets them. The mode comes after the owner, which takes bits away.
pub(super) fn set(
    above: &OwnedFd,
    name: &OsStr,
    of: &Attributes,
    ids: &Ids,
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
    for (attribute, value) in &of.extended {
        if rustix::fs::setxattr(&path, attribute.as_str(), value, XattrFlags::empty()).is_err() {
            left_out.attributes += 1;
        }
    }
    set_time(above, name, of.modified)?;
    Ok(left_out)
}

/// Sets when something was changed.
pub(super) fn set_time(above: &OwnedFd, name: &OsStr, seconds: i64) -> io::Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: 0 },
    };
    Ok(rustix::fs::utimensat(above, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// capabilities(7).
const CAPABILITY: &str = "security.capability";
