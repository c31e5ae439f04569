//! What a group reads and writes of disks.
//!
//! Only version 2 does: there a write through the page cache is charged to the group whose page it
//! is, so that group has to have the memory controller, too. Version 1 sees such writes come from the
//! kernel's own threads.

use std::fs::File;
use std::io;

use windtunnel_model::Resource;
use windtunnel_sys::clock;

use super::{get, malformed, put};
use crate::disks::{DeviceNumber, DiskInventory, DiskWeightMechanism};
use crate::place::{CgroupParentFolders, write_only};

/// What a group has had of each disk so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskReading {
    /// By the monotonic clock.
    pub now_ns: u64,
    pub disks: Vec<DiskUse>,
}

/// What a group has had of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskUse {
    pub disk: DeviceNumber,
    pub read: DiskTransferCounts,
    pub written: DiskTransferCounts,
}

/// What was done in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTransferCounts {
    pub bytes: u64,
    pub requests: u64,
}

#[derive(Debug)]
pub(super) struct DiskFiles {
    max: File,
    stat: File,
    /// With what a weight of 1 is there.
    weights: Vec<(File, u32)>,
    /// Why a disk would not obey a weight.
    unweighed: Option<String>,
    /// What is memory is no disk.
    memory: Vec<DeviceNumber>,
    limited: Vec<DeviceNumber>,
    rate: Option<u64>,
}

impl DiskFiles {
    /// `None` where the place limits no disks, or cannot be opened.
    pub(super) fn open(place: &CgroupParentFolders, disks: &DiskInventory) -> Option<DiskFiles> {
        if !place.given.contains(&Resource::Disk) {
            return None;
        }
        let folder = place.unified.as_deref()?;
        let (mut weights, mut unweighed) = (Vec::new(), disks.undivided());
        for (by, name, one) in WEIGHTS {
            if disks.limited.iter().any(|it| it.divided_by == Some(by)) {
                match write_only(&folder.join(name)) {
                    Ok(file) => weights.push((file, one)),
                    Err(error) => unweighed = Some(format!("{name} of a group: {error}")),
                }
            }
        }
        Some(DiskFiles {
            max: write_only(&folder.join("io.max")).ok()?,
            stat: File::open(folder.join("io.stat")).ok()?,
            weights,
            unweighed,
            memory: disks.memory.clone(),
            limited: disks.limited.iter().map(|disk| disk.number).collect(),
            rate: None,
        })
    }

    /// Limits what may be read of each disk, and written, to bytes a second.
    pub(super) fn limit_all(&mut self, rate: u64) -> io::Result<()> {
        self.rate = Some(rate);
        self.limited.clone().into_iter().try_for_each(|disk| self.limit(disk, rate))
    }

    /// A disk that is gone by now needs no limit.
    fn limit(&mut self, disk: DeviceNumber, rate: u64) -> io::Result<()> {
        match put(&mut self.max, &format!("{disk} rbps={rate} wbps={rate}")) {
            Err(error) if error.raw_os_error() == Some(ENODEV) => Ok(()),
            done => done,
        }
    }

    /// Its part among groups beside it.
    pub(super) fn weigh(&mut self, weight: u32) -> io::Result<()> {
        if let Some(why) = &self.unweighed {
            return Err(io::Error::new(io::ErrorKind::Unsupported, why.clone()));
        }
        let mut files = self.weights.iter_mut();
        files.try_for_each(|(file, one)| put(file, &(weight * *one).to_string()))
    }

    /// Reads the account, and limits disks that have appeared in it.
    pub(super) fn read(&mut self) -> io::Result<DiskReading> {
        let now_ns = clock::monotonic_ns();
        let text = get(&mut self.stat)?;
        let uses = text.lines().filter(|line| !line.trim().is_empty()).map(DiskUse::of_line);
        let mut disks = uses.collect::<Option<Vec<_>>>().ok_or_else(|| malformed("io.stat"))?;
        disks.retain(|it| !self.memory.contains(&it.disk));
        for new in disks.iter().map(|it| it.disk) {
            if !self.limited.contains(&new) {
                self.limited.push(new);
                self.rate.map_or(Ok(()), |rate| self.limit(new, rate))?;
            }
        }
        Ok(DiskReading { now_ns, disks })
    }
}

impl DiskUse {
    /// `8:0 rbytes=90112 wbytes=0 rios=22 wios=0 dbytes=0 dios=0`. A disk that was not used has no
    /// more than its number.
    fn of_line(line: &str) -> Option<DiskUse> {
        let mut words = line.split_ascii_whitespace();
        let disk = DeviceNumber::of(words.next()?)?;
        let (mut read, mut written) =
            (DiskTransferCounts::default(), DiskTransferCounts::default());
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let count = match name {
                "rbytes" => &mut read.bytes,
                "rios" => &mut read.requests,
                "wbytes" => &mut written.bytes,
                "wios" => &mut written.requests,
                _ => continue,
            };
            *count = value.parse().ok()?;
        }
        Some(DiskUse { disk, read, written })
    }
}

/// The file of each kind of weight, and what a weight of 1 is there. What other groups of the machine
/// have is 100 in both; that of BFQ ends at 1000.
const WEIGHTS: [(DiskWeightMechanism, &str, u32); 2] = [
    (DiskWeightMechanism::Bfq, "io.bfq.weight", 10),
    (DiskWeightMechanism::Cost, "io.weight", 100),
];
/// errno(3): there is no such device.
const ENODEV: i32 = 19;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::disks::BlockDevice;

    fn files(folder: &Path, divided_by: Option<DiskWeightMechanism>) -> Option<DiskFiles> {
        let unified = Some(folder.to_owned());
        let place = CgroupParentFolders {
            unified,
            given: vec![Resource::Disk],
            ..CgroupParentFolders::default()
        };
        let disk = BlockDevice {
            number: DeviceNumber(8, 0),
            name: "sda".to_owned(),
            has_size: true,
            is_stacked: false,
            divided_by,
        };
        DiskFiles::open(
            &place,
            &DiskInventory { limited: vec![disk], memory: vec![DeviceNumber(253, 0)] },
        )
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn both_directions_of_a_disk_are_limited_and_one_that_appears_is_limited_when_it_is_seen() {
        let stat = "253:0 rbytes=9 wbytes=9 rios=1 wios=1 dbytes=0 dios=0\n\
                    8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n\
                    7:1 \n";
        let folder = folder(&[("io.max", ""), ("io.stat", stat)]);
        let mut files = files(folder.path(), None).unwrap();
        let text = || fs::read_to_string(folder.path().join("io.max")).unwrap();
        files.limit_all(1_000_000).unwrap();
        assert_eq!(text(), "8:0 rbps=1000000 wbps=1000000");
        let seen = files.read().unwrap();
        // The kernel takes lines; this is an ordinary file.
        assert_eq!(text(), "7:1 rbps=1000000 wbps=1000000");
        let read = DiskTransferCounts { bytes: 4096, requests: 1 };
        let written = DiskTransferCounts { bytes: 8192, requests: 2 };
        let unused = DiskUse {
            disk: DeviceNumber(7, 1),
            read: DiskTransferCounts::default(),
            written: DiskTransferCounts::default(),
        };
        assert_eq!(seen.disks, [DiskUse { disk: DeviceNumber(8, 0), read, written }, unused]);
    }

    #[test]
    fn a_weight_is_a_multiple_that_each_scheduler_has_room_for() {
        for (by, name, expected) in [
            (DiskWeightMechanism::Bfq, "io.bfq.weight", "1000"),
            (DiskWeightMechanism::Cost, "io.weight", "10000"),
        ] {
            let folder = folder(&[("io.max", ""), ("io.stat", ""), (name, "")]);
            let mut files = files(folder.path(), Some(by)).unwrap();
            files.weigh(100).unwrap();
            let text = fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_weight_that_nothing_obeys_is_refused() {
        let folder = folder(&[("io.max", ""), ("io.stat", "")]);
        let mut files = files(folder.path(), Some(DiskWeightMechanism::Bfq)).unwrap();
        assert!(files.weigh(2).is_err());
    }

    #[test]
    fn an_account_that_is_none_is_an_error() {
        let folder = folder(&[("io.max", ""), ("io.stat", "8:0 rbytes=x\n")]);
        assert!(files(folder.path(), None).unwrap().read().is_err());
    }
}
