//! Where programs find the library.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_record::preload;
use windtunnel_sys::{process, unix};

use crate::library::with_library;
use crate::own_folder::OwnFolder;

/// A folder with the library; it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct PacingLibraryFolder {
    folder: OwnFolder,
}

impl PacingLibraryFolder {
    pub(super) fn make() -> io::Result<PacingLibraryFolder> {
        let place = PacingLibraryFolder { folder: OwnFolder::make()? };
        fs::write(place.library(), preload::LIBRARY)?;
        fs::set_permissions(place.library(), Permissions::from_mode(0o755))?;
        // Programs of root may change their user.
        if process::current_user().uid == 0 {
            fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755))?;
        }
        Ok(place)
    }

    /// Makes the socket at which libraries hand over listeners of programs that they cannot enter.
    pub(super) fn make_door(&self) -> io::Result<OwnedFd> {
        unix::bind_path(&self.door(), 0o600)
    }

    /// The variables of a program under the limit of a file. `preload` is that of its own.
    pub(super) fn variables(
        &self,
        preload: Option<OsString>,
        region: &Path,
    ) -> [(OsString, OsString); 3] {
        [
            ("LD_PRELOAD".into(), with_library(preload, &self.library())),
            (VARIABLE.into(), region.into()),
            (preload::DOOR_VARIABLE.into(), self.door().into()),
        ]
    }

    fn door(&self) -> PathBuf {
        self.folder.path().join("door")
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libwindtunnel.so")
    }
}

/// The variable that holds the path of the region.
pub(super) const VARIABLE: &str = "WINDTUNNEL_LIMIT";
