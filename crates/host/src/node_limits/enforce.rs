//! Putting the limits of nodes into force, before their programs start.

use windtunnel_limit::choice::without_group;
use windtunnel_limit::{CgroupResource, Mechanism};
use windtunnel_model::plan::Node;
use windtunnel_model::{NodeId, Plan};
use windtunnel_node::{NodeInitRequest, NodeSet, ProgramBounds};
use windtunnel_verdict::evidence::{ResourceLimitKind, ResourceLimitOwner};

use super::MachineResourceLimits;
use super::limited::{OwnerResourceLimits, resource_of};

impl MachineResourceLimits {
    /// Puts the inits into their groups, and has them hold what groups do not. Their programs come
    /// later.
    pub(crate) fn enforce(&mut self, plan: &Plan, node_set: &NodeSet) {
        let mut outside = Vec::new();
        for limited in &mut self.nodes {
            let ResourceLimitOwner::Node(index) = limited.owner else { continue };
            let Some(node) = node_set.node(NodeId::from_index(index)) else { continue };
            let spec = &plan.nodes[index];
            if let Some(groups) = &mut limited.groups
                && let Err(error) = groups.attach(node.pid())
            {
                let name = node.name();
                let note = format!("node {name} has no control group, but other limits: {error}");
                self.notes.push(note);
                limited.lose_groups();
                outside.push(index);
            }
            if let Err(error) = limited.order(spec, node) {
                limited.fail_all(&error);
            }
        }
        for index in outside {
            let why = format!("node {} is outside of it", plan.nodes[index].name);
            let around: Vec<ResourceLimitOwner> = plan
                .reservations_from(plan.nodes[index].reservation)
                .map(|it| ResourceLimitOwner::Reservation(it.index()))
                .collect();
            let around = self.reservations.iter_mut().filter(|it| around.contains(&it.owner));
            around.for_each(|limited| limited.fail_all(&why));
        }
    }
}

impl OwnerResourceLimits {
    /// Without its groups, the init holds what it can.
    fn lose_groups(&mut self) {
        self.groups = None;
        for metered in &mut self.processors {
            metered.account.mechanism = Mechanism::DutyCycle.to_string();
            if metered.account.owner.program().is_some() {
                metered.account.fail(super::limited::NO_GROUP.to_owned());
            }
        }
        for bound in
            self.bounds.iter_mut().filter(|bound| bound.kind != ResourceLimitKind::OpenFiles)
        {
            let resource = resource_of(bound.kind).unwrap_or(CgroupResource::Memory);
            bound.mechanism = without_group(resource).to_string();
            if bound.owner.program().is_some() || bound.kind == ResourceLimitKind::Disk {
                bound.fail(super::limited::NO_GROUP.to_owned());
            }
        }
    }

    fn fail_all(&mut self, why: &str) {
        self.processors.iter_mut().for_each(|metered| metered.account.fail(why.to_owned()));
        self.bounds.iter_mut().for_each(|bound| bound.fail(why.to_owned()));
    }

    /// What the init has to do itself, and what programs enter when they start.
    fn order(&mut self, spec: &Node, node: &windtunnel_node::RunningNode) -> Result<(), String> {
        let send =
            |request: &NodeInitRequest| node.send(request, &[]).map_err(|error| error.to_string());
        let share = self.own_account().map(|account| account.asked_millis);
        if let Some(share) = share {
            send(&NodeInitRequest::LimitProcessor { share })?;
        }
        if let Some(request) = self.watch() {
            send(&request)?;
        }
        let programs = spec.programs.iter().enumerate();
        let limited = programs.filter(|(_, program)| !program.demand.is_unknown());
        let own = limited.map(|(index, _)| Some(index));
        for program in std::iter::once(None).chain(own) {
            let bounds = self.program_bounds(spec, program);
            let groups = self.groups.as_ref().map(|groups| groups.entrances(program));
            let request = NodeInitRequest::Bound(bounds);
            let sent = node.send(&request, &groups.unwrap_or_default());
            sent.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// What the init has to watch: what no group limits.
    pub(super) fn watch(&mut self) -> Option<NodeInitRequest> {
        let memory = self.watched(ResourceLimitKind::Memory, CgroupResource::Memory);
        let processes = self.watched(ResourceLimitKind::Pids, CgroupResource::Processes);
        let processes = processes.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        (memory.is_some() || processes.is_some())
            .then_some(NodeInitRequest::LimitUse { memory, processes })
    }

    fn watched(&mut self, kind: ResourceLimitKind, resource: CgroupResource) -> Option<u64> {
        if self.group(None, resource).is_some() {
            return None;
        }
        let mut bounds =
            self.bounds.iter().filter(|it| it.owner.program().is_none() && it.kind == kind);
        bounds.next().map(|bound| bound.asked)
    }

    fn program_bounds(&mut self, spec: &Node, program: Option<usize>) -> ProgramBounds {
        let own = program.map(|program| spec.programs[program].demand);
        let open_files = own.and_then(|own| own.open_files).or(spec.demand.open_files);
        let data = self.watched(ResourceLimitKind::Memory, CgroupResource::Memory).map(data_of);
        let processes = self.watched(ResourceLimitKind::Pids, CgroupResource::Processes);
        let processes =
            processes.filter(|_| without_group(CgroupResource::Processes) == Mechanism::Namespace);
        ProgramBounds { program, open_files: open_files.map(u64::from), processes, data }
    }
}

/// What a process may have of memory for itself where memory is only watched, in use or not: so much
/// that programs do not meet it that use less than their limit, and no more, as it bounds what one
/// can take between two looks.
pub(crate) fn data_of(memory: u64) -> u64 {
    memory.saturating_mul(4).max(memory.saturating_add(DATA_LEAST))
}

/// Stacks of 32 threads.
const DATA_LEAST: u64 = 256 << 20;
