//! Files in memory of the node's own, by which its programs leave records of their calls: the
//! library that they load, and the region that they share with the host process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_sys::mount;

use crate::message::Failure;
use crate::node_set::Recorded;

/// Mounts them at their place, and returns the region, which is empty.
pub(super) fn mount(recorded: &Recorded) -> Result<OwnedFd, Failure> {
    make(recorded).map_err(|error| Failure {
        stage: "mounts".into(),
        message: format!(
            "cannot show the files for recording at {}: {error}",
            recorded.place.display()
        ),
        hint: Some("write `record: off`, or leave `--record` out".into()),
    })
}

fn make(recorded: &Recorded) -> io::Result<OwnedFd> {
    mount::tmpfs(&recorded.place, "mode=755")?;
    let library = library(&recorded.place);
    fs::write(&library, recorded.library)?;
    // A node's programs may run as other users, whatever the umask is.
    fs::set_permissions(&library, Permissions::from_mode(0o755))?;
    let path = region(&recorded.place);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    file.set_permissions(Permissions::from_mode(0o666))?;
    Ok(file.into())
}

/// The library below the place of the files.
pub(crate) fn library(place: &Path) -> PathBuf {
    place.join("libwindtunnel.so")
}

fn region(place: &Path) -> PathBuf {
    place.join("region")
}

/// The variables of a program that leaves records, in addition to its own, of which `preload` is
/// one.
pub(super) fn variables(place: &Path, preload: Option<&OsStr>) -> [(OsString, OsString); 2] {
    let mut list = preload.unwrap_or_default().to_owned();
    if !list.as_bytes().trim_ascii().is_empty() {
        list.push(":");
    }
    list.push(library(place));
    [(PRELOAD.into(), list), (REGION.into(), region(place).into())]
}

/// Of ld.so(8).
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// Where the library finds the region.
const REGION: &str = "WINDTUNNEL_RECORD";

/// A folder that can be covered in every node without hiding anything, and that every user may
/// enter; `None`: this machine has none.
///
/// The kernel keeps an empty folder for line disciplines that no driver has used since 2.6.
#[must_use]
pub(crate) fn place() -> Option<PathBuf> {
    let is_empty = |path: &Path| {
        let enterable = fs::symlink_metadata(path)
            .is_ok_and(|about| about.is_dir() && about.permissions().mode() & 0o005 == 0o005);
        enterable && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    };
    PLACES.iter().map(PathBuf::from).find(|path| is_empty(path))
}

const PLACES: [&str; 4] = ["/proc/tty/ldisc", "/media", "/mnt", "/srv"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_preload_libraries_stay_in_front() {
        let list = |own: Option<&str>| {
            let [(name, list), region] = variables(Path::new("/p"), own.map(OsStr::new));
            assert_eq!((name.to_str(), region.1.to_str()), (Some("LD_PRELOAD"), Some("/p/region")));
            list.into_string().unwrap()
        };
        assert_eq!(list(None), "/p/libwindtunnel.so");
        assert_eq!(list(Some("")), "/p/libwindtunnel.so");
        assert_eq!(list(Some("/a.so b.so")), "/a.so b.so:/p/libwindtunnel.so");
    }
}
