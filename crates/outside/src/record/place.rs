//! Where programs find what they leave records by.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_record::preload;
use windtunnel_sys::region::MappedRecordRegion;
use windtunnel_sys::{process, unix};

use crate::library::with_library;
use crate::own_folder::OwnFolder;

/// A folder with the library and the door, and the memory. The folder is removed when it is
/// dropped; programs that live longer go on, and those that they start run without the library.
#[derive(Debug)]
pub(super) struct RecordingLibraryFolder {
    folder: OwnFolder,
    pub(super) region: Arc<MappedRecordRegion>,
    /// The region's file, which programs open by this process.
    file: OwnedFd,
    /// Where libraries hand over listeners.
    pub(super) door: Option<OwnedFd>,
}

impl RecordingLibraryFolder {
    /// In the first of the usual places in which a library can be.
    pub(super) fn make(layout: RecordRegionLayout) -> io::Result<RecordingLibraryFolder> {
        let (region, file) = MappedRecordRegion::create(layout)?;
        let folder = OwnFolder::make()?;
        let mut place =
            RecordingLibraryFolder { folder, region: Arc::new(region), file, door: None };
        fs::write(place.library(), preload::LIBRARY)?;
        fs::set_permissions(place.library(), Permissions::from_mode(0o755))?;
        place.door = Some(unix::bind_path(&place.folder.path().join(DOOR), 0o600)?);
        // Programs of root may change their user.
        if process::current_user().uid == 0 {
            fs::set_permissions(place.folder.path(), Permissions::from_mode(0o755))?;
        }
        Ok(place)
    }

    /// The variables of a program that leaves records. `preload` is that of its own.
    pub(super) fn variables(&self, preload: Option<OsString>) -> [(OsString, OsString); 3] {
        let process = process::current().as_raw_nonzero();
        let region = format!("/proc/{process}/fd/{}", self.file.as_raw_fd());
        [
            ("LD_PRELOAD".into(), with_library(preload, &self.library())),
            (preload::REGION_VARIABLE.into(), region.into()),
            (preload::DOOR_VARIABLE.into(), self.folder.path().join(DOOR).into()),
        ]
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libwindtunnel.so")
    }
}

const DOOR: &str = "door";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_the_users_alone_and_go_with_the_recording() {
        let place =
            RecordingLibraryFolder::make(RecordRegionLayout { rings: 1, slots: 64, sockets: 64 })
                .unwrap();
        let folder = place.folder.path().to_owned();
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode();
        assert_eq!(mode(DOOR) & 0o777, 0o600);
        assert_eq!(mode("libwindtunnel.so") & 0o777, 0o755);
        let [_, (_, region), _] = place.variables(None);
        assert!(
            MappedRecordRegion::open(
                fs::File::options().read(true).write(true).open(region).unwrap()
            )
            .is_ok()
        );
        drop(place);
        assert!(!folder.exists());
    }
}
