//! Whether all agents know the truth.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_mesh::{AgentId, Mesh, RunId, RunPeerState};
use windtunnel_model::{Span, Time};

use super::MeshWorld;
use super::machine::SimulatedMachine;

/// How often it is looked.
const STEP: Span = Span::from_millis(50);

impl MeshWorld {
    /// Lets time pass until all agents know the truth. Returns how long that took.
    ///
    /// # Errors
    /// A remaining difference after `limit`.
    pub fn settle(&mut self, limit: Span) -> Result<Span, String> {
        let (begin, mut last) = (self.now, 0);
        // The machine that differed last is checked first, all only when it does not differ.
        while let Some((index, found)) = self.first_difference(last) {
            if self.now.since(begin) >= limit {
                return Err(format!("after {limit}: {}", self.locate(index, &found)));
            }
            last = index;
            self.run_for(STEP);
        }
        Ok(self.now.since(begin))
    }

    /// Something that some agent does not know or knows wrongly.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        self.first_difference(0).map(|(index, found)| self.locate(index, &found))
    }

    fn locate(&self, index: usize, found: &str) -> String {
        format!("machine {index} at {}: {found}", self.now)
    }

    /// A machine with an agent that does not know the truth, and the difference; `first` is looked
    /// at first.
    fn first_difference(&self, first: usize) -> Option<(usize, String)> {
        let (lives, count) = (self.living(), self.machines.len());
        let mut order = (first..count).chain(0..first);
        order.find_map(|index| Some((index, self.differs(index, &lives)?)))
    }

    /// Something that the agent of a machine does not know or knows wrongly.
    fn differs(&self, index: usize, lives: &BTreeMap<AgentId, usize>) -> Option<String> {
        let machine = &self.machines[index];
        let mesh = machine.mesh.as_ref()?;
        self.membership(index, mesh, lives)
            .or_else(|| self.parts(index, machine, mesh))
            .or_else(|| self.clocks(index, mesh))
            .or_else(|| machine.view.difference(mesh))
    }

    /// The agents' views, and the last events: for the message of a failed test.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (index, machine) in self.machines.iter().enumerate() {
            let Some(mesh) = &machine.mesh else { continue };
            let known: Vec<String> = mesh.agents().map(ToString::to_string).collect();
            text += &format!("machine {index}, {}, knows {known:?}\n", mesh.identity());
        }
        for report in self.reported.iter().rev().take(60).rev() {
            text += &format!("{} to {}: {:?}\n", report.at, report.machine, report.event);
        }
        text
    }

    /// Machines with agents, by agent.
    fn living(&self) -> BTreeMap<AgentId, usize> {
        let machines = self.machines.iter().enumerate();
        machines.filter(|(_, m)| m.mesh.is_some()).map(|(index, m)| (m.agent, index)).collect()
    }

    /// Each knows all others on its side that live, and no other.
    fn membership(
        &self,
        index: usize,
        mesh: &Mesh,
        lives: &BTreeMap<AgentId, usize>,
    ) -> Option<String> {
        let known: BTreeSet<AgentId> = mesh.agents().map(|life| life.agent).collect();
        for (agent, other) in lives.iter().filter(|(_, other)| **other != index) {
            let there = self.side(*other) == self.side(index);
            if known.contains(agent) != there {
                return Some(format!("knows machine {other}: {}", !there));
            }
        }
        if let Some(ghost) = known.iter().find(|agent| !lives.contains_key(agent)) {
            return Some(format!("knows {ghost}, which has ended"));
        }
        let stale = mesh.agents().find(|life| {
            let present =
                lives.get(&life.agent).and_then(|other| self.machines[*other].mesh.as_ref());
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
                let other = &self.machines[self.machine_of(of)];
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
                        let cut = self.sides[index] != self.sides[self.machine_of(of)];
                        if !cut || part == RunPeerState::Confirmed {
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
            let other = &self.machines[self.machine_of(member.agent)];
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
        let own = self.machines[index].clock.read(self.now);
        for machine in self.machines.iter().filter(|machine| machine.mesh.is_some()) {
            let Some(clock) = mesh.clock(machine.agent, own) else { continue };
            let truth = signed(machine.clock.read(self.now)) - signed(own);
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
