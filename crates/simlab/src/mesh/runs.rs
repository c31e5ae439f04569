//! Runs and flows of machines.

use windtunnel_mesh::{AgentId, FlowAudience, PlanHash, RunId};
use windtunnel_model::NodeId;
use windtunnel_model::flow::{ActiveFlow, FlowKey};

use super::MeshWorld;
use super::machine::MachineRunState;

impl MeshWorld {
    /// The agent of a machine takes part in a run.
    ///
    /// # Panics
    /// If the mesh refuses it.
    pub fn join_run(&mut self, index: usize, run: RunId, plan: PlanHash, members: &[usize]) {
        let agents: Vec<AgentId> = members.iter().map(|m| self.machines[*m].agent).collect();
        self.machines[index].runs.insert(run, MachineRunState::new(plan, agents.clone()));
        let joined = self.act(index, |mesh, now| mesh.join_run(now, run, plan, &agents));
        assert_eq!(joined, Some(Ok(())));
    }

    /// The agent of a machine ends its part in a run.
    pub fn leave_run(&mut self, index: usize, run: RunId) {
        if self.machines[index].runs.remove(&run).is_some() {
            self.machines[index].view.leave_run(run);
            self.act(index, |mesh, now| mesh.leave_run(now, run));
        }
    }

    /// A flow of a machine in a run begins or changes; it is announced to those machines.
    ///
    /// # Panics
    /// If the mesh refuses it.
    pub fn set_flow(
        &mut self,
        index: usize,
        run: RunId,
        key: FlowKey,
        flow: ActiveFlow,
        to: &[usize],
    ) {
        let agents: Vec<AgentId> = to.iter().map(|m| self.machines[*m].agent).collect();
        let machine = &mut self.machines[index];
        let Some(part) = machine.runs.get_mut(&run) else { return };
        part.flows.insert(key, (flow, agents.iter().copied().collect()));
        self.act(index, |mesh, now| {
            let audience: FlowAudience = mesh.audience(run, agents).expect("members of the run");
            mesh.set_flow(now, run, key, flow, &audience).expect("within the limits");
        });
    }

    /// The same for a flow that is announced to some machines at once, and to `others` later.
    ///
    /// # Panics
    /// If the mesh refuses it.
    pub fn set_flow_for(
        &mut self,
        index: usize,
        run: RunId,
        key: FlowKey,
        flow: ActiveFlow,
        at_once: &[usize],
        others: &[usize],
    ) {
        let agent = |machine: &usize| self.machines[*machine].agent;
        let at_once: Vec<AgentId> = at_once.iter().map(agent).collect();
        let others: Vec<AgentId> = others.iter().map(agent).collect();
        let machine = &mut self.machines[index];
        let Some(part) = machine.runs.get_mut(&run) else { return };
        let all = at_once.iter().chain(&others).copied().collect();
        part.flows.insert(key, (flow, all));
        self.act(index, |mesh, now| {
            let audience = mesh.audience_with_others(run, at_once, others).expect("members");
            mesh.set_flow(now, run, key, flow, &audience).expect("within the limits");
        });
    }

    /// Which nodes of a run a machine has.
    ///
    /// # Panics
    /// If it has no part in the run.
    pub fn set_nodes(&mut self, index: usize, run: RunId, nodes: Vec<NodeId>) {
        let set = self.act(index, |mesh, _| mesh.set_nodes(run, nodes));
        assert_eq!(set, Some(Ok(())));
    }

    /// A flow of a machine ends.
    ///
    /// # Panics
    /// If the mesh does not know the run.
    pub fn end_flow(&mut self, index: usize, run: RunId, key: FlowKey) {
        let Some(part) = self.machines[index].runs.get_mut(&run) else { return };
        let was = part.flows.remove(&key).is_some();
        let ended = self.act(index, |mesh, now| mesh.end_flow(now, run, key));
        assert_eq!(ended, Some(Ok(was)), "the mesh and the world differ");
    }
}
