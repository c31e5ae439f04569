//! Whether the sender of a message takes part in a run, and the answer if it does not.

use windtunnel_model::Span;

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{AgentId, MeshMessage, MessageSender, RunId};
use crate::id::Identity;
use crate::run::{RunParticipation, RunPeerState};

impl RunParticipationTable {
    /// A run and the position of a sender in it, if it is known and a member. Counts and answers
    /// if not.
    pub(super) fn member(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
    ) -> Option<(&mut RunParticipation, u32)> {
        if !ctx.knows(from) {
            return None;
        }
        let Some(run) = self.runs.get_mut(&id) else {
            ctx.out.counters.other_run += 1;
            if self.past.contains(&id) {
                let left = MeshMessage::RunLeft(ctx.me(), id);
                ctx.send_to(from.agent, &left);
            }
            return None;
        };
        let member = run.members.position(from.agent);
        if member.is_none() {
            ctx.out.counters.outside += 1;
        }
        Some((run, member?))
    }

    /// A run and the position of a sender that has confirmed. Counts and answers if not.
    pub(super) fn confirmed(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        id: RunId,
    ) -> Option<(&mut RunParticipation, u32)> {
        let (run, member) = self.member(ctx, from, id)?;
        let peer = run.peer(member);
        match peer.part {
            RunPeerState::Confirmed => return Some((run, member)),
            RunPeerState::Waiting => {
                peer.early = true;
                peer.acked = false;
            }
            RunPeerState::Refused | RunPeerState::Left | RunPeerState::Lost => {}
        }
        ctx.out.counters.outside += 1;
        run.answer_outsider(ctx, member);
        None
    }

    /// Whether an agent is a confirmed member of a common run.
    pub(super) fn shares(&self, agent: AgentId) -> bool {
        let in_it = |run: &RunParticipation| {
            run.members.position(agent).is_some_and(|member| run.has_confirmed(member))
        };
        self.runs.values().any(in_it)
    }

    /// The runs that are shared with an agent, with how long it may be silent in each.
    pub(super) fn patience_with(&self, agent: AgentId) -> impl Iterator<Item = (RunId, Span)> + '_ {
        self.runs.iter().filter_map(move |(id, run)| {
            let member = run.members.position(agent)?;
            run.has_confirmed(member).then_some((*id, run.patience.unwrap_or(Span::ZERO)))
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
