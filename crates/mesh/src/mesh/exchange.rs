//! Receiving the others' flows.

use windtunnel_model::Span;

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{MeshEvent, MeshMessage, MessageSender, RunId, Wake};
use crate::wire::message::{Delta, FlowTableDigest};

/// Until a request for missing versions is repeated: doubled each time…
const WANT_WAIT: Span = Span::from_millis(20);
/// …up to this.
const WANT_WAIT_MAX: Span = Span::from_millis(500);

impl RunParticipationTable {
    pub(super) fn on_delta(&mut self, ctx: &mut MeshContext, from: MessageSender, delta: &Delta) {
        let Some(member) = self.confirmed(ctx, from, delta.run) else { return };
        let (id, agent, limit) = (delta.run, from.agent, ctx.config.limits.flows);
        let Some(run) = self.runs.get_mut(&id) else { return };
        let peer = run.peer(member);
        let applied = peer.flows.apply(delta, limit);
        let (gap, lacks) = (peer.flows.has_gap(), peer.lacks());
        let overflow = applied.refused > 0 && !peer.overflow_reported;
        peer.overflow_reported |= overflow;
        ctx.out.counters.stale += u64::from(applied.stale);
        ctx.out.counters.refused += applied.refused;
        if !applied.changes.is_empty() {
            self.note_arrivals(ctx, id, member, &applied.changes);
            let changes = applied.changes;
            ctx.out.events.push_back(MeshEvent::Flows { run: id, agent, changes });
        }
        if overflow {
            self.refuse_flows(ctx, id, agent);
        }
        if !lacks {
            ctx.timers.cancel(Wake::Want(id, member));
        } else if gap && !ctx.timers.is_set(Wake::Want(id, member)) {
            // A missing message may only be late.
            let at = ctx.after(ctx.config.pace.patience);
            self.begin_wanting(id, member);
            ctx.timers.set(Wake::Want(id, member), at);
        }
    }

    pub(super) fn on_digest(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        digest: &FlowTableDigest,
    ) {
        let Some(member) = self.confirmed(ctx, from, digest.run) else { return };
        let id = digest.run;
        let Some(run) = self.runs.get_mut(&id) else { return };
        let losses_differ = digest.lost != run.lost_sum;
        let peer = run.peer(member);
        let agrees = peer.flows.agrees(digest.top, digest.flows);
        if agrees == Some(false) {
            if peer.flows.have() == digest.top {
                peer.flows.restart();
            }
            peer.want_top = peer.want_top.max(digest.top);
            if !ctx.timers.is_set(Wake::Want(id, member)) {
                self.begin_wanting(id, member);
                self.want(ctx, id, member);
            }
        } else if agrees == Some(true) {
            // Announcements beyond that have been withdrawn.
            peer.want_top = 0;
            ctx.timers.cancel(Wake::Want(id, member));
        }
        if losses_differ {
            self.answer_outsider(ctx, id, member);
        }
    }

    fn begin_wanting(&mut self, id: RunId, member: u32) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.peer(member).want_wait = WANT_WAIT;
        }
    }

    /// Asks a member for missing versions, and again until they are there.
    pub(super) fn want(&mut self, ctx: &mut MeshContext, id: RunId, member: u32) {
        let from = ctx.me();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let agent = run.agent(member);
        let peer = run.peer(member);
        if !peer.lacks() {
            return;
        }
        let (have, wait) = (peer.flows.have(), peer.want_wait.max(WANT_WAIT));
        peer.want_wait = Span::from_nanos(wait.as_nanos() * 2).min(WANT_WAIT_MAX);
        let at = ctx.about_after(wait);
        ctx.timers.set(Wake::Want(id, member), at);
        ctx.send_to(agent, &MeshMessage::Want { from, run: id, have });
    }
}
