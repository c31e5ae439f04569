//! The disks of the machine, and which of them the kernel divides by weight.
//!
//! Source: the kernel's documents sysfs-block, cgroup-v2 and bfq-iosched.

use std::fs;
use std::path::Path;

/// A whole device; limits of the kernel are not for partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    pub(crate) number: DeviceNumber,
    pub(crate) name: String,
    /// Whether it holds anything now: a loop device gets its file later, a reader its card.
    pub(crate) has_size: bool,
    /// Whether what goes to it goes on to others, under the same group: loop, dm, md.
    pub(crate) is_stacked: bool,
    /// The weights that it obeys.
    pub(crate) divided_by: Option<DiskWeightMechanism>,
}

/// Major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber(pub u32, pub u32);

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// What divides a disk by weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskWeightMechanism {
    /// The scheduler BFQ, by `io.bfq.weight`.
    Bfq,
    /// io.cost, by `io.weight`.
    Cost,
}

/// The devices of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DiskInventory {
    /// Those that are limited.
    pub(crate) limited: Vec<BlockDevice>,
    /// Those that are memory: `ram`, `zram`.
    pub(crate) memory: Vec<DeviceNumber>,
}

impl DiskInventory {
    /// Finds them; `groups` is the outermost folder of version 2 that can be seen.
    pub(crate) fn of_machine(groups: Option<&Path>) -> DiskInventory {
        let costs = groups.map(|it| fs::read_to_string(it.join("io.cost.qos")));
        DiskInventory::of(Path::new("/sys/block"), &costs.and_then(Result::ok).unwrap_or_default())
    }

    /// Those of a folder like `/sys/block`.
    fn of(folder: &Path, costs: &str) -> DiskInventory {
        let mut disks = DiskInventory::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let Some(number) = DeviceNumber::of(read("dev").trim()) else { continue };
            if name.starts_with("ram") || name.starts_with("zram") {
                disks.memory.push(number);
                continue;
            }
            let lower = entry.path().join("slaves");
            let is_stacked = name.starts_with("loop")
                || fs::read_dir(lower).is_ok_and(|mut all| all.next().is_some());
            let has_size = read("size").trim().parse::<u64>().is_ok_and(|size| size > 0);
            let divided_by = division(&read("queue/scheduler"), costs, number);
            disks.limited.push(BlockDevice { number, name, has_size, is_stacked, divided_by });
        }
        disks.limited.sort_by_key(|disk| disk.number);
        disks
    }

    /// Whether there is anything to limit.
    pub(crate) fn is_empty(&self) -> bool {
        !self.limited.iter().any(|disk| disk.has_size)
    }

    /// Why weights would not divide all of the disks; `None`: they do.
    pub(crate) fn undivided(&self) -> Option<String> {
        let real = || self.limited.iter().filter(|disk| disk.has_size);
        let ends = || real().filter(|disk| !disk.is_stacked && disk.divided_by.is_none());
        if let Some(disk) = ends().next() {
            let name = &disk.name;
            return Some(format!("disk {name} has neither the scheduler BFQ nor io.cost"));
        }
        let divided = real().any(|disk| disk.divided_by.is_some());
        (!divided).then(|| "no disk has the scheduler BFQ or io.cost".to_owned())
    }
}

impl DeviceNumber {
    /// `8:0`.
    pub(crate) fn of(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.split_once(':')?;
        Some(DeviceNumber(major.parse().ok()?, minor.parse().ok()?))
    }
}

fn division(schedulers: &str, costs: &str, number: DeviceNumber) -> Option<DiskWeightMechanism> {
    if schedulers.contains("[bfq]") {
        return Some(DiskWeightMechanism::Bfq);
    }
    let own = |line: &&str| line.split(' ').next().and_then(DeviceNumber::of) == Some(number);
    let line = costs.lines().find(own)?;
    line.contains(" enable=1 ").then_some(DiskWeightMechanism::Cost)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder like `/sys/block`, with each disk's name, number, size and schedulers.
    fn blocks(disks: &[(&str, &str, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, number, size, schedulers) in disks {
            let disk = folder.path().join(name);
            fs::create_dir_all(disk.join("queue")).unwrap();
            fs::create_dir(disk.join("slaves")).unwrap();
            fs::write(disk.join("dev"), format!("{number}\n")).unwrap();
            fs::write(disk.join("size"), format!("{size}\n")).unwrap();
            fs::write(disk.join("queue/scheduler"), format!("{schedulers}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn whole_devices_are_limited_and_memory_is_not() {
        let folder = blocks(&[
            ("sda", "8:0", "4096", "[mq-deadline] bfq none"),
            ("zram0", "253:0", "4096", ""),
            ("ram15", "1:15", "4096", ""),
            ("loop3", "7:3", "0", "[none]"),
        ]);
        let disks = DiskInventory::of(folder.path(), "");
        let seen: Vec<_> =
            disks.limited.iter().map(|it| (it.name.as_str(), it.number, it.has_size)).collect();
        assert_eq!(seen, [("loop3", DeviceNumber(7, 3), false), ("sda", DeviceNumber(8, 0), true)]);
        assert_eq!(disks.memory.len(), 2);
        assert!(!disks.is_empty());
        let folder = blocks(&[("loop3", "7:3", "0", "[none]"), ("zram0", "253:0", "9", "")]);
        assert!(DiskInventory::of(folder.path(), "").is_empty(), "no disk with anything on it");
    }

    #[test]
    fn weights_need_bfq_or_io_cost_on_each_disk_that_stands_on_no_other() {
        let undivided = |disks: &[(&str, &str, &str, &str)], costs: &str| {
            DiskInventory::of(blocks(disks).path(), costs).undivided()
        };
        let sda = ("sda", "8:0", "4096", "none mq-deadline [bfq]");
        let sdb = ("sdb", "8:16", "4096", "none [mq-deadline] bfq");
        let snap = ("loop0", "7:0", "99", "[none] bfq");
        assert_eq!(undivided(&[sda, snap], ""), None);
        let of_sdb = "8:32 enable=1 ctrl=auto\n8:16 enable=1 ctrl=auto model=linear\n";
        assert_eq!(undivided(&[sda, sdb], of_sdb), None);
        let off = "8:16 enable=0 ctrl=auto model=linear\n";
        let why = "disk sdb has neither the scheduler BFQ nor io.cost";
        assert_eq!(undivided(&[sda, sdb], off).as_deref(), Some(why));
        let none = "no disk has the scheduler BFQ or io.cost";
        assert_eq!(undivided(&[snap], "").as_deref(), Some(none));
    }
}
