//! A file that only shows what writing costs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_evidence::file::{EventSource, RecordFileHeader};
use windtunnel_model::record::EventRecord;
use windtunnel_sys::clock;

use super::files::{RecordFileLimits, RotatingRecordFiles};

/// A file of records that is removed when all is measured.
#[derive(Debug)]
pub(crate) struct ScratchRecordFile {
    files: RotatingRecordFiles,
    path: PathBuf,
}

impl ScratchRecordFile {
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn create(folder: &Path, header: RecordFileHeader) -> io::Result<ScratchRecordFile> {
        let limits = RecordFileLimits { max: u64::MAX, rotate: u64::MAX, keep: None };
        let mut files =
            RotatingRecordFiles::new(folder.to_owned(), PREFIX.to_owned(), header, limits);
        files.open(clock::monotonic_ns())?;
        Ok(ScratchRecordFile { files, path: folder.join(format!("{PREFIX}0001.wtr")) })
    }

    /// # Errors
    /// If they cannot be written.
    pub(crate) fn write(&mut self, source: EventSource, records: &[EventRecord]) -> io::Result<()> {
        let now = clock::monotonic_ns();
        self.files.add(now, source, records);
        self.files.flush(now);
        match self.files.status().failure {
            Some(why) => Err(io::Error::other(why)),
            None => Ok(()),
        }
    }

    /// # Errors
    /// If it cannot be removed.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

/// Not that of any file that is kept.
const PREFIX: &str = ".overhead-";
