//! A node with limits, and those of its programs; or a reservation.

use windtunnel_budget::processor::CpuUsageMeter;
use windtunnel_control::NodeLimits;
use windtunnel_limit::{CgroupResource, ControlGroup, LimitMechanismChoice, Mechanism};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::Node;
use windtunnel_node::ProgramUse;
use windtunnel_verdict::evidence::{
    CpuAccountWindow, CpuUsageAccount, ResourceLimit, ResourceLimitHit, ResourceLimitKind,
    ResourceLimitOwner,
};

use super::groups::NodeGroups;
use windtunnel_limit::choice::without_group;

/// A limited node or reservation.
#[derive(Debug)]
pub(crate) struct OwnerResourceLimits {
    pub(super) owner: ResourceLimitOwner,
    pub(super) groups: Option<NodeGroups>,
    /// Limits of processor time: of the node or reservation, and of programs.
    pub(super) processors: Vec<MeteredCpuLimit>,
    /// All other limits.
    pub(crate) bounds: Vec<ResourceLimit>,
    /// Reservations that a node is in, by position.
    pub(super) within: Vec<usize>,
}

/// A limit of processor time, with the meter of its group where it has one.
#[derive(Debug)]
pub(super) struct MeteredCpuLimit {
    pub(super) meter: Option<CpuUsageMeter>,
    pub(super) account: CpuUsageAccount,
}

impl MeteredCpuLimit {
    fn due_ns(&self) -> Option<u64> {
        self.meter.as_ref().map(CpuUsageMeter::due_ns)
    }
}

impl OwnerResourceLimits {
    pub(super) fn of_node(
        index: usize,
        node: &Node,
        groups: Option<NodeGroups>,
    ) -> OwnerResourceLimits {
        let mut limited =
            OwnerResourceLimits::new(ResourceLimitOwner::Node(index), &node.demand, groups);
        for (program, spec) in node.programs.iter().enumerate() {
            limited.add(ResourceLimitOwner::Program(index, program), &spec.demand);
        }
        limited
    }

    pub(super) fn new(
        owner: ResourceLimitOwner,
        demand: &Demand,
        groups: Option<NodeGroups>,
    ) -> OwnerResourceLimits {
        let (processors, bounds) = (Vec::new(), Vec::new());
        let mut limited =
            OwnerResourceLimits { owner, groups, processors, bounds, within: Vec::new() };
        limited.add(owner, demand);
        limited
    }

    fn add(&mut self, owner: ResourceLimitOwner, demand: &Demand) {
        if let Some(share) = demand.cpu_millis {
            let account = CpuUsageAccount::new(owner, share, "");
            self.processors.push(MeteredCpuLimit { meter: None, account });
        }
        let asked = [
            (ResourceLimitKind::Memory, demand.memory.map(|memory| memory.0)),
            (ResourceLimitKind::Pids, demand.pids.map(u64::from)),
            (ResourceLimitKind::OpenFiles, demand.open_files.map(u64::from)),
            (ResourceLimitKind::Disk, demand.disk_bytes()),
        ];
        for (kind, asked) in asked {
            let asked = asked.map(|asked| ResourceLimit::new(owner, kind, asked));
            self.bounds.extend(asked);
        }
    }

    /// The group that limits a resource, if one does.
    pub(super) fn group(
        &mut self,
        program: Option<usize>,
        resource: CgroupResource,
    ) -> Option<&mut ControlGroup> {
        self.groups.as_mut()?.of(program, resource)
    }

    /// Says what holds each limit. One of a program has no other mechanism than a group.
    pub(super) fn name_mechanisms(&mut self, choice: &LimitMechanismChoice) {
        for position in 0..self.processors.len() {
            let program = self.processors[position].account.owner.program();
            let mechanism = self.mechanism(choice, program, CgroupResource::Processor);
            let account = &mut self.processors[position].account;
            account.mechanism = mechanism.to_string();
            if program.is_some() && mechanism == Mechanism::DutyCycle {
                account.fail(NO_GROUP.to_owned());
            }
        }
        for position in 0..self.bounds.len() {
            let (program, kind) =
                (self.bounds[position].owner.program(), self.bounds[position].kind);
            let mechanism = match resource_of(kind) {
                Some(resource) => self.mechanism(choice, program, resource),
                None => Mechanism::PerProcess,
            };
            let bound = &mut self.bounds[position];
            bound.mechanism = mechanism.to_string();
            let by_group = matches!(mechanism, Mechanism::GroupV1 | Mechanism::GroupV2);
            let needs_group = program.is_some() && resource_of(kind).is_some();
            if (needs_group || kind == ResourceLimitKind::Disk) && !by_group {
                bound.fail(NO_GROUP.to_owned());
            }
        }
    }

    fn mechanism(
        &mut self,
        choice: &LimitMechanismChoice,
        program: Option<usize>,
        resource: CgroupResource,
    ) -> Mechanism {
        let group = self.group(program, resource).is_some();
        let version = choice.group_of(resource).filter(|_| group);
        version.unwrap_or_else(|| without_group(resource))
    }

    /// The run begins.
    pub(super) fn begin(&mut self, origin_ns: u64) {
        for position in 0..self.processors.len() {
            let program = self.processors[position].account.owner.program();
            let reading =
                self.group(program, CgroupResource::Processor).and_then(ControlGroup::read);
            let metered = &mut self.processors[position];
            metered.account.origin_ns = origin_ns;
            metered.meter = reading.and_then(Result::ok).map(CpuUsageMeter::new);
        }
        self.look_at_disks();
    }

    /// The run has ended. What a short run did between two looks counts, too.
    pub(super) fn end(&mut self, now_ns: u64) {
        drop(self.look());
        for metered in &mut self.processors {
            metered.account.end(now_ns);
            metered.meter = None;
        }
    }

    /// Looks at limits of disks only.
    pub(super) fn look_at_disks(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        for bound in self.bounds.iter_mut().filter(|bound| bound.kind == ResourceLimitKind::Disk) {
            let group = groups.of(bound.owner.program(), CgroupResource::Disk);
            // There is no news of disks.
            let _ = group.and_then(|group| bound.read(group));
        }
    }

    /// When the next window of one of its groups is complete.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.processors.iter().filter_map(MeteredCpuLimit::due_ns).min()
    }

    /// Reads the meters that are due.
    pub(super) fn meter(&mut self, now_ns: u64) {
        for position in 0..self.processors.len() {
            let metered = &self.processors[position];
            if metered.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            let program = metered.account.owner.program();
            let reading =
                self.group(program, CgroupResource::Processor).and_then(ControlGroup::read);
            let MeteredCpuLimit { meter, account } = &mut self.processors[position];
            match reading {
                Some(Ok(reading)) => {
                    let window = meter.as_mut().and_then(|meter| meter.read(reading));
                    if let Some(window) = window {
                        account.add(CpuAccountWindow::new(window, account.asked_millis));
                    }
                }
                Some(Err(error)) => {
                    account.fail(error.to_string());
                    *meter = None;
                }
                None => *meter = None,
            }
        }
    }

    /// Whether there are limits that are looked at each second.
    pub(super) fn is_looked_at(&self) -> bool {
        self.groups.is_some() || self.bounds.iter().any(|it| resource_of(it.kind).is_some())
    }

    /// Has all limits write down what is known of them.
    pub(super) fn write_down(&mut self, at_ns: u64) {
        self.bounds.iter_mut().for_each(|bound| bound.look(at_ns));
    }

    /// Looks at what groups say of memory and processes.
    pub(super) fn look(&mut self) -> Vec<ResourceLimitHit> {
        let Some(groups) = &mut self.groups else { return Vec::new() };
        let look = |bound: &mut ResourceLimit| {
            let group = groups.of(bound.owner.program(), resource_of(bound.kind)?)?;
            bound.read(group)
        };
        self.bounds.iter_mut().filter_map(look).collect()
    }

    /// Looks whether its groups limit what they were asked to. What was changed is set again; until then
    /// nothing held the limit.
    pub(super) fn correct(&mut self) {
        let corrected = self.groups.as_mut().map(NodeGroups::correct).unwrap_or_default();
        for (program, resource, why) in corrected {
            self.not_held(program, resource, &why);
        }
    }

    /// Nothing held a limit of all programs, or of one, for some time.
    pub(super) fn not_held(&mut self, program: Option<usize>, resource: CgroupResource, why: &str) {
        let of_processor = self.processors.iter_mut().map(|it| &mut it.account);
        let accounts = of_processor.filter(|_| resource == CgroupResource::Processor);
        let is_held = |owner: ResourceLimitOwner| program.is_none() || owner.program() == program;
        accounts.filter(|it| is_held(it.owner)).for_each(|it| it.fail(why.to_owned()));
        let bounds = self.bounds.iter_mut().filter(|it| resource_of(it.kind) == Some(resource));
        bounds.filter(|it| is_held(it.owner)).for_each(|it| it.fail(why.to_owned()));
    }

    /// What the node's init says of the limits that it holds.
    pub(crate) fn used(
        &mut self,
        used: &ProgramUse,
        failure: Option<&str>,
    ) -> Vec<ResourceLimitHit> {
        let mut reached = Vec::new();
        for bound in &mut self.bounds {
            let resource = resource_of(bound.kind);
            let group = resource.and_then(|it| self.groups.as_mut()?.of(bound.owner.program(), it));
            if resource.is_none() || bound.owner.program().is_some() || group.is_some() {
                continue;
            }
            reached.extend(bound.take(used));
            if let Some(why) = failure {
                bound.fail(why.to_owned());
            }
        }
        reached
    }

    /// The account of the node, if it limits its processor time itself.
    pub(super) fn own_account(&mut self) -> Option<&mut CpuUsageAccount> {
        if self.group(None, CgroupResource::Processor).is_some() {
            return None;
        }
        self.processor()
    }

    /// What limits it now, and what it has of that.
    pub(super) fn status(&self) -> NodeLimits {
        let mut own = self.processors.iter().filter(|it| it.account.owner.program().is_none());
        let account = own.next().map(|metered| &metered.account);
        let bound =
            |kind| self.bounds.iter().find(|it| it.owner.program().is_none() && it.kind == kind);
        let (memory, pids) = (bound(ResourceLimitKind::Memory), bound(ResourceLimitKind::Pids));
        let disk = bound(ResourceLimitKind::Disk);
        let used = account.and_then(|account| account.windows.last()).map(|window| {
            let millis = window.used_ns.saturating_mul(1000) / window.length_ns.max(1);
            u32::try_from(millis).unwrap_or(u32::MAX)
        });
        NodeLimits {
            cpu_millis: account.map(|account| account.asked_millis),
            cpu_used_millis: used,
            memory: memory.map(|bound| bound.asked),
            memory_used: memory.map(|bound| bound.used),
            pids: pids.map(|bound| bound.asked),
            pids_used: pids.map(|bound| bound.used),
            disk: disk.map(|bound| bound.asked),
            disk_used: disk.map(|bound| bound.used),
        }
    }

    /// The account of all its programs' processor time, if that is limited.
    pub(super) fn processor(&mut self) -> Option<&mut CpuUsageAccount> {
        let mut own = self.processors.iter_mut().filter(|it| it.account.owner.program().is_none());
        own.next().map(|metered| &mut metered.account)
    }
}

/// What groups can limit.
pub(super) fn resource_of(kind: ResourceLimitKind) -> Option<CgroupResource> {
    match kind {
        ResourceLimitKind::Memory => Some(CgroupResource::Memory),
        ResourceLimitKind::Pids => Some(CgroupResource::Processes),
        ResourceLimitKind::Disk => Some(CgroupResource::Disk),
        ResourceLimitKind::OpenFiles => None,
    }
}

pub(super) const NO_GROUP: &str = "no control group could be made for it";
