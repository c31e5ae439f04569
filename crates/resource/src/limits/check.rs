//! Looking whether control groups hold what they are to hold.

use windtunnel_limit::place::GROUPED;
use windtunnel_limit::{ControlGroup, EscapedProcess, ProcessTree, per_process};
use windtunnel_model::Resource;
use windtunnel_sys::limits::ProcessResourceLimitKind;
use windtunnel_sys::process::Pid;

use super::MachineResourceLimits;
use super::limited::OwnerResourceLimits;

/// For some time nothing held processes of a node.
struct NodeLimitLapse {
    /// What was not limited by the groups of the node.
    own: Vec<Resource>,
    /// By reservations, by position in their list.
    reserved: Vec<(usize, Vec<Resource>)>,
    /// By the group of this machine's agent.
    of_agent: Vec<Resource>,
}

impl MachineResourceLimits {
    /// Looks whether the groups of nodes and reservations limit what they were asked to, and whether all
    /// processes are in them: `pid` is a node's init. What has left is put back, and what was changed is
    /// set again; until then nothing held the limit.
    pub(super) fn check(&mut self, pid: impl Fn(usize) -> Option<u32>) {
        for position in 0..self.count() {
            self.check_one(position, &pid);
        }
    }

    /// The same of one of them, by its position among nodes and reservations.
    pub(super) fn check_one(&mut self, position: usize, pid: impl Fn(usize) -> Option<u32>) {
        if self.is_over {
            return;
        }
        let Some(limited) = self.nodes.get_mut(position) else {
            // It has no processes but those of its nodes.
            let reservation = self.reservations.get_mut(position - self.nodes.len());
            return reservation.into_iter().for_each(OwnerResourceLimits::correct);
        };
        limited.correct();
        let init = limited.owner.node().filter(|_| limited.has_checks()).and_then(&pid);
        let init = init.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(init) = init {
            self.check_processes(position, init);
        }
    }

    fn check_processes(&mut self, position: usize, init: Pid) {
        let processes = ProcessTree::below(init);
        self.nodes[position].check_open_files(&processes);
        let Some(groups) = self.nodes[position].limits.groups_mut() else { return };
        let gone = groups.outsiders(&processes);
        // Before they are put back.
        let lapses: Vec<NodeLimitLapse> =
            gone.iter().map(|it| self.lapse_of(position, it)).collect();
        let Some(groups) = self.nodes[position].limits.groups_mut() else { return };
        let mut said: Vec<(NodeLimitLapse, String)> = Vec::new();
        for (lapse, (_, why)) in lapses.into_iter().zip(groups.put_back(gone)) {
            said.push((lapse, why));
        }
        if let Some(why) = groups.used_outside(init, &processes) {
            said.push((self.lapse_of_all(position), why));
        }
        for (lapse, why) in said {
            self.not_held(position, lapse, &why);
        }
    }

    /// What does not limit a process that has left the groups of a node.
    fn lapse_of(&self, position: usize, outsider: &EscapedProcess) -> NodeLimitLapse {
        let left = |at: usize| {
            let groups = self.reservations[at].limits.groups();
            groups.map(|groups| groups.left_by(outsider.pid)).unwrap_or_default()
        };
        NodeLimitLapse {
            own: outsider.resources.clone(),
            reserved: self.around(position).map(|at| (at, left(at))).collect(),
            of_agent: self.around.as_ref().map(|it| it.left_by(outsider.pid)).unwrap_or_default(),
        }
    }

    /// Of what limited a process that has ended, nothing is known but that it was outside.
    fn lapse_of_all(&self, position: usize) -> NodeLimitLapse {
        let all = GROUPED.to_vec();
        NodeLimitLapse {
            own: all.clone(),
            reserved: self.around(position).map(|at| (at, all.clone())).collect(),
            of_agent: self.around.as_ref().map(ControlGroup::limited_around).unwrap_or_default(),
        }
    }

    /// The reservations around a node, by position in their list.
    fn around(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        let within = &self.nodes[position].within;
        let all = self.reservations.iter().enumerate();
        let around =
            all.filter(|(_, it)| it.owner.reservation().is_some_and(|it| within.contains(&it)));
        around.map(|(at, _)| at)
    }

    fn not_held(&mut self, position: usize, lapse: NodeLimitLapse, why: &str) {
        for resource in lapse.own {
            self.nodes[position].limits.not_held(None, resource, why);
        }
        for (at, resources) in lapse.reserved {
            for resource in resources {
                self.reservations[at].limits.not_held(None, resource, why);
            }
        }
        if !lapse.of_agent.is_empty() {
            self.not_held_by_agent(why.to_owned());
        }
    }

    /// What this machine's agent allows was not held. The first reason counts, and none after the end.
    pub fn not_held_by_agent(&mut self, why: String) {
        if !self.is_over {
            self.unheld_by_agent.get_or_insert(why);
        }
    }
}

impl OwnerResourceLimits {
    fn has_checks(&self) -> bool {
        self.limits.groups().is_some() || self.open_files_most().is_some()
    }

    /// How many descriptors a process of a node can have, whichever program it is of; `None`: some may
    /// have any number.
    fn open_files_most(&self) -> Option<u64> {
        self.limits.limit(Resource::OpenFiles)?;
        let limits = self.limits.limits().iter();
        let of_files = limits.filter(|limit| limit.resource == Resource::OpenFiles);
        of_files.map(|limit| limit.held.asked).max()
    }

    fn check_open_files(&mut self, processes: &[Pid]) {
        let Some(most) = self.open_files_most() else { return };
        let raised = per_process::lower_again(processes, ProcessResourceLimitKind::OpenFiles, most);
        if let Some(why) = raised.first() {
            self.limits.not_held(None, Resource::OpenFiles, why);
        }
    }
}
