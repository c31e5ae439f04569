//! Putting the limits of nodes into force, before their programs start.

use windtunnel_limit::ResourceLimitOwner;
use windtunnel_limit::choice::without_group;
use windtunnel_limit::watch::data_of;
use windtunnel_model::plan::Node;
use windtunnel_model::{LimitMechanism, NodeId, Plan, Resource};
use windtunnel_node::{NodeInitRequest, NodeSet, ProgramLimits};

use super::MachineResourceLimits;
use super::limited::OwnerResourceLimits;

impl MachineResourceLimits {
    /// Puts the inits into their groups, and has them hold what groups do not. Their programs come
    /// later.
    pub fn enforce(&mut self, plan: &Plan, node_set: &NodeSet) {
        let mut outside = Vec::new();
        for limited in &mut self.nodes {
            let ResourceLimitOwner::Node(index) = limited.owner else { continue };
            let Some(node) = node_set.node(NodeId::from_index(index)) else { continue };
            let spec = &plan.nodes[index];
            if let Some(groups) = limited.limits.groups_mut()
                && let Err(error) = groups.attach(node.pid())
            {
                let name = node.name();
                let note = format!("node {name} has no control group, but other limits: {error}");
                self.notes.push(note);
                limited.limits.lose_groups(without_group);
                outside.push(index);
            }
            if let Err(error) = limited.order(spec, node) {
                limited.limits.fail_all(&error);
            }
        }
        for index in outside {
            let why = format!("node {} is outside of it", plan.nodes[index].name);
            let around: Vec<ResourceLimitOwner> = plan
                .reservations_from(plan.nodes[index].reservation)
                .map(|it| ResourceLimitOwner::Reservation(it.index()))
                .collect();
            let around = self.reservations.iter_mut().filter(|it| around.contains(&it.owner));
            around.for_each(|limited| limited.limits.fail_all(&why));
        }
    }
}

impl OwnerResourceLimits {
    /// What the init has to do itself, and what programs enter when they start.
    fn order(&self, spec: &Node, node: &windtunnel_node::RunningNode) -> Result<(), String> {
        let held = self.limits.by_limiter();
        if !held.is_none() {
            let sent = node.send(&NodeInitRequest::Limit(held), &[]);
            sent.map_err(|error| error.to_string())?;
        }
        let programs = spec.programs.iter().enumerate();
        let limited = programs.filter(|(_, program)| !program.demand.is_unknown());
        let own = limited.map(|(index, _)| Some(index));
        for program in std::iter::once(None).chain(own) {
            let groups = self.limits.groups().map(|groups| groups.entrances(program));
            let request = NodeInitRequest::LimitProgram(self.program_limits(spec, program));
            let sent = node.send(&request, &groups.unwrap_or_default());
            sent.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn program_limits(&self, spec: &Node, program: Option<usize>) -> ProgramLimits {
        let own = program.map(|program| spec.programs[program].demand);
        let open_files = own.and_then(|own| own.open_files).or(spec.demand.open_files);
        let in_namespace = self.limits.limit(Resource::Pids);
        let in_namespace = in_namespace.filter(|it| it.held.mechanism == LimitMechanism::Namespace);
        ProgramLimits {
            program,
            open_files: open_files.map(u64::from),
            pids: in_namespace.map(|limit| limit.held.asked),
            data: self.limits.by_limiter().memory.map(data_of),
        }
    }
}
