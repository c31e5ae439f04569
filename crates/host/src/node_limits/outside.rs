//! Processor time that a node's processes used outside its control group.
//!
//! A process that leaves its group and ends between two looks is found by no look at the processes that
//! there are. But the node's init inherits the time of all that has ended, and the group has counted
//! that of all that was in it: what the group does not have was used outside. What ran there had
//! memory, and made processes, that no group counted either.

use windtunnel_limit::{ControlGroup, usage};
use windtunnel_sys::process::Pid;

/// Compares the account of a node's group with those of its processes.
#[derive(Debug)]
pub(super) struct NodeUnaccountedCpuTime {
    /// What they were when the init entered the group, before it started programs.
    group_ns: u64,
    processes_ns: u64,
    excess: CpuTimeExcess,
}

/// What processes have used more than their group has counted.
#[derive(Debug, Default)]
pub(crate) struct CpuTimeExcess {
    /// What has been said already.
    said_ns: u64,
}

impl NodeUnaccountedCpuTime {
    /// For an init that is about to enter the group. `None`: the kernel does not count the group's time.
    pub(super) fn begin(init: Pid, group: &mut ControlGroup) -> Option<NodeUnaccountedCpuTime> {
        let group_ns = group.time_ns()?;
        Some(NodeUnaccountedCpuTime {
            group_ns,
            processes_ns: usage::below(init, &[]),
            excess: CpuTimeExcess::default(),
        })
    }

    /// What is new of the time outside, in a sentence; `processes` are those below the init.
    pub(super) fn look(
        &mut self,
        init: Pid,
        processes: &[Pid],
        group: &mut ControlGroup,
    ) -> Option<String> {
        let processes_ns = usage::below(init, processes).saturating_sub(self.processes_ns);
        // Read later, it has more rather than less.
        let group_ns = group.time_ns()?.saturating_sub(self.group_ns);
        self.excess.beyond(processes_ns, group_ns)
    }
}

impl CpuTimeExcess {
    /// What is new of it, in a sentence.
    pub(crate) fn beyond(&mut self, processes_ns: u64, group_ns: u64) -> Option<String> {
        let outside_ns = processes_ns.saturating_sub(group_ns);
        if outside_ns.saturating_sub(self.said_ns) <= SLACK_NS {
            return None;
        }
        self.said_ns = outside_ns;
        let millis = outside_ns / 1_000_000;
        Some(format!("{millis} ms of processor time were used outside its control group"))
    }
}

/// Accounts of children that have ended are in ticks of 10 ms, of user and of system time.
const SLACK_NS: u64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_group_does_not_have_was_used_outside_and_is_said_once() {
        let mut excess = CpuTimeExcess::default();
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(excess.beyond(ms(500), ms(510)), None, "the group has the last moment, too");
        assert_eq!(excess.beyond(ms(1030), ms(1000)), None);
        let said = excess.beyond(ms(2080), ms(2000)).unwrap();
        assert_eq!(said, "80 ms of processor time were used outside its control group");
        assert_eq!(excess.beyond(ms(3085), ms(3000)), None);
        assert!(excess.beyond(ms(4200), ms(4000)).unwrap().starts_with("200 ms"));
    }
}
