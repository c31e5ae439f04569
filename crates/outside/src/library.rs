//! The library that programs load, in a folder of its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_record::preload;
use windtunnel_sys::{process, unix};

use crate::own_folder::OwnFolder;

/// A folder with the library, and with a door where libraries hand over listeners of programs that they
/// cannot enter. It is removed when this is dropped; programs that live longer go on, and those that
/// they start run without the library.
#[derive(Debug)]
pub(crate) struct PreloadLibraryFolder {
    folder: OwnFolder,
}

impl PreloadLibraryFolder {
    /// In the first of the usual places in which a library can be.
    pub(crate) fn make() -> io::Result<PreloadLibraryFolder> {
        let place = PreloadLibraryFolder { folder: OwnFolder::make()? };
        fs::write(place.library(), preload::LIBRARY)?;
        fs::set_permissions(place.library(), Permissions::from_mode(0o755))?;
        // Programs of root may change their user.
        if process::current_user().uid == 0 {
            fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755))?;
        }
        Ok(place)
    }

    /// Makes the door.
    pub(crate) fn make_door(&self) -> io::Result<OwnedFd> {
        unix::bind_path(&self.door(), 0o600)
    }

    /// Has a program load the library, behind those of its own, and find the door.
    pub(crate) fn add_variables(&self, variables: &mut BTreeMap<OsString, OsString>) {
        let own = variables.remove(OsStr::new(LIST));
        variables.insert(LIST.into(), with_library(own, &self.library()));
        variables.insert(preload::DOOR_VARIABLE.into(), self.door().into());
    }

    fn door(&self) -> PathBuf {
        self.folder.path().join("door")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libwindtunnel.so")
    }
}

/// The list with one library more, behind the others.
fn with_library(list: Option<OsString>, library: &Path) -> OsString {
    let mut list = list.unwrap_or_default();
    if !list.as_bytes().trim_ascii().is_empty() {
        list.push(":");
    }
    list.push(library);
    list
}

/// The variable of ld.so(8).
const LIST: &str = "LD_PRELOAD";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_preload_libraries_stay_in_front() {
        let list = |own: Option<&str>| with_library(own.map(OsString::from), Path::new("/l.so"));
        assert_eq!(list(None), "/l.so");
        assert_eq!(list(Some(" ")), " /l.so");
        assert_eq!(list(Some("a.so b.so")), "a.so b.so:/l.so");
    }
}
