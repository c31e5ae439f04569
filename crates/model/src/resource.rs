//! What programs share of a machine, and how much of it.

use core::fmt;

use serde::{Deserialize, Serialize};

/// What programs use of a machine and can be limited in. The word of each is that of options, of
/// keys in files and of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Processor time, in thousandths of a processor.
    Cpu,
    /// Memory that is in use, file pages included, in bytes.
    Memory,
    /// Processes and threads.
    Pids,
    /// What is read of each disk, and what is written, in bytes a second.
    Disk,
    /// Descriptors of each process.
    OpenFiles,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 5] =
        [Resource::Cpu, Resource::Memory, Resource::Pids, Resource::Disk, Resource::OpenFiles];

    /// Its word.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Pids => "pids",
            Resource::Disk => "disk",
            Resource::OpenFiles => "open-files",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// So much of each resource, in its unit; `None`: nothing is said of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceAmounts {
    /// Of [`Resource::Cpu`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Of [`Resource::Memory`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Of [`Resource::Pids`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// Of [`Resource::Disk`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// Of [`Resource::OpenFiles`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl ResourceAmounts {
    /// So much of one resource, and nothing said of others.
    #[must_use]
    pub fn only(resource: Resource, amount: u64) -> ResourceAmounts {
        ResourceAmounts::default().with(resource, Some(amount))
    }

    /// The same, but for one resource.
    #[must_use]
    pub fn with(mut self, resource: Resource, amount: Option<u64>) -> ResourceAmounts {
        *match resource {
            Resource::Cpu => &mut self.cpu_millis,
            Resource::Memory => &mut self.memory,
            Resource::Pids => &mut self.pids,
            Resource::Disk => &mut self.disk,
            Resource::OpenFiles => &mut self.open_files,
        } = amount;
        self
    }

    /// That of one resource.
    #[must_use]
    pub const fn of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::Cpu => self.cpu_millis,
            Resource::Memory => self.memory,
            Resource::Pids => self.pids,
            Resource::Disk => self.disk,
            Resource::OpenFiles => self.open_files,
        }
    }

    /// The same; 0, where nothing is said.
    #[must_use]
    pub fn amount(&self, resource: Resource) -> u64 {
        self.of(resource).unwrap_or(0)
    }

    /// Those of which something is said.
    pub fn iter(self) -> impl Iterator<Item = (Resource, u64)> {
        Resource::ALL.into_iter().filter_map(move |it| Some((it, self.of(it)?)))
    }

    /// Those of some resources, and nothing said of others.
    #[must_use]
    pub fn of_those(self, is_one: impl Fn(Resource) -> bool) -> ResourceAmounts {
        self.each(|resource| self.of(resource).filter(|_| is_one(resource)))
    }

    /// What `self` says, and of what it says nothing, what `older` does.
    #[must_use]
    pub fn or(self, older: ResourceAmounts) -> ResourceAmounts {
        self.each(|resource| self.of(resource).or(older.of(resource)))
    }

    /// Of both together; sums end at the greatest number.
    #[must_use]
    pub fn plus(self, other: ResourceAmounts) -> ResourceAmounts {
        self.combined(other, u64::saturating_add)
    }

    /// What is left without `other`, and at least nothing.
    #[must_use]
    pub fn minus(self, other: ResourceAmounts) -> ResourceAmounts {
        self.combined(other, u64::saturating_sub)
    }

    /// Whether nothing is said, or of nothing more than 0.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.iter().all(|(_, amount)| amount == 0)
    }

    fn combined(self, other: ResourceAmounts, how: fn(u64, u64) -> u64) -> ResourceAmounts {
        self.each(|resource| match (self.of(resource), other.of(resource)) {
            (None, None) => None,
            (own, other) => Some(how(own.unwrap_or(0), other.unwrap_or(0))),
        })
    }

    fn each(self, amount: impl Fn(Resource) -> Option<u64>) -> ResourceAmounts {
        Resource::ALL.into_iter().fold(self, |all, resource| all.with(resource, amount(resource)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_amounts_replace_older_ones_and_leave_the_rest() {
        let asked =
            ResourceAmounts { cpu_millis: Some(250), pids: Some(9), ..ResourceAmounts::default() };
        let resources: Vec<Resource> = asked.iter().map(|(resource, _)| resource).collect();
        assert_eq!(resources, [Resource::Cpu, Resource::Pids]);
        let newer = ResourceAmounts {
            cpu_millis: Some(500),
            memory: Some(1),
            ..ResourceAmounts::default()
        };
        let expected = ResourceAmounts { pids: Some(9), ..newer };
        assert_eq!(newer.or(asked), expected);
        let without = expected.of_those(|resource| resource != Resource::Memory);
        assert_eq!(without, ResourceAmounts { memory: None, ..expected });
    }

    #[test]
    fn sums_and_differences_neither_overflow_nor_fall_below_nothing() {
        let much = ResourceAmounts::only(Resource::Memory, u64::MAX);
        let one = ResourceAmounts::only(Resource::Memory, 1);
        assert_eq!(much.plus(one), much);
        let none = ResourceAmounts::only(Resource::Cpu, 1).minus(much.plus(one));
        assert_eq!((none.cpu_millis, none.memory, none.pids), (Some(1), Some(0), None));
        assert!(one.minus(much).is_none() && !one.is_none());
    }
}
