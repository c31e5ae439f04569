//! The state of runs, for callers.

use alloc::vec::Vec;

use windtunnel_model::Time;
use windtunnel_model::flow::{ActiveFlow, FlowKey};

use super::Mesh;
use crate::clock::AgentClockEstimate;
use crate::counters::MeshTrafficCounters;
use crate::id::{AgentId, Identity, PlanHash, RunId};
use crate::run::{RunCommandError, RunParticipation, RunPeerState};

/// A member of a run, for callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberView {
    /// The member.
    pub agent: AgentId,
    /// Its part. This agent itself has confirmed.
    pub part: RunPeerState,
    /// Its flows that are known here.
    pub flows: usize,
    /// Whether nothing of its flows is known to be missing here.
    pub complete: bool,
}

impl RunParticipation {
    /// The positions of other members.
    pub(super) fn positions(
        &self,
        agents: impl IntoIterator<Item = AgentId>,
    ) -> Result<Vec<u32>, RunCommandError> {
        let mut members = Vec::new();
        for agent in agents {
            let member = self.members.position(agent);
            let member = member.ok_or(RunCommandError::NoMember { run: self.id, agent })?;
            if member != self.members.me {
                members.push(member);
            }
        }
        Ok(members)
    }

    fn views(&self) -> impl Iterator<Item = MemberView> + '_ {
        self.members.agents().zip(&self.peers).zip(0..).map(move |((agent, peer), index)| {
            let own = index == self.members.me;
            MemberView {
                agent,
                part: if own { RunPeerState::Confirmed } else { peer.part },
                flows: if own { self.own.len() } else { peer.reception.flows.len() },
                complete: own || !peer.reception.lacks(),
            }
        })
    }

    fn flows(&self) -> impl Iterator<Item = (AgentId, FlowKey, ActiveFlow)> + '_ {
        self.members.agents().zip(&self.peers).flat_map(|(agent, peer)| {
            peer.reception.flows.iter().map(move |(key, flow)| (agent, key, flow))
        })
    }
}

impl Mesh {
    /// The present life of this agent.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.ctx.swim.identity()
    }

    /// The other agents that are there, by id.
    pub fn agents(&self) -> impl Iterator<Item = &Identity> + '_ {
        self.ctx.roster.lives()
    }

    /// The present life of another agent; `None` if it is not there.
    #[must_use]
    pub fn agent(&self, agent: AgentId) -> Option<&Identity> {
        self.ctx.roster.life(agent)
    }

    /// How an agent's clock stands to ours; `None` if it is not there or nothing has been measured.
    #[must_use]
    pub fn clock(&self, agent: AgentId, now: Time) -> Option<AgentClockEstimate> {
        self.ctx.roster.get(agent)?.clock.read(now)
    }

    /// The runs that this agent has a part in, by id.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.runs.runs.keys().copied()
    }

    /// The hash that the members of a run agree on.
    #[must_use]
    pub fn plan(&self, run: RunId) -> Option<PlanHash> {
        self.runs.find(run).ok().map(|run| run.plan)
    }

    /// Whether all members of a run have confirmed, and none has left or been lost since.
    #[must_use]
    pub fn is_ready(&self, run: RunId) -> bool {
        self.runs.find(run).is_ok_and(RunParticipation::all_confirmed)
    }

    /// The members of a run, by id; none if the run is not known.
    pub fn members(&self, run: RunId) -> impl Iterator<Item = MemberView> + '_ {
        self.runs.find(run).into_iter().flat_map(RunParticipation::views)
    }

    /// The flows of the other members of a run that this agent has received, by member and key.
    pub fn flows(&self, run: RunId) -> impl Iterator<Item = (AgentId, FlowKey, ActiveFlow)> + '_ {
        self.runs.find(run).into_iter().flat_map(RunParticipation::flows)
    }

    /// The flows that this agent announces in a run, by key.
    pub fn own_flows(&self, run: RunId) -> impl Iterator<Item = (FlowKey, ActiveFlow)> + '_ {
        let own = self.runs.find(run).into_iter().flat_map(|run| run.own.iter());
        own.map(|(key, flow, _)| (key, flow))
    }

    /// The counters since the beginning.
    #[must_use]
    pub fn counters(&self) -> MeshTrafficCounters {
        self.ctx.out.counters
    }
}
