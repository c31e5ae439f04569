//! A limit that is held, and what came of it.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::resource::{Resource, ResourceAmounts};

/// How programs are held to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitMechanism {
    /// A control group of version 2.
    #[serde(rename = "cgroup v2")]
    GroupV2,
    /// A control group of version 1.
    #[serde(rename = "cgroup v1")]
    GroupV1,
    /// The same, and a watch over what processes had before they entered it.
    #[serde(rename = "cgroup v2 and watch")]
    GroupV2AndWatch,
    /// The same, of version 1.
    #[serde(rename = "cgroup v1 and watch")]
    GroupV1AndWatch,
    /// SIGSTOP and SIGCONT from the node's init, or from above a tree.
    #[serde(rename = "duty cycle")]
    DutyCycle,
    /// A thread there looks often, and ends processes.
    #[serde(rename = "watch")]
    Watch,
    /// A limit that the kernel keeps for the node's own user namespace, setrlimit(2).
    #[serde(rename = "user namespace")]
    Namespace,
    /// A limit that the kernel keeps for each process, setrlimit(2).
    #[serde(rename = "rlimit")]
    PerProcess,
    /// Nothing can.
    #[serde(rename = "none")]
    Nothing,
}

/// A limit, what holds it, and what came of it so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLimit {
    /// What holds it.
    pub mechanism: LimitMechanism,
    /// Bytes, processes and threads, descriptors of each process, bytes a second of each disk in each
    /// direction, or thousandths of a processor that are allowed now.
    pub asked: u64,
    /// What is used, as far as that is known; of a disk, in the last whole second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The most that was used; of `disk`, in one second of one disk in one direction. Absent where
    /// that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// How often the limit was met: memory had to be taken back, a process could not be made, one
    /// was ended, or a second brought at least 95 % of what a disk may.
    pub met: u64,
    /// Processes that were ended for it.
    pub ended: u64,
    /// The names of some of these, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Faults for which a page had to be read from a disk: only of `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<u64>,
    /// Pages that the kernel took back: only of `memory` in a group of version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<u64>,
    /// Pages of files that were taken back and then read again: only of `memory` in a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted: Option<u64>,
    /// Bytes that were read of all disks: only of `disk`. What goes through a disk that stands on
    /// another one, such as a loop device, counts for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Bytes that were written to all disks, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// Why the limit could not be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What limits a node, a reservation or a command now, and what it uses of that: in its last whole
/// second, or at the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Nothing is said of what is not limited.
    pub asked: ResourceAmounts,
    /// Nothing is said of what is not known.
    pub used: ResourceAmounts,
}

impl LimitMechanism {
    /// Whether a control group holds it.
    #[must_use]
    pub const fn is_group(self) -> bool {
        use LimitMechanism::{GroupV1, GroupV1AndWatch, GroupV2, GroupV2AndWatch};
        matches!(self, GroupV1 | GroupV2 | GroupV1AndWatch | GroupV2AndWatch)
    }

    /// Whether a process looks after it, which is asked to.
    #[must_use]
    pub const fn needs_limiter(self) -> bool {
        use LimitMechanism::{DutyCycle, GroupV1AndWatch, GroupV2AndWatch, Namespace, Watch};
        matches!(self, DutyCycle | Watch | Namespace | GroupV1AndWatch | GroupV2AndWatch)
    }

    /// This group, with a watch beside it.
    #[must_use]
    pub const fn and_watch(self) -> LimitMechanism {
        match self {
            LimitMechanism::GroupV2 => LimitMechanism::GroupV2AndWatch,
            LimitMechanism::GroupV1 => LimitMechanism::GroupV1AndWatch,
            other => other,
        }
    }
}

impl fmt::Display for LimitMechanism {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LimitMechanism::GroupV2 => "cgroup v2",
            LimitMechanism::GroupV1 => "cgroup v1",
            LimitMechanism::GroupV2AndWatch => "cgroup v2 and watch",
            LimitMechanism::GroupV1AndWatch => "cgroup v1 and watch",
            LimitMechanism::DutyCycle => "duty cycle",
            LimitMechanism::Watch => "watch",
            LimitMechanism::Namespace => "user namespace",
            LimitMechanism::PerProcess => "rlimit",
            LimitMechanism::Nothing => "none",
        })
    }
}

impl HeldLimit {
    /// So much of a resource is allowed, and nothing was used yet.
    #[must_use]
    pub fn new(resource: Resource, mechanism: LimitMechanism, asked: u64) -> HeldLimit {
        let zero_of = |these: &[Resource]| these.contains(&resource).then_some(0);
        let used = zero_of(&[Resource::Memory, Resource::Pids, Resource::Disk]);
        let of_disk = zero_of(&[Resource::Disk]);
        HeldLimit {
            mechanism,
            asked,
            used,
            peak: used,
            met: 0,
            ended: 0,
            names: Vec::new(),
            faults: zero_of(&[Resource::Memory]),
            evicted: None,
            refaulted: None,
            read: of_disk,
            written: of_disk,
            failure: None,
        }
    }

    /// It could not be held. The first reason counts.
    pub fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// So much is used now.
    pub fn note_used(&mut self, used: u64, peak: u64) {
        (self.used, self.peak) = (Some(used), Some(peak));
    }
}

impl ResourceUsage {
    /// Whether nothing limits it that is written.
    #[must_use]
    pub fn is_none(&self) -> bool {
        NAMES.iter().all(|(it, ..)| self.asked.of(*it).or(self.used.of(*it)).is_none())
    }
}

/// The names of what is asked and used; descriptors are asked of each process.
const NAMES: [(Resource, &str, &str); 4] = [
    (Resource::Cpu, "cpu_millis", "cpu_used_millis"),
    (Resource::Memory, "memory", "memory_used"),
    (Resource::Pids, "pids", "pids_used"),
    (Resource::Disk, "disk", "disk_used"),
];

impl Serialize for ResourceUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pairs = NAMES.into_iter().flat_map(|(resource, asked, used)| {
            [(asked, self.asked.of(resource)), (used, self.used.of(resource))]
        });
        serializer.collect_map(pairs.filter_map(|(name, amount)| Some((name, amount?))))
    }
}

impl<'de> Deserialize<'de> for ResourceUsage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amounts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let of = |name: &str| amounts.get(name).copied();
        Ok(NAMES.into_iter().fold(ResourceUsage::default(), |all, (resource, asked, used)| {
            ResourceUsage {
                asked: all.asked.with(resource, of(asked)),
                used: all.used.with(resource, of(used)),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_mechanism_is_written_as_it_is_shown() {
        for mechanism in [
            LimitMechanism::GroupV2,
            LimitMechanism::GroupV1.and_watch(),
            LimitMechanism::DutyCycle,
            LimitMechanism::Namespace,
            LimitMechanism::PerProcess,
            LimitMechanism::Nothing,
        ] {
            let written = serde_json::to_value(mechanism).unwrap();
            assert_eq!(written, mechanism.to_string());
            assert_eq!(serde_json::from_value::<LimitMechanism>(written).unwrap(), mechanism);
        }
    }

    #[test]
    fn what_is_used_stands_behind_what_is_asked_and_nothing_is_said_of_the_rest() {
        let asked = ResourceAmounts {
            cpu_millis: Some(250),
            memory: Some(64),
            open_files: Some(9),
            ..ResourceAmounts::default()
        };
        let used = ResourceAmounts::only(Resource::Cpu, 249);
        let text = serde_json::to_string(&ResourceUsage { asked, used }).unwrap();
        assert_eq!(text, r#"{"cpu_millis":250,"cpu_used_millis":249,"memory":64}"#);
        let read: ResourceUsage = serde_json::from_str(&text).unwrap();
        assert_eq!((read.used, read.asked.memory), (used, Some(64)));
    }

    #[test]
    fn the_first_reason_counts() {
        let mut held = HeldLimit::new(Resource::Memory, LimitMechanism::Watch, 1000);
        held.fail("a".into());
        held.fail("b".into());
        assert_eq!(held.failure.as_deref(), Some("a"));
    }
}
