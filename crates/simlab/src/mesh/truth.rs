//! What the agents of a world know, beside the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use windtunnel_mesh::{AgentId, Mesh, RunId, RunPeerState};
use windtunnel_model::Time;

use super::MeshWorld;
use super::machine::SimulatedMachine;

/// A world at one time, for comparison with its agents' views.
#[derive(Debug)]
pub(super) struct TruthComparison<'a> {
    world: &'a MeshWorld,
    /// Machines with agents, by agent.
    lives: BTreeMap<AgentId, usize>,
}

/// Something that an agent does not know or knows wrongly.
#[derive(Debug)]
pub(super) struct AgentIgnorance {
    pub(super) machine: usize,
    at: Time,
    found: String,
}

impl fmt::Display for AgentIgnorance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} at {}: {}", self.machine, self.at, self.found)
    }
}

impl<'a> TruthComparison<'a> {
    pub(super) fn new(world: &'a MeshWorld) -> Self {
        let machines = world.machines.iter().enumerate();
        let lives = machines.filter(|(_, machine)| machine.mesh.is_some());
        let lives = lives.map(|(index, machine)| (machine.agent, index)).collect();
        TruthComparison { world, lives }
    }

    /// What some agent does not know or knows wrongly; that of machine `first` is looked at first.
    pub(super) fn first_difference(&self, first: usize) -> Option<AgentIgnorance> {
        let mut order = (first..self.world.machines.len()).chain(0..first);
        order.find_map(|machine| {
            let found = self.differs(machine)?;
            Some(AgentIgnorance { machine, at: self.world.now, found })
        })
    }

    /// Something that the agent of a machine does not know or knows wrongly.
    fn differs(&self, index: usize) -> Option<String> {
        let machine = &self.world.machines[index];
        let mesh = machine.mesh.as_ref()?;
        self.membership(index, mesh)
            .or_else(|| self.parts(index, machine, mesh))
            .or_else(|| self.clocks(index, mesh))
            .or_else(|| machine.view.difference(mesh))
    }

    /// Each knows all others on its side that live, and no other.
    fn membership(&self, index: usize, mesh: &Mesh) -> Option<String> {
        let known: BTreeSet<AgentId> = mesh.agents().map(|life| life.agent).collect();
        for (agent, other) in self.lives.iter().filter(|(_, other)| **other != index) {
            let there = self.world.network.connects(*other, index);
            if known.contains(agent) != there {
                return Some(format!("knows machine {other}: {}", !there));
            }
        }
        if let Some(ghost) = known.iter().find(|agent| !self.lives.contains_key(agent)) {
            return Some(format!("knows {ghost}, which has ended"));
        }
        let stale = mesh.agents().find(|life| {
            let present = self.lives.get(&life.agent);
            let present = present.and_then(|other| self.world.machines[*other].mesh.as_ref());
            present.is_some_and(|present| present.identity() != **life)
        });
        stale.map(|life| format!("knows the former life {life}"))
    }

    /// Of each run: members are Confirmed on both sides or Lost on both, and flows are those of
    /// the confirmed that are meant for this agent.
    fn parts(&self, index: usize, machine: &SimulatedMachine, mesh: &Mesh) -> Option<String> {
        for (run, own) in &machine.runs {
            for member in mesh.members(*run).filter(|member| member.agent != machine.agent) {
                let of = member.agent;
                let at = self.world.machine_of(of);
                let other = &self.world.machines[at];
                let theirs = other.mesh.as_ref().filter(|_| other.runs.contains_key(run));
                let Some(theirs) = theirs else {
                    if member.part == RunPeerState::Confirmed {
                        return Some(format!("{of} is not in run {run} any more, but {member:?}"));
                    }
                    continue;
                };
                let their_plan = other.runs[run].plan;
                let same = their_plan == own.plan && other.runs[run].members == own.members;
                let back = theirs.members(*run).find(|back| back.agent == machine.agent);
                let back = back.map(|back| back.part);
                match (member.part, back) {
                    (RunPeerState::Confirmed, Some(RunPeerState::Confirmed)) if same => {}
                    (RunPeerState::Refused, Some(RunPeerState::Refused) | None) if !same => {}
                    (RunPeerState::Lost, Some(RunPeerState::Lost)) if same => {}
                    (part, back) => {
                        if self.world.network.connects(index, at) || part == RunPeerState::Confirmed
                        {
                            return Some(format!("{of} in run {run}: {part:?}, and back {back:?}"));
                        }
                    }
                }
            }
            if let Some(found) = self.flows(machine, *run, mesh) {
                return Some(found);
            }
        }
        None
    }

    fn flows(&self, machine: &SimulatedMachine, run: RunId, mesh: &Mesh) -> Option<String> {
        let mut truth = Vec::new();
        for member in mesh.members(run).filter(|member| member.part == RunPeerState::Confirmed) {
            let other = &self.world.machines[self.world.machine_of(member.agent)];
            let Some(part) = other.runs.get(&run).filter(|_| other.agent != machine.agent) else {
                continue;
            };
            let meant = part.flows.iter().filter(|(_, (_, to))| to.contains(&machine.agent));
            truth.extend(meant.map(|(key, (flow, _))| (member.agent, *key, *flow)));
        }
        let known: Vec<_> = mesh.flows(run).collect();
        (known != truth).then(|| {
            let missing = truth.iter().find(|flow| !known.contains(flow));
            let ghost = known.iter().find(|flow| !truth.contains(flow));
            format!("flows of run {run}: lacks {missing:?}, has {ghost:?} beyond the truth")
        })
    }

    /// Each estimate of a clock is within its bound.
    fn clocks(&self, index: usize, mesh: &Mesh) -> Option<String> {
        let (machines, now) = (&self.world.machines, self.world.now);
        let own = machines[index].clock.read(now);
        for machine in machines.iter().filter(|machine| machine.mesh.is_some()) {
            let Some(clock) = mesh.clock(machine.agent, own) else { continue };
            let truth = signed(machine.clock.read(now)) - signed(own);
            let error = (truth - i128::from(clock.offset)).unsigned_abs();
            if error > u128::from(clock.error.as_nanos()) {
                return Some(format!("the clock of {}: {error} ns off, {clock:?}", machine.agent));
            }
        }
        None
    }
}

fn signed(time: Time) -> i128 {
    i128::from(time.as_nanos())
}
