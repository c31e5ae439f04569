//! A control group of the kernel that limits what its processes use.
//!
//! Source: the kernel's documents cgroup-v2, cgroup-v1/memory, cgroup-v1/pids and sched-bwc.

mod cpu;
mod disk;
mod memory;
mod pids;
mod time;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;

use windtunnel_budget::processor::CpuUsageReading;
use windtunnel_model::{LimitMechanism, Resource, ResourceAmounts};
use windtunnel_sys::process::Pid;

use crate::disks::DiskInventory;
use crate::membership::{CgroupMembership, EscapedProcess};
use crate::place::{CgroupFolders, CgroupParentFolders, GROUPED};
use cpu::CpuFiles;
use disk::DiskFiles;
use memory::MemoryFiles;
use pids::PidsFiles;
use time::TimeFile;

pub use disk::{DiskReading, DiskTransferCounts, DiskUse};
pub use memory::MemoryReading;
pub use pids::PidsReading;

/// What a group is to limit; what is `None` is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// What all in it may use together; none limits descriptors.
    pub most: ResourceAmounts,
    /// Thousandths of a processor that it has when all others want theirs: its weight among them.
    pub cpu_guarantee_millis: Option<u32>,
    /// Its part of disks among groups beside it, 1 to 100.
    pub disk_weight: Option<u32>,
    /// Whether disks may be limited later.
    pub has_disk: bool,
}

/// A group of the calling process. Dropping it removes it, once its processes have ended.
#[derive(Debug)]
pub struct ControlGroup {
    place: CgroupParentFolders,
    cpu: Option<CpuFiles>,
    memory: Option<MemoryFiles>,
    pids: Option<PidsFiles>,
    disk: Option<DiskFiles>,
    entrances: Vec<File>,
    time: Option<TimeFile>,
    membership: CgroupMembership,
    /// Last: its files are closed before.
    folders: CgroupFolders,
}

impl CgroupLimits {
    /// So much, and no weights.
    #[must_use]
    pub fn of(most: ResourceAmounts) -> CgroupLimits {
        CgroupLimits { most, ..CgroupLimits::default() }
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.resources().is_empty()
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let is_asked = |resource: &Resource| {
            self.most.of(*resource).is_some()
                || match resource {
                    Resource::Cpu => self.cpu_guarantee_millis.is_some(),
                    Resource::Disk => self.disk_weight.is_some() || self.has_disk,
                    _ => false,
                }
        };
        GROUPED.into_iter().filter(is_asked).collect()
    }
}

impl ControlGroup {
    /// Makes a group at a place that limits what can be limited there. `outside` is where processes
    /// come from that enter it, and `around` the membership of the group that it is in.
    pub(crate) fn make(
        place: &CgroupParentFolders,
        outside: &CgroupParentFolders,
        around: &CgroupMembership,
        name: &str,
        bounds: &CgroupLimits,
        disks: &DiskInventory,
    ) -> io::Result<ControlGroup> {
        let resources = bounds.resources();
        let (place, folders) = place.make(name, &resources)?;
        let mut group = ControlGroup::open(place, outside, &resources, disks, folders)?;
        group.membership.add(around);
        group.set(bounds)?;
        Ok(group)
    }

    /// Where its processes are.
    pub(crate) fn membership(&self) -> &CgroupMembership {
        &self.membership
    }

    /// The group at a place that another process has made for these resources.
    pub(crate) fn join(
        place: CgroupParentFolders,
        outside: &CgroupParentFolders,
        resources: &[Resource],
    ) -> io::Result<ControlGroup> {
        let folders = place.folders_in(outside);
        let disks = DiskInventory::default();
        let mut group =
            ControlGroup::open(place, outside, resources, &disks, CgroupFolders::default())?;
        group.folders = folders;
        Ok(group)
    }

    fn open(
        place: CgroupParentFolders,
        outside: &CgroupParentFolders,
        resources: &[Resource],
        disks: &DiskInventory,
        folders: CgroupFolders,
    ) -> io::Result<ControlGroup> {
        let has = |resource| resources.contains(&resource).then_some(());
        let membership = CgroupMembership::of(&place, &place.own_folders(outside), resources);
        Ok(ControlGroup {
            membership,
            cpu: has(Resource::Cpu).and_then(|()| CpuFiles::open(&place)),
            memory: has(Resource::Memory).and_then(|()| MemoryFiles::open(&place)),
            pids: has(Resource::Pids).and_then(|()| PidsFiles::open(&place)),
            disk: has(Resource::Disk).and_then(|()| DiskFiles::open(&place, disks)),
            entrances: place.entrances(outside)?,
            time: TimeFile::open(&place, outside),
            place,
            folders,
        })
    }

    /// Leaves it to the other processes that are in it.
    pub fn leave(mut self) {
        self.folders.leave();
    }

    /// Puts a process, and so all that it will start, into the group.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(&mut self, process: u32) -> io::Result<()> {
        self.entrances.iter_mut().try_for_each(|file| put(file, &process.to_string()))
    }

    /// Those of some processes that are not in it, which they once were.
    pub fn outsiders(&mut self, processes: &[Pid]) -> Vec<EscapedProcess> {
        self.membership.outsiders(processes)
    }

    /// What it limits, and what groups do that it is in.
    #[must_use]
    pub fn limited_around(&self) -> Vec<Resource> {
        self.membership.resources()
    }

    /// What does not limit a process that is not in it, or in a group around it, any more.
    #[must_use]
    pub fn left_by(&self, process: Pid) -> Vec<Resource> {
        self.membership.left_by(process)
    }

    /// Puts those of some processes into it again that have left it, as [`ControlGroup::put_back`].
    pub fn bring_back(&mut self, processes: &[Pid]) -> Vec<(Vec<Resource>, String)> {
        let outsiders = self.outsiders(processes);
        self.put_back(outsiders)
    }

    /// Puts processes into it that have left it, or groups around it. Returns a sentence for each, with
    /// what did not limit it meanwhile.
    pub fn put_back(&mut self, outsiders: Vec<EscapedProcess>) -> Vec<(Vec<Resource>, String)> {
        let each = outsiders.into_iter().map(|EscapedProcess { pid, name, resources }| {
            let number = pid.as_raw_nonzero().get();
            let done = match self.attach(number.unsigned_abs()) {
                Ok(()) => "was put back".to_owned(),
                Err(error) => format!("cannot be put back: {error}"),
            };
            (resources, format!("process {number} ({name}) had left its control group, and {done}"))
        });
        each.collect()
    }

    /// What it limits otherwise than it was asked to, as somebody else has changed it, a sentence each.
    /// It limits that as it was asked from now on.
    pub fn correct(&mut self) -> Vec<(Resource, String)> {
        let all = [
            (Resource::Cpu, self.cpu.as_mut().and_then(CpuFiles::correct)),
            (Resource::Memory, self.memory.as_mut().and_then(MemoryFiles::correct)),
            (Resource::Pids, self.pids.as_mut().and_then(PidsFiles::correct)),
        ];
        all.into_iter().filter_map(|(resource, why)| Some((resource, why?))).collect()
    }

    /// Thousandths of a processor that the groups around it leave it, where that is less than it was
    /// asked to.
    #[must_use]
    pub fn processors_around(&self) -> Option<u32> {
        self.cpu.as_ref().and_then(CpuFiles::around)
    }

    /// What a process writes `0` to, to be in the group.
    #[must_use]
    pub fn entrances(&self) -> &[File] {
        &self.entrances
    }

    /// By what another process finds it: [`LimitMechanismChoice::within`](crate::LimitMechanismChoice::within).
    #[must_use]
    pub fn address(&self) -> String {
        self.place.address()
    }

    /// Its folders, where `outside` has others.
    pub(crate) fn folders(&self, outside: &CgroupParentFolders) -> Vec<PathBuf> {
        self.place.own_folders(outside)
    }

    /// Where groups are made inside of this one.
    pub(crate) fn place(&self) -> &CgroupParentFolders {
        &self.place
    }

    /// Limits what is said, of what the group was made for; what is `None` stays as it is.
    ///
    /// # Errors
    /// What the kernel says, such as `EBUSY` for less memory than is in use. More processor time than
    /// the groups around may have is none: see [`ControlGroup::processors_around`].
    pub fn set(&mut self, bounds: &CgroupLimits) -> io::Result<()> {
        let most = bounds.most;
        if let Some(files) = &mut self.cpu {
            most.cpu_millis.map_or(Ok(()), |millis| files.limit(narrowed(millis)))?;
            bounds.cpu_guarantee_millis.map_or(Ok(()), |share| files.weigh(share))?;
        }
        if let (Some(files), Some(bytes)) = (&mut self.memory, most.memory) {
            files.limit(bytes)?;
        }
        if let (Some(files), Some(count)) = (&mut self.pids, most.pids) {
            files.limit(narrowed(count))?;
        }
        if let Some(files) = &mut self.disk {
            most.disk.map_or(Ok(()), |rate| files.limit_all(rate))?;
            bounds.disk_weight.map_or(Ok(()), |weight| files.weigh(weight))?;
        }
        Ok(())
    }

    /// Whether it limits a resource.
    #[must_use]
    pub fn limits(&self, resource: Resource) -> bool {
        match resource {
            Resource::Cpu => self.cpu.is_some(),
            Resource::Memory => self.memory.is_some(),
            Resource::Pids => self.pids.is_some(),
            Resource::Disk => self.disk.is_some(),
            Resource::OpenFiles => false,
        }
    }

    /// The version of groups by which it limits a resource, if it does.
    #[must_use]
    pub fn mechanism(&self, resource: Resource) -> Option<LimitMechanism> {
        self.place.mechanism(resource).filter(|_| self.limits(resource))
    }

    /// What the group has had of processors so far; `None` if it does not limit them.
    ///
    /// # Errors
    /// If the kernel's accounts cannot be read.
    pub fn read(&mut self) -> Option<io::Result<CpuUsageReading>> {
        self.cpu.as_mut().map(CpuFiles::read)
    }

    /// Nanoseconds of processor time of all that was in it so far, whatever it limits. `None`: the
    /// kernel does not count that, or it cannot be read.
    pub fn time_ns(&mut self) -> Option<u64> {
        self.time.as_mut().and_then(|file| file.read().ok())
    }

    /// What it has of memory; `None` if it does not limit it.
    ///
    /// # Errors
    /// If the kernel's accounts cannot be read.
    pub fn memory(&mut self) -> Option<io::Result<MemoryReading>> {
        self.memory.as_mut().map(MemoryFiles::read)
    }

    /// How many processes it has; `None` if it does not limit them.
    ///
    /// # Errors
    /// If the kernel's accounts cannot be read.
    pub fn pids(&mut self) -> Option<io::Result<PidsReading>> {
        self.pids.as_mut().map(PidsFiles::read)
    }

    /// What it has had of disks; `None` if it does not limit them. A disk that has appeared is
    /// limited from now on.
    ///
    /// # Errors
    /// If the kernel's accounts cannot be read, or a new disk cannot be limited.
    pub fn disks(&mut self) -> Option<io::Result<DiskReading>> {
        self.disk.as_mut().map(DiskFiles::read)
    }
}

/// The kernel has no more than this.
fn narrowed(amount: u64) -> u32 {
    u32::try_from(amount).unwrap_or(u32::MAX)
}

/// One write(2), as the kernel wants it.
fn put(file: &mut File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.write_all(text.as_bytes())
}

fn get(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// What was found in place of what was set, and whether it is as it was again.
fn changed(file: &str, found: &str, asked: &str, again: io::Result<()>) -> String {
    let found = found.trim();
    let again = match again {
        Ok(()) => "it was set again".to_owned(),
        Err(error) => format!("it cannot be set again: {error}"),
    };
    format!("{file} of its control group was changed to `{found}` from `{asked}`, and {again}")
}

/// A limit that may not be there any more.
fn unreadable(file: &str, error: &io::Error) -> String {
    format!("{file} of its control group cannot be read back: {error}")
}

/// A file of one number.
fn number(file: &mut File, name: &str) -> io::Result<u64> {
    get(file)?.trim().parse().map_err(|_| malformed(name))
}

/// `name value`, a pair a line.
fn value(text: &str, name: &str) -> io::Result<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(other, _)| *other == name).and_then(|(_, value)| value.parse().ok());
    found.ok_or_else(|| malformed(name))
}

fn malformed(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed account of a group: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_pairs_of_a_name_and_a_number() {
        let text = "usage_usec 17\nnr_throttled 3\nthrottled_usec 250\n";
        assert_eq!(value(text, "throttled_usec").unwrap(), 250);
        assert!(value(text, "throttled").is_err());
        assert!(value("usage_usec x", "usage_usec").is_err());
    }

    #[test]
    fn what_is_asked_says_which_controllers_are_needed() {
        assert!(CgroupLimits::default().is_none());
        let most = ResourceAmounts::only(Resource::Pids, 5);
        let bounds = CgroupLimits { cpu_guarantee_millis: Some(1), ..CgroupLimits::of(most) };
        assert_eq!(bounds.resources(), [Resource::Cpu, Resource::Pids]);
    }
}
