//! Limits of memory, processes and descriptors, and what came of each.

use std::fmt;

use serde::{Deserialize, Serialize};
use windtunnel_limit::ControlGroup;
use windtunnel_model::Plan;
use windtunnel_model::valid::PlanValidationError;
use windtunnel_node::ProgramUse;

use super::disk_use::DiskMeter;
use super::owner::ResourceLimitOwner;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceLimitKind {
    Memory,
    Pids,
    OpenFiles,
    Disk,
}

impl fmt::Display for ResourceLimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResourceLimitKind::Memory => "memory",
            ResourceLimitKind::Pids => "pids",
            ResourceLimitKind::OpenFiles => "open-files",
            ResourceLimitKind::Disk => "disk",
        })
    }
}

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    pub owner: ResourceLimitOwner,
    pub kind: ResourceLimitKind,
    /// In words.
    pub mechanism: String,
    /// Bytes, processes or descriptors that are allowed now.
    pub asked: u64,
    /// What is used, as far as that is known.
    pub used: u64,
    /// The most that was used.
    pub peak: u64,
    /// How often the limit was met: memory had to be taken back, or a process could not be made.
    pub met: u64,
    /// Processes that were ended for it.
    pub ended: u64,
    /// Faults for which a page had to be read from a disk.
    pub faults: u64,
    /// Pages that were taken back, and those of files that had to be read again, as far as the
    /// kernel counts them.
    pub evicted: Option<u64>,
    pub refaulted: Option<u64>,
    /// What was known each second, in the order of time.
    pub looks: Vec<ResourceLimitSample>,
    /// Bytes that were read and written, of a limit of disks.
    pub read: Option<u64>,
    pub written: Option<u64>,
    #[serde(skip)]
    pub(super) meter: DiskMeter,
    /// Why it could not be held.
    pub failure: Option<String>,
}

/// What was known of a limit at some time; counts are those since the group was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimitSample {
    /// After the beginning of the run.
    pub at_ns: u64,
    pub asked: u64,
    pub used: u64,
    pub met: u64,
    pub ended: u64,
    pub faults: u64,
    pub evicted: Option<u64>,
    pub refaulted: Option<u64>,
}

/// A limit was met, and something was refused or ended for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimitHit {
    pub owner: ResourceLimitOwner,
    pub kind: ResourceLimitKind,
    /// What is allowed.
    pub asked: u64,
    /// Processes that were ended for it since the last report.
    pub ended: u64,
    /// Names of some of these, where they are known.
    pub names: Vec<String>,
}

impl ResourceLimit {
    /// A limit of which nothing is known yet.
    pub fn new(owner: ResourceLimitOwner, kind: ResourceLimitKind, asked: u64) -> ResourceLimit {
        let of_disk = (kind == ResourceLimitKind::Disk).then_some(0);
        ResourceLimit {
            owner,
            kind,
            mechanism: String::new(),
            asked,
            used: 0,
            peak: 0,
            met: 0,
            ended: 0,
            faults: 0,
            evicted: None,
            refaulted: None,
            looks: Vec::new(),
            read: of_disk,
            written: of_disk,
            meter: DiskMeter::default(),
            failure: None,
        }
    }

    /// Writes down what is known so long after the beginning of the run.
    pub fn look(&mut self, at_ns: u64) {
        let ResourceLimit { asked, used, met, ended, faults, evicted, refaulted, .. } = *self;
        if self.kind != ResourceLimitKind::OpenFiles {
            let look =
                ResourceLimitSample { at_ns, asked, used, met, ended, faults, evicted, refaulted };
            self.looks.push(look);
        }
    }

    /// Looks at the account of the group that holds it. Says so where something new came of it.
    pub fn read(&mut self, group: &mut ControlGroup) -> Option<ResourceLimitHit> {
        let (met, ended) = (self.met, self.ended);
        let done = match self.kind {
            ResourceLimitKind::Memory => group.memory()?.map(|seen| {
                (self.used, self.peak, self.met) = (seen.used, seen.peak, seen.reclaims);
                (self.faults, self.ended) = (seen.faults, seen.killed);
                (self.evicted, self.refaulted) = (seen.evicted, seen.refaulted);
            }),
            ResourceLimitKind::Pids => group.processes()?.map(|seen| {
                (self.used, self.peak, self.met) = (seen.count, seen.peak, seen.refused);
            }),
            ResourceLimitKind::Disk => group.disks()?.map(|seen| self.take_disks(seen)),
            ResourceLimitKind::OpenFiles => return None,
        };
        if let Err(error) = done {
            self.fail(error.to_string());
        }
        // Taking back memory is what programs do not notice; of the first refusal there is news.
        let refused = self.kind == ResourceLimitKind::Pids && met == 0 && self.met > 0;
        (refused || self.ended > ended).then(|| self.reached(self.ended - ended, Vec::new()))
    }

    /// What the node's init says of it.
    pub fn take(&mut self, seen: &ProgramUse) -> Option<ResourceLimitHit> {
        let before = self.ended;
        match self.kind {
            ResourceLimitKind::Memory => {
                (self.used, self.peak) = (seen.memory, seen.memory_peak);
                (self.faults, self.ended) = (seen.faults, seen.ended_for_memory);
            }
            ResourceLimitKind::Pids => {
                (self.used, self.peak) = (seen.processes, seen.processes_peak);
                self.ended = seen.ended_for_number;
            }
            ResourceLimitKind::OpenFiles | ResourceLimitKind::Disk => return None,
        }
        // Its number of processes is not believed to shrink, but it comes from another process.
        let ended = self.ended.saturating_sub(before);
        self.met = self.met.saturating_add(ended);
        let names = || seen.ended.iter().map(|(name, _)| windtunnel_model::valid::shown(name));
        // One that could not be made is not counted; that there is no room for it is seen.
        let full = self.kind == ResourceLimitKind::Pids && self.used >= self.asked && self.met == 0;
        self.met = self.met.saturating_add(u64::from(full));
        (ended > 0 || full).then(|| self.reached(ended, names().collect()))
    }

    fn reached(&self, ended: u64, names: Vec<String>) -> ResourceLimitHit {
        let ResourceLimit { owner, kind, asked, .. } = *self;
        ResourceLimitHit { owner, kind, asked, ended, names }
    }

    /// It could not be held. The first reason counts.
    pub fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
    }

    /// Whether it can be that of something in the plan.
    pub fn validate(&self, plan: &Plan) -> Result<(), PlanValidationError> {
        self.owner.validate(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> ResourceLimit {
        ResourceLimit::new(ResourceLimitOwner::Node(0), ResourceLimitKind::Memory, 1000)
    }

    #[test]
    fn what_is_ended_is_news_once() {
        let mut bound = memory();
        let mut seen = ProgramUse { memory: 900, memory_peak: 990, ..ProgramUse::default() };
        assert_eq!(bound.take(&seen), None);
        seen.ended_for_memory = 2;
        seen.ended = vec![("eat\u{7}er".to_owned(), 5)];
        let reached = bound.take(&seen).unwrap();
        assert_eq!((reached.ended, reached.names.len()), (2, 1));
        assert!(!reached.names[0].contains('\u{7}'));
        assert_eq!(bound.take(&seen), None);
        assert_eq!((bound.used, bound.peak, bound.ended, bound.met), (900, 990, 2, 2));
    }

    #[test]
    fn the_first_reason_counts() {
        let mut bound = memory();
        bound.fail("a".to_owned());
        bound.fail("b".to_owned());
        assert_eq!(bound.failure.as_deref(), Some("a"));
    }
}
