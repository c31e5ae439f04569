//! Whether the sender of a message takes part in a run, and the answer if it does not.

use windtunnel_model::Span;

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{AgentId, MeshMessage, MessageSender, RunId};
use crate::id::Identity;
use crate::run::{RunParticipation, RunPeerState};

/// How often an outsider is sent our view of it.
const ANSWER_WAIT: Span = Span::from_millis(200);

impl RunParticipationTable {
    /// The position of a sender in a run, if it is known and a member. Counts and answers if not.
    pub(super) fn member(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
    ) -> Option<u32> {
        if !ctx.knows(from) {
            return None;
        }
        let Some(run) = self.runs.get(&id) else {
            ctx.out.counters.other_run += 1;
            if self.past.contains(&id) {
                let left = MeshMessage::RunLeft(ctx.me(), id);
                ctx.send_to(from.agent, &left);
            }
            return None;
        };
        let member = run.position(from.agent);
        if member.is_none() {
            ctx.out.counters.outside += 1;
        }
        member
    }

    /// The position of a sender that has confirmed. Counts and answers if not.
    pub(super) fn confirmed(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
    ) -> Option<u32> {
        let member = self.member(ctx, from, id)?;
        let peer = self.runs.get_mut(&id)?.peer(member);
        match peer.part {
            RunPeerState::Confirmed => return Some(member),
            RunPeerState::Waiting => {
                peer.early = true;
                peer.acked = false;
            }
            RunPeerState::Refused | RunPeerState::Left | RunPeerState::Lost => {}
        }
        ctx.out.counters.outside += 1;
        self.answer_outsider(ctx, id, member);
        None
    }

    /// Sends an outsider our view of it, rate-limited.
    pub(super) fn answer_outsider(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        let now = ctx.now;
        let Some(run) = self.runs.get_mut(&id) else { return };
        let peer = run.peer(member);
        if peer.answered.is_none_or(|at| now.since(at) >= ANSWER_WAIT) {
            peer.answered = Some(now);
            let ask = peer.part == RunPeerState::Waiting;
            self.send_state(ctx, id, member, ask);
        }
    }

    /// Whether an agent is a confirmed member of a common run.
    pub(super) fn shares(&self, agent: AgentId) -> bool {
        let in_it = |run: &RunParticipation| {
            run.position(agent)
                .is_some_and(|at| run.peers[at as usize].part == RunPeerState::Confirmed)
        };
        self.runs.values().any(in_it)
    }

    /// The runs that are shared with an agent, with how long it may be silent in each.
    pub(super) fn patience_with(&self, agent: AgentId) -> impl Iterator<Item = (RunId, Span)> + '_ {
        self.runs.iter().filter_map(move |(id, run)| {
            let peer = &run.peers[run.position(agent)? as usize];
            (peer.part == RunPeerState::Confirmed)
                .then_some((*id, run.patience.unwrap_or(Span::ZERO)))
        })
    }

    /// Whether a life sent something within the time that it would have had to object. An agent
    /// that reports it as down was cut off from it, or has no run with it and so less patience, and
    /// we are not; or it is leaving, and will announce that to us.
    pub(super) fn received_lately(&self, ctx: &MeshContext, life: &Identity) -> bool {
        let patience = self.patience_with(life.agent).map(|(_, patience)| patience);
        let least = ctx.config.detection.suspicion;
        let within = patience.max().unwrap_or(least).max(least);
        ctx.roster.received_within(life, ctx.now, within)
    }
}
