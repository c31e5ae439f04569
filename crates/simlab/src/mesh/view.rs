//! The view of a caller of the mesh from events alone, each of which has to be consistent with
//! those before.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_mesh::{AgentId, Mesh, MeshEvent, RunId, RunPeerState};
use windtunnel_model::flow::{ActiveFlow, FlowKey};

/// The state after the events so far.
#[derive(Debug, Clone, Default)]
pub struct MeshStateView {
    /// The agents that are there, in which start.
    pub agents: BTreeMap<AgentId, u64>,
    /// Members that have confirmed and are neither lost nor gone.
    pub confirmed: BTreeSet<(RunId, AgentId)>,
    /// Members lost to a run.
    pub lost: BTreeSet<(RunId, AgentId)>,
    /// Members that have left a run.
    pub left: BTreeSet<(RunId, AgentId)>,
    /// Runs that were ready.
    pub ready: BTreeSet<RunId>,
    /// Members with other plans.
    pub refused: BTreeSet<(RunId, AgentId)>,
    /// The others' flows.
    pub flows: BTreeMap<(RunId, AgentId, FlowKey), ActiveFlow>,
    /// How many steps of clocks were noticed.
    pub steps: u64,
    /// How often this agent has been declared lost.
    pub renewals: u64,
}

impl MeshStateView {
    /// Takes an event in.
    ///
    /// # Panics
    /// If it makes no sense after those before.
    pub fn see(&mut self, event: &MeshEvent) {
        match event {
            MeshEvent::AgentUp(life) => {
                let known = self.agents.insert(life.agent, life.epoch);
                assert_eq!(known, None, "{life} is there already");
            }
            MeshEvent::AgentDown { life, .. } => {
                let known = self.agents.remove(&life.agent);
                assert_eq!(known, Some(life.epoch), "{life} was not there");
                let ghost = self.flows.keys().find(|(_, agent, _)| *agent == life.agent);
                assert_eq!(ghost, None, "a flow of an agent that has ended");
            }
            MeshEvent::Renewed { was, now } => {
                assert!((was.epoch, was.renewal) < (now.epoch, now.renewal), "{was} before {now}");
                self.renewals += 1;
            }
            MeshEvent::Flows { run, agent, changes } => {
                assert!(self.confirmed.contains(&(*run, *agent)), "flows of an outsider");
                for change in changes {
                    let key = (*run, *agent, change.key);
                    let was = match change.flow {
                        Some(flow) => self.flows.insert(key, flow),
                        None => self.flows.remove(&key),
                    };
                    assert!(was.is_some() || change.flow.is_some(), "the end of no flow");
                }
            }
            MeshEvent::ClockStepped { .. } => self.steps += 1,
            event => self.see_run(event),
        }
    }

    fn see_run(&mut self, event: &MeshEvent) {
        match event {
            MeshEvent::RunConfirmed { run, agent } => {
                let member_of = (*run, *agent);
                assert!(
                    !self.lost.contains(&member_of) && !self.left.contains(&member_of),
                    "back again"
                );
                assert!(self.confirmed.insert(member_of), "confirmed twice");
            }
            MeshEvent::RunRefused { run, agent, ours, theirs, why } => {
                assert!(
                    ours != theirs || *why != windtunnel_mesh::RunViewMismatch::Plan,
                    "the same plan is refused"
                );
                self.refused.insert((*run, *agent));
            }
            MeshEvent::RunReady { run } => assert!(self.ready.insert(*run), "ready twice"),
            MeshEvent::RunLeft { run, agent } => {
                self.confirmed.remove(&(*run, *agent));
                assert!(self.left.insert((*run, *agent)), "left twice");
            }
            MeshEvent::RunLost { run, agent, .. } => {
                self.confirmed.remove(&(*run, *agent));
                assert!(self.lost.insert((*run, *agent)), "lost twice");
            }
            _ => {}
        }
    }

    /// The agent itself ends its part in a run.
    pub fn leave_run(&mut self, run: RunId) {
        self.confirmed.retain(|(of, _)| *of != run);
        self.flows.retain(|(of, ..), _| *of != run);
    }

    /// A difference between the events and the getters.
    #[must_use]
    pub fn difference(&self, mesh: &Mesh) -> Option<String> {
        let agents: BTreeMap<_, _> = mesh.agents().map(|life| (life.agent, life.epoch)).collect();
        if agents != self.agents {
            return Some(format!("agents {agents:?}, by events {:?}", self.agents));
        }
        for run in mesh.runs() {
            let own = mesh.identity().agent;
            for member in mesh.members(run).filter(|member| member.agent != own) {
                let member_of = (run, member.agent);
                let seen = (self.confirmed.contains(&member_of), self.lost.contains(&member_of));
                if seen
                    != (member.part == RunPeerState::Confirmed, member.part == RunPeerState::Lost)
                {
                    return Some(format!("{member:?}, by events {seen:?} (confirmed, lost)"));
                }
            }
            let flows: Vec<_> = mesh.flows(run).collect();
            let seen: Vec<_> = self
                .flows
                .iter()
                .filter(|((of, ..), _)| *of == run)
                .map(|((_, agent, key), flow)| (*agent, *key, *flow))
                .collect();
            if flows != seen {
                return Some(format!("flows {flows:?}, by events {seen:?}"));
            }
        }
        None
    }
}
