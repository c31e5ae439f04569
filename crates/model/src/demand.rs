//! What a node, or one of its programs, has of its machine: limits, and what placement counts with.

use alloc::borrow::ToOwned;
use alloc::format;

use serde::{Deserialize, Serialize};

use crate::message::{PlanValidationError, Validate, ensure};
use crate::quantity::Bytes;
use crate::rate::Rate;
use crate::resource::ResourceAmounts;

/// What a node has of its machine, or a program of its node. Placement counts with that of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
pub struct Demand {
    /// Processors in thousandths, which programs use together at most; `None`: nothing limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Processors in thousandths that programs get whenever they want them: a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_min_millis: Option<u32>,
    /// Their part of what is not reserved, in proportion to the weights of others; `None`:
    /// [`Demand::WEIGHT_DEFAULT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u32>,
    /// Processors in thousandths that must be free on the machine, beside what others have reserved
    /// there; `None`: nothing is refused for lack of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_reserved_millis: Option<u32>,
    /// Memory that programs use together at most; `None`: nothing limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Memory that must be free, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_reserved: Option<Bytes>,
    /// Processes and threads together, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Descriptors that each process has open at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u32>,
    /// What programs together read of each disk at most, and what they write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Rate>,
    /// Their part of a disk that several want, in proportion to the weights of others; `None`:
    /// [`Demand::WEIGHT_DEFAULT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_weight: Option<u32>,
}

impl Demand {
    /// The weight where none is asked.
    pub const WEIGHT_DEFAULT: u32 = 1;
    /// The greatest weight: as cgroup v2 has it.
    pub const WEIGHT_MAX: u32 = 10_000;
    /// The least memory: fewer bytes do not hold a program that starts.
    pub const MEMORY_MIN: Bytes = Bytes(1_000_000);
    /// The most processes: what the kernel numbers.
    pub const PIDS_MAX: u32 = 4_194_304;
    /// The fewest descriptors: with fewer no dynamic program can start.
    pub const OPEN_FILES_MIN: u32 = 8;
    /// The most descriptors that the kernel allows a process (`fs.nr_open`, as it comes).
    pub const OPEN_FILES_MAX: u32 = 1_048_576;
    /// The least rate of a disk, in bits per second: 1 KB/s. At less, one request takes an hour.
    pub const DISK_MIN_BITS: u64 = 8_000;
    /// The greatest weight of a disk: all schedulers of the kernel have room for 1 to 100.
    pub const DISK_WEIGHT_MAX: u32 = 100;

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Demand::default()
    }

    /// Processors in thousandths that it uses at most, or has reserved where nothing limits it.
    #[must_use]
    pub fn most_cpu_millis(&self) -> Option<u32> {
        self.cpu_millis.or(self.cpu_min_millis)
    }

    /// Whether processors are to be divided by weight, which may use what others leave.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        self.cpu_min_millis.is_some() || self.cpu_weight.is_some()
    }

    /// Whether anything is asked of disks.
    #[must_use]
    pub fn asks_of_disks(&self) -> bool {
        self.disk.is_some() || self.disk_weight.is_some()
    }

    /// What may be used at most.
    #[must_use]
    pub fn limits(&self) -> ResourceAmounts {
        ResourceAmounts {
            cpu_millis: self.cpu_millis.map(u64::from),
            memory: self.memory.map(|memory| memory.0),
            pids: self.pids.map(u64::from),
            disk: self.disk.map(|rate| rate.bits_per_second() / 8),
            open_files: self.open_files.map(u64::from),
        }
    }

    /// What of this can change while programs run: limits but that of descriptors, and the part of
    /// processors that are divided.
    #[must_use]
    pub fn live(&self) -> Demand {
        Demand {
            cpu_reserved_millis: None,
            memory_reserved: None,
            open_files: None,
            disk_weight: None,
            ..*self
        }
    }
}

impl Validate for Demand {
    fn validate(&self) -> Result<(), PlanValidationError> {
        let in_range = |value: Option<u32>, least: u32, most: u32| {
            value.is_none_or(|value| (least..=most).contains(&value))
        };
        let shares = in_range(self.cpu_millis, 1, u32::MAX)
            && in_range(self.cpu_min_millis, 1, self.cpu_millis.unwrap_or(u32::MAX))
            && in_range(self.cpu_reserved_millis, 1, self.cpu_millis.unwrap_or(u32::MAX))
            && in_range(self.cpu_weight, 1, Demand::WEIGHT_MAX);
        ensure(shares, || "its share of processors cannot be one".to_owned())?;
        ensure(self.memory.is_none_or(|memory| memory >= Demand::MEMORY_MIN), || {
            format!("its memory is less than {}", Demand::MEMORY_MIN)
        })?;
        let most = self.memory.unwrap_or(Bytes(u64::MAX));
        ensure(self.memory_reserved.is_none_or(|reserved| reserved <= most), || {
            "it reserves more memory than it may use".to_owned()
        })?;
        let least = |rate: Rate| rate.bits_per_second() >= Demand::DISK_MIN_BITS;
        ensure(self.disk.is_none_or(least), || "its disk has less than 1KB/s".to_owned())?;
        let weight = in_range(self.disk_weight, 1, Demand::DISK_WEIGHT_MAX);
        ensure(weight, || "its weight of disks cannot be one".to_owned())?;
        let counts = in_range(self.pids, 1, Demand::PIDS_MAX)
            && in_range(self.open_files, Demand::OPEN_FILES_MIN, Demand::OPEN_FILES_MAX);
        ensure(counts, || "its processes or descriptors cannot be so many".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_file_can_ask_is_refused() {
        let fine = Demand { cpu_millis: Some(250), cpu_min_millis: Some(250), ..Demand::default() };
        assert_eq!(fine.validate(), Ok(()));
        let wrong = [
            Demand { cpu_millis: Some(0), ..fine },
            Demand { cpu_min_millis: Some(251), ..fine },
            Demand { cpu_reserved_millis: Some(251), ..fine },
            Demand { cpu_weight: Some(10_001), ..fine },
            Demand { memory: Some(Bytes(999_999)), ..fine },
            Demand {
                memory: Some(Bytes(1_000_000)),
                memory_reserved: Some(Bytes(1_000_001)),
                ..fine
            },
            Demand { pids: Some(0), ..fine },
            Demand { open_files: Some(7), ..fine },
            Demand { disk: Rate::from_bits_per_second(7_999), ..fine },
            Demand { disk_weight: Some(0), ..fine },
            Demand { disk_weight: Some(101), ..fine },
        ];
        for demand in wrong {
            assert!(demand.validate().is_err(), "{demand:?}");
        }
    }
}
