//! What one run's members agree on: which take part, with which plan.

use windtunnel_model::Span;

use super::context::MeshContext;
use super::{MeshEvent, MeshMessage, MeshTimer, RunParticipation};
use crate::event::RunViewMismatch;
use crate::run::RunPeerState;
use crate::wire::message::RunState;

/// Until our part is sent again to a member that has not answered: doubled each time…
const STATE_WAIT: Span = Span::from_millis(50);
/// …up to this.
const STATE_WAIT_MAX: Span = Span::from_secs(1);
/// How often an outsider is sent our view of it.
const ANSWER_WAIT: Span = Span::from_millis(200);

impl RunParticipation {
    /// A member is alive (again): sends it our part, unless its own is over.
    pub(super) fn greet(&mut self, ctx: &mut MeshContext, member: u32) {
        let peer = self.peer(member);
        if peer.part == RunPeerState::Refused {
            (peer.part, peer.refused) = (RunPeerState::Waiting, None);
        }
        if peer.part == RunPeerState::Waiting {
            peer.acked = false;
            peer.state_wait = Span::ZERO;
            self.state_again(ctx, member);
        }
    }

    /// Sends a member our part, and again until it has answered.
    pub(super) fn state_again(&mut self, ctx: &mut MeshContext, member: u32) {
        let agent = self.members.agent(member);
        let peer = self.peer(member);
        if peer.acked || matches!(peer.part, RunPeerState::Left | RunPeerState::Lost) {
            return;
        }
        let doubled = Span::from_nanos(peer.state_wait.as_nanos().saturating_mul(2));
        peer.state_wait = doubled.max(STATE_WAIT).min(STATE_WAIT_MAX);
        let wait = ctx.rng.about(peer.state_wait);
        // An agent that is not alive is sent it when it comes.
        if ctx.roster.get(agent).is_some() {
            ctx.timers.set(MeshTimer::State(self.id, member), ctx.now + wait);
            self.send_state(ctx, member, true);
        }
    }

    pub(super) fn send_state(&self, ctx: &mut MeshContext, member: u32, ask: bool) {
        let (to, from) = (self.members.agent(member), ctx.me());
        for state in self.states(member, ask) {
            ctx.send_to(to, &MeshMessage::Run(from, state));
        }
    }

    /// Sends an outsider our view of it, rate-limited.
    pub(super) fn answer_outsider(&mut self, ctx: &mut MeshContext, member: u32) {
        let now = ctx.now;
        let peer = self.peer(member);
        if peer.answered.is_none_or(|at| now.since(at) >= ANSWER_WAIT) {
            peer.answered = Some(now);
            let ask = peer.part == RunPeerState::Waiting;
            self.send_state(ctx, member, ask);
        }
    }

    /// A member has another plan, or another list of members.
    pub(super) fn refuse(
        &mut self,
        ctx: &mut MeshContext,
        member: u32,
        state: &RunState,
        why: RunViewMismatch,
    ) {
        let (run, ours, theirs) = (self.id, self.plan, state.plan);
        let agent = self.members.agent(member);
        let peer = self.peer(member);
        let reported = peer.refused == Some(theirs);
        peer.refused = Some(theirs);
        if peer.part == RunPeerState::Waiting {
            peer.part = RunPeerState::Refused;
        }
        if !reported {
            ctx.out.events.push_back(MeshEvent::RunRefused { run, agent, ours, theirs, why });
        }
        if state.ask {
            self.answer_outsider(ctx, member);
        }
    }

    /// A member has received our part: it is not sent again.
    pub(super) fn acknowledge(&mut self, ctx: &mut MeshContext, member: u32) {
        if !core::mem::replace(&mut self.peer(member).acked, true) {
            ctx.timers.cancel(MeshTimer::State(self.id, member));
        }
    }

    pub(super) fn check_ready(&mut self, ctx: &mut MeshContext) {
        if !self.ready && self.all_confirmed() {
            self.ready = true;
            ctx.out.events.push_back(MeshEvent::RunReady { run: self.id });
        }
    }

    /// A member's part is over: so are its flows. Whether it had any.
    pub(super) fn end_part(
        &mut self,
        ctx: &mut MeshContext,
        member: u32,
        part: RunPeerState,
    ) -> bool {
        self.cancel_timers(ctx, member);
        self.queue.remove(member);
        let (run, agent) = (self.id, self.members.agent(member));
        let peer = self.peer(member);
        peer.part = part;
        let changes = peer.reception.flows.clear();
        if changes.is_empty() {
            return false;
        }
        self.note_arrivals(ctx, member, &changes);
        ctx.out.events.push_back(MeshEvent::Flows { run, agent, changes });
        true
    }

    pub(super) fn cancel_timers(&self, ctx: &mut MeshContext, member: u32) {
        let id = self.id;
        for wake in [
            MeshTimer::State(id, member),
            MeshTimer::Digest(id, member),
            MeshTimer::Want(id, member),
        ] {
            ctx.timers.cancel(wake);
        }
    }
}
