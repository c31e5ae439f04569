//! Processor time that a node's processes used outside its control group.
//!
//! A process that leaves its group and ends between two looks is found by no look at the processes that
//! there are. But the node's init inherits the time of all that has ended, and the group has counted
//! that of all that was in it: what the group does not have was used outside. What ran there had
//! memory, and made processes, that no group counted either.

use windtunnel_limit::ControlGroup;
use windtunnel_limit::usage::{self, CpuTimeExcess};
use windtunnel_sys::process::Pid;

/// Compares the account of a node's group with those of its processes.
#[derive(Debug)]
pub(super) struct NodeUnaccountedCpuTime {
    /// What they were when the init entered the group, before it started programs.
    group_ns: u64,
    processes_ns: u64,
    excess: CpuTimeExcess,
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
