//! A file that only shows what writing costs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_evidence::file::{Header, Source};
use windtunnel_model::record::Record;
use windtunnel_sys::clock;

use super::files::{Files, Limits};

/// A file of records that is removed when all is measured.
#[derive(Debug)]
pub(crate) struct Scratch {
    files: Files,
    path: PathBuf,
}

impl Scratch {
    /// # Errors
    /// If the file cannot be made.
    pub(crate) fn create(folder: &Path, header: Header) -> io::Result<Scratch> {
        let limits = Limits { max: u64::MAX, rotate: u64::MAX, keep: None };
        let mut files = Files::new(folder.to_owned(), PREFIX.to_owned(), header, limits);
        files.open(clock::monotonic_ns())?;
        Ok(Scratch { files, path: folder.join(format!("{PREFIX}0001.wtr")) })
    }

    /// # Errors
    /// If they cannot be written.
    pub(crate) fn write(&mut self, source: Source, records: &[Record]) -> io::Result<()> {
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
