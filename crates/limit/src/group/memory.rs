//! The memory of a group. At its limit the kernel takes back what it can, which are pages of files,
//! and then kills the largest of the group's processes.
//!
//! `memory.high` of version 2 is not used: a program that has nothing to give back is slowed down
//! by it without end, and never ended. Swap is not used either, where the kernel lets us say so: it
//! would move the load to the machine's disk, which is everybody's.

use std::fs::File;
use std::io;
use std::path::Path;

use windtunnel_model::Resource;
use windtunnel_sys::limits;

use super::{changed, get, number, put, unreadable, value};
use crate::place::{CgroupParentFolders, read_write, write_only};

/// What a group has of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// Bytes in use.
    pub used: u64,
    /// The most that were, since the group was made.
    pub peak: u64,
    /// How often the limit was met and memory had to be taken back.
    pub reclaims: u64,
    /// Faults for which a page had to be read from a disk.
    pub faults: u64,
    /// Pages that were taken back; only version 2 counts them.
    pub evicted: Option<u64>,
    /// Pages of files that were taken back and then read again (since Linux 3.15; in version 1
    /// since 5.9).
    pub refaulted: Option<u64>,
    /// Processes that were killed for it.
    pub killed: u64,
}

#[derive(Debug)]
pub(super) struct MemoryFiles {
    max: File,
    /// What was asked.
    asked: Option<u64>,
    /// With what is swapped out.
    with_swap: Option<File>,
    used: File,
    peak: Option<File>,
    stat: File,
    events: CgroupMemoryEventFiles,
    /// The most that was read, where the kernel does not keep it.
    seen: u64,
}

#[derive(Debug)]
enum CgroupMemoryEventFiles {
    V2 { events: File },
    V1 { failures: File, control: File },
}

impl MemoryFiles {
    /// `None` where the place limits no memory, or cannot be opened.
    pub(super) fn open(place: &CgroupParentFolders) -> Option<MemoryFiles> {
        if place.given.contains(&Resource::Memory) {
            let folder = place.unified.as_deref()?;
            let max = write_only(&folder.join("memory.swap.max"));
            // It is there only where the kernel counts swap.
            let _ = max.and_then(|mut max| put(&mut max, "0"));
            return Some(MemoryFiles {
                max: read_write(&folder.join("memory.max")).ok()?,
                asked: None,
                with_swap: None,
                used: File::open(folder.join("memory.current")).ok()?,
                peak: File::open(folder.join("memory.peak")).ok(),
                stat: File::open(folder.join("memory.stat")).ok()?,
                events: CgroupMemoryEventFiles::V2 {
                    events: File::open(folder.join("memory.events")).ok()?,
                },
                seen: 0,
            });
        }
        let folder = place.first_folder(Resource::Memory)?;
        MemoryFiles::first_version(folder).ok()
    }

    fn first_version(folder: &Path) -> io::Result<MemoryFiles> {
        let open = |name: &str| File::open(folder.join(name));
        let events = CgroupMemoryEventFiles::V1 {
            failures: open("memory.failcnt")?,
            control: open("memory.oom_control")?,
        };
        Ok(MemoryFiles {
            max: read_write(&folder.join("memory.limit_in_bytes"))?,
            asked: None,
            with_swap: write_only(&folder.join("memory.memsw.limit_in_bytes")).ok(),
            used: open("memory.usage_in_bytes")?,
            peak: open("memory.max_usage_in_bytes").ok(),
            stat: open("memory.stat")?,
            events,
            seen: 0,
        })
    }

    pub(super) fn limit(&mut self, bytes: u64) -> io::Result<()> {
        self.write(bytes)?;
        self.asked = Some(bytes);
        Ok(())
    }

    /// Sets what another process has changed, and says what. The kernel keeps whole pages.
    pub(super) fn correct(&mut self) -> Option<String> {
        let asked = self.asked?;
        let found = match get(&mut self.max) {
            Ok(found) => found,
            Err(error) => return Some(unreadable("the memory limit", &error)),
        };
        let is_held =
            found.trim().parse::<u64>().is_ok_and(|it| it.abs_diff(asked) < limits::page_bytes());
        if is_held {
            return None;
        }
        Some(changed("the memory limit", &found, &asked.to_string(), self.write(asked)))
    }

    fn write(&mut self, bytes: u64) -> io::Result<()> {
        let text = bytes.to_string();
        let Some(with_swap) = &mut self.with_swap else { return put(&mut self.max, &text) };
        // The limit with swap is never less than the one without: which goes first depends on
        // whether they grow.
        if put(&mut self.max, &text).is_err() {
            put(with_swap, &text)?;
            put(&mut self.max, &text)?;
        }
        put(with_swap, &text)
    }

    pub(super) fn read(&mut self) -> io::Result<MemoryReading> {
        let used = number(&mut self.used, "memory in use")?;
        self.seen = self.seen.max(used);
        let peak = self.peak.as_mut().and_then(|peak| number(peak, "memory peak").ok());
        let stat = get(&mut self.stat)?;
        let (reclaims, killed) = match &mut self.events {
            CgroupMemoryEventFiles::V2 { events } => {
                let text = get(events)?;
                (value(&text, "max")?, value(&text, "oom_kill")?)
            }
            CgroupMemoryEventFiles::V1 { failures, control } => {
                // Kernels before 4.13 do not count kills.
                let killed = value(&get(control)?, "oom_kill").unwrap_or(0);
                (number(failures, "memory.failcnt")?, killed)
            }
        };
        // With the groups within: version 2 always counts these.
        let with_all = |name: &str| value(&stat, &format!("total_{name}")).or(value(&stat, name));
        Ok(MemoryReading {
            used,
            peak: peak.unwrap_or(self.seen),
            reclaims,
            faults: with_all("pgmajfault")?,
            evicted: value(&stat, "pgsteal").ok(),
            refaulted: with_all("workingset_refault_file").ok(),
            killed,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn accounts_of_version_2_are_read_and_its_limit_leaves_no_room_in_swap() {
        let folder = folder(&[
            ("memory.max", "max"),
            ("memory.swap.max", "max"),
            ("memory.current", "4096\n"),
            ("memory.peak", "8192\n"),
            ("memory.stat", "workingset_refault_file 8\npgsteal 9\npgfault 7\npgmajfault 2\n"),
            ("memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\n"),
        ]);
        let unified = Some(folder.path().to_owned());
        let place = CgroupParentFolders {
            unified,
            given: vec![Resource::Memory],
            ..CgroupParentFolders::default()
        };
        let mut files = MemoryFiles::open(&place).unwrap();
        files.limit(64_000_000).unwrap();
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(text("memory.max"), "64000000");
        assert_eq!(&text("memory.swap.max")[..1], "0");
        let seen = files.read().unwrap();
        let expected = MemoryReading {
            used: 4096,
            peak: 8192,
            reclaims: 5,
            faults: 2,
            evicted: Some(9),
            refaulted: Some(8),
            killed: 1,
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn accounts_of_version_1_are_read_without_those_that_old_kernels_lack() {
        let folder = folder(&[
            ("memory.limit_in_bytes", ""),
            ("memory.usage_in_bytes", "4096\n"),
            ("memory.failcnt", "3\n"),
            ("memory.stat", "cache 0\npgmajfault 1\ntotal_pgmajfault 4\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"),
        ]);
        let mut files = MemoryFiles::first_version(folder.path()).unwrap();
        let expected = MemoryReading {
            used: 4096,
            peak: 4096,
            reclaims: 3,
            faults: 4,
            ..MemoryReading::default()
        };
        assert_eq!(files.read().unwrap(), expected);
    }
}
