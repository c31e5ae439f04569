//! How many processes and threads a group has. At its limit fork(2) fails with `EAGAIN`.

use std::fs::File;
use std::io;

use super::{get, number, put, value};
use crate::place::{Place, Resource, write_only};

/// How many processes and threads a group has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessReading {
    /// Now.
    pub count: u64,
    /// The most that there were.
    pub peak: u64,
    /// How often one could not be made.
    pub refused: u64,
}

/// The same files in both versions.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    max: File,
    current: File,
    /// Since Linux 6.0.
    peak: Option<File>,
    events: File,
    /// The most that was read, where the kernel does not keep it.
    seen: u64,
}

impl ProcessFiles {
    /// `None` where the place limits no processes, or cannot be opened.
    pub(super) fn open(place: &Place) -> Option<ProcessFiles> {
        let folder = match place.given.contains(&Resource::Processes) {
            true => place.unified.as_deref()?,
            false => place.first_folder(Resource::Processes)?,
        };
        Some(ProcessFiles {
            max: write_only(&folder.join("pids.max")).ok()?,
            current: File::open(folder.join("pids.current")).ok()?,
            peak: File::open(folder.join("pids.peak")).ok(),
            events: File::open(folder.join("pids.events")).ok()?,
            seen: 0,
        })
    }

    pub(super) fn limit(&mut self, count: u32) -> io::Result<()> {
        put(&mut self.max, &count.to_string())
    }

    pub(super) fn read(&mut self) -> io::Result<ProcessReading> {
        let count = number(&mut self.current, "pids.current")?;
        self.seen = self.seen.max(count);
        let peak = self.peak.as_mut().and_then(|peak| number(peak, "pids.peak").ok());
        let refused = value(&get(&mut self.events)?, "max")?;
        Ok(ProcessReading { count, peak: peak.unwrap_or(self.seen), refused })
    }
}
