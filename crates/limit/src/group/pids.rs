//! How many processes and threads a group has. At its limit fork(2) fails with `EAGAIN`.

use std::fs::File;
use std::io;

use windtunnel_model::Resource;

use super::{changed, get, number, put, unreadable, value};
use crate::place::{CgroupParentFolders, read_write};

/// How many processes and threads a group has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PidsReading {
    /// Now.
    pub count: u64,
    /// The most that there were.
    pub peak: u64,
    /// How often one could not be made.
    pub refused: u64,
}

/// The same files in both versions.
#[derive(Debug)]
pub(super) struct PidsFiles {
    max: File,
    /// What was asked.
    asked: Option<u32>,
    current: File,
    /// Since Linux 6.0.
    peak: Option<File>,
    events: File,
    /// The most that was read, where the kernel does not keep it.
    seen: u64,
}

impl PidsFiles {
    /// `None` where the place limits no processes, or cannot be opened.
    pub(super) fn open(place: &CgroupParentFolders) -> Option<PidsFiles> {
        let folder = match place.given.contains(&Resource::Pids) {
            true => place.unified.as_deref()?,
            false => place.first_folder(Resource::Pids)?,
        };
        Some(PidsFiles {
            max: read_write(&folder.join("pids.max")).ok()?,
            asked: None,
            current: File::open(folder.join("pids.current")).ok()?,
            peak: File::open(folder.join("pids.peak")).ok(),
            events: File::open(folder.join("pids.events")).ok()?,
            seen: 0,
        })
    }

    pub(super) fn limit(&mut self, count: u32) -> io::Result<()> {
        put(&mut self.max, &count.to_string())?;
        self.asked = Some(count);
        Ok(())
    }

    /// Sets what another process has changed, and says what.
    pub(super) fn correct(&mut self) -> Option<String> {
        let asked = self.asked?;
        let found = match get(&mut self.max) {
            Ok(found) => found,
            Err(error) => return Some(unreadable("pids.max", &error)),
        };
        if found.trim() == asked.to_string() {
            return None;
        }
        Some(changed("pids.max", &found, &asked.to_string(), self.limit(asked)))
    }

    pub(super) fn read(&mut self) -> io::Result<PidsReading> {
        let count = number(&mut self.current, "pids.current")?;
        self.seen = self.seen.max(count);
        let peak = self.peak.as_mut().and_then(|peak| number(peak, "pids.peak").ok());
        let refused = value(&get(&mut self.events)?, "max")?;
        Ok(PidsReading { count, peak: peak.unwrap_or(self.seen), refused })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_limit_that_somebody_else_has_changed_is_set_again_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("pids.max", "max\n"), ("pids.current", "1\n"), ("pids.events", "max 0\n")];
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let unified = Some(folder.path().to_owned());
        let place = CgroupParentFolders {
            unified,
            given: vec![Resource::Pids],
            ..CgroupParentFolders::default()
        };
        let mut files = PidsFiles::open(&place).unwrap();
        assert_eq!(files.correct(), None, "nothing was asked");
        files.limit(345).unwrap();
        let max = folder.path().join("pids.max");
        // The kernel reads what is written as a whole; this is an ordinary file.
        fs::write(&max, "345\n").unwrap();
        assert_eq!(files.correct(), None);
        fs::write(&max, "max\n").unwrap();
        let expected = "pids.max of its control group was changed to `max` from `345`, and it was \
                        set again";
        assert_eq!(files.correct().as_deref(), Some(expected));
        assert_eq!(fs::read_to_string(&max).unwrap().trim(), "345");
    }
}
