//! The control groups of a node: one around all of it for processor time, in which its init is, and
//! inside of that one for what programs use, which the init does not count in: else it could be
//! what the kernel ends when memory is short. Programs with limits of their own have groups inside
//! of that.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_limit::{
    CgroupLimits, ControlGroup, EscapedProcess, LimitGroups, LimitMechanismChoice,
};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;
use windtunnel_model::{Resource, ResourceAmounts};
use windtunnel_sys::process::Pid;

use super::disks::{self, DiskNeeds};
use super::outside::NodeUnaccountedCpuTime;

/// The groups of a node, the innermost first: they are removed in this order.
#[derive(Debug, Default)]
pub(super) struct NodeGroups {
    /// By position of the program.
    programs: BTreeMap<usize, ControlGroup>,
    /// Of programs without limits of their own, where some have them.
    others: Option<ControlGroup>,
    /// Of the init, where it is not to be in `outer` itself.
    init: Option<ControlGroup>,
    inner: Option<ControlGroup>,
    outer: Option<ControlGroup>,
    outside: Option<NodeUnaccountedCpuTime>,
}

impl NodeGroups {
    /// Makes those that the limits of a node and its programs need, inside of the group of its
    /// reservation; `guarantee` is its weight, if processors are divided by weight. `index` is the
    /// position of the node among those that `disks` knows.
    pub(super) fn make(
        choice: &mut LimitMechanismChoice,
        index: usize,
        node: &Node,
        within: Option<&ControlGroup>,
        guarantee: Option<u32>,
        disks: &DiskNeeds,
    ) -> io::Result<NodeGroups> {
        let all = possible(choice, &node.demand);
        let outer = CgroupLimits {
            cpu_guarantee_millis: guarantee,
            disk_weight: disks.weight(&node.demand),
            ..CgroupLimits::of(all.of_those(|it| it == Resource::Cpu))
        };
        let inner = CgroupLimits {
            has_disk: disks.is_later(index),
            ..CgroupLimits::of(all.of_those(|it| it != Resource::Cpu))
        };
        let of_program = |demand: &Demand| CgroupLimits {
            disk_weight: disks::weight_of_program(node, demand),
            ..CgroupLimits::of(possible(choice, demand))
        };
        let programs = node.programs.iter().map(|program| of_program(&program.demand));
        let others = of_program(&Demand::default());
        let programs: Vec<(usize, CgroupLimits)> =
            programs.enumerate().filter(|(_, bounds)| !bounds.is_none()).collect();
        // Whatever is limited, what ran outside shows by the time of this one.
        let outer = Some(choice.group(within, &outer)?);
        let mut groups = NodeGroups { outer, ..NodeGroups::default() };
        if inner.is_none() && programs.is_empty() && within.is_none() {
            return Ok(groups);
        }
        groups.inner = Some(choice.group(groups.outer.as_ref(), &inner)?);
        if let Some(outer) = &groups.outer {
            groups.init = Some(choice.group_of_processor(outer)?);
        }
        if !programs.is_empty() {
            groups.others = Some(choice.group(groups.inner.as_ref(), &others)?);
        }
        for (program, bounds) in programs {
            groups.programs.insert(program, choice.group(groups.inner.as_ref(), &bounds)?);
        }
        Ok(groups)
    }

    /// Makes those of a reservation, inside of that of the one around it.
    pub(super) fn of_reservation(
        choice: &mut LimitMechanismChoice,
        demand: &Demand,
        within: Option<&ControlGroup>,
        guarantee: Option<u32>,
        disks: &DiskNeeds,
    ) -> io::Result<NodeGroups> {
        let bounds = CgroupLimits {
            cpu_guarantee_millis: guarantee,
            disk_weight: disks.weight(demand),
            ..CgroupLimits::of(possible(choice, demand))
        };
        let outer = Some(choice.group(within, &bounds)?);
        Ok(NodeGroups { outer, ..NodeGroups::default() })
    }

    /// Where the groups of what is within this are made.
    pub(super) fn around(&self) -> Option<&ControlGroup> {
        self.inner.as_ref().or(self.outer.as_ref())
    }

    /// Puts the init of the node where it belongs, before it starts programs.
    pub(super) fn attach(&mut self, init: u32) -> io::Result<()> {
        let pid = i32::try_from(init).ok().and_then(Pid::from_raw);
        self.outside = pid
            .zip(self.outer.as_mut())
            .and_then(|(pid, it)| NodeUnaccountedCpuTime::begin(pid, it));
        let around = self.init.as_mut().or(self.outer.as_mut());
        around.map_or(Ok(()), |group| group.attach(init))
    }

    /// What is new of processor time that was used outside.
    pub(super) fn used_outside(&mut self, init: Pid, processes: &[Pid]) -> Option<String> {
        let (outside, outer) = (self.outside.as_mut()?, self.outer.as_mut()?);
        outside.look(init, processes, outer)
    }

    /// What a program enters when it starts; `None`: one without limits of its own.
    pub(super) fn entrances(&self, program: Option<usize>) -> Vec<BorrowedFd<'_>> {
        let own = program.and_then(|program| self.programs.get(&program));
        let group = own.or(self.others.as_ref()).or(self.inner.as_ref());
        group.into_iter().flat_map(ControlGroup::entrances).map(AsFd::as_fd).collect()
    }

    /// Sets what somebody else has changed of the limits, and says what: of all programs, or of one.
    pub(super) fn correct(&mut self) -> Vec<(Option<usize>, Resource, String)> {
        let programs = self.programs.iter_mut().map(|(program, group)| (Some(*program), group));
        let around = self.inner.iter_mut().chain(&mut self.outer).map(|group| (None, group));
        let all = programs.chain(around).flat_map(|(program, group)| {
            let corrected = group.correct().into_iter();
            corrected.map(move |(resource, why)| (program, resource, why)).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// Those of a node's processes that have left any of them, or a group around these.
    pub(super) fn outsiders(&mut self, processes: &[Pid]) -> Vec<EscapedProcess> {
        let innermost = self.inner.as_mut().or(self.outer.as_mut());
        innermost.map_or(Vec::new(), |group| group.outsiders(processes))
    }

    /// Puts them back, with what did not limit them meanwhile. One that had limits of its own has only
    /// those of the node then.
    pub(super) fn put_back(&mut self, gone: Vec<EscapedProcess>) -> Vec<(Vec<Resource>, String)> {
        let group = self.others.as_mut().or(self.inner.as_mut()).or(self.outer.as_mut());
        group.map_or(Vec::new(), |group| group.put_back(gone))
    }

    /// What of its group does not limit a process any more.
    pub(super) fn left_by(&self, process: Pid) -> Vec<Resource> {
        self.outer.as_ref().map(|group| group.left_by(process)).unwrap_or_default()
    }
}

impl LimitGroups for NodeGroups {
    fn of(&mut self, program: Option<usize>, resource: Resource) -> Option<&mut ControlGroup> {
        let group = match (program, resource) {
            (Some(program), _) => self.programs.get_mut(&program),
            (None, Resource::Cpu) => self.outer.as_mut(),
            // A reservation has one group for all.
            (None, _) => self.inner.as_mut().or(self.outer.as_mut()),
        };
        group.filter(|group| group.limits(resource))
    }
}

/// What of a demand groups can limit here.
fn possible(choice: &LimitMechanismChoice, demand: &Demand) -> ResourceAmounts {
    demand.limits().of_those(|resource| choice.group_of(resource).is_some())
}
