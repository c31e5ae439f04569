//! Where programs find what they leave records by.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_record::preload;
use windtunnel_sys::process;
use windtunnel_sys::region::MappedRecordRegion;

use crate::library::PreloadLibraryFolder;

/// The library and its door, and the memory.
#[derive(Debug)]
pub(super) struct RecordingLibraryFolder {
    library: PreloadLibraryFolder,
    pub(super) region: Arc<MappedRecordRegion>,
    /// The region's file, which programs open by this process.
    file: OwnedFd,
    /// Where libraries hand over listeners.
    pub(super) door: Option<OwnedFd>,
}

impl RecordingLibraryFolder {
    pub(super) fn make(layout: RecordRegionLayout) -> io::Result<RecordingLibraryFolder> {
        let (region, file) = MappedRecordRegion::create(layout)?;
        let library = PreloadLibraryFolder::make()?;
        let door = Some(library.make_door()?);
        Ok(RecordingLibraryFolder { library, region: Arc::new(region), file, door })
    }

    /// Adds the variables of a program that leaves records.
    pub(super) fn add_variables(&self, variables: &mut BTreeMap<OsString, OsString>) {
        let process = process::current().as_raw_nonzero();
        let region = format!("/proc/{process}/fd/{}", self.file.as_raw_fd());
        variables.insert(preload::REGION_VARIABLE.into(), region.into());
        self.library.add_variables(variables);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn the_files_are_the_users_alone_and_go_with_the_recording() {
        let place =
            RecordingLibraryFolder::make(RecordRegionLayout { rings: 1, slots: 64, sockets: 64 })
                .unwrap();
        let mut variables = BTreeMap::new();
        place.add_variables(&mut variables);
        let path = |name: &str| PathBuf::from(&variables[OsStr::new(name)]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        let (library, region) = (path("LD_PRELOAD"), path(preload::REGION_VARIABLE));
        assert_eq!(mode(&path(preload::DOOR_VARIABLE)) & 0o777, 0o600);
        assert_eq!(mode(&library) & 0o777, 0o755);
        assert!(
            MappedRecordRegion::open(
                fs::File::options().read(true).write(true).open(region).unwrap()
            )
            .is_ok()
        );
        drop(place);
        assert!(!library.parent().unwrap().exists());
    }
}
