//! Receiving the others' flows.

use super::context::MeshContext;
use super::runs::RunParticipationTable;
use super::{MeshEvent, MeshMessage, MeshTimer, MessageSender, RunParticipation};
use crate::wire::message::{FlowTableDelta, FlowTableDigest};

impl RunParticipationTable {
    pub(super) fn on_delta(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        delta: &FlowTableDelta,
    ) {
        let Some((run, member)) = self.confirmed(ctx, from, delta.run) else { return };
        if run.take_in(ctx, member, delta) {
            self.flush_soon(ctx, delta.run);
        }
    }

    pub(super) fn on_digest(
        &mut self,
        ctx: &mut MeshContext,
        from: MessageSender,
        digest: &FlowTableDigest,
    ) {
        if let Some((run, member)) = self.confirmed(ctx, from, digest.run) {
            run.compare(ctx, member, digest);
        }
    }
}

impl RunParticipation {
    /// Takes in a member's changes. Whether there are any that are new here.
    fn take_in(&mut self, ctx: &mut MeshContext, member: u32, delta: &FlowTableDelta) -> bool {
        let (run, agent, limit) = (self.id, self.members.agent(member), ctx.config.limits.flows);
        let reception = &mut self.peer(member).reception;
        let applied = reception.flows.apply(delta, limit);
        let overflows = reception.overflows(applied.refused);
        ctx.out.counters.stale += u64::from(applied.stale);
        ctx.out.counters.refused += applied.refused;
        self.await_missing(ctx, member);
        let changes = applied.changes;
        let has_changed = !changes.is_empty();
        if has_changed {
            self.note_arrivals(ctx, member, &changes);
            ctx.out.events.push_back(MeshEvent::Flows { run, agent, changes });
        }
        if overflows {
            // It has announced more than is kept.
            ctx.out.events.push_back(MeshEvent::FlowsRefused { run, agent });
        }
        has_changed
    }

    /// A missing message may only be late: it is asked for if it does not come soon.
    fn await_missing(&mut self, ctx: &mut MeshContext, member: u32) {
        let wake = MeshTimer::Want(self.id, member);
        let reception = &mut self.peer(member).reception;
        if !reception.lacks() {
            ctx.timers.cancel(wake);
        } else if reception.flows.has_gap() && !ctx.timers.is_set(wake) {
            reception.begin_wanting();
            let at = ctx.after(ctx.config.pace.patience);
            ctx.timers.set(wake, at);
        }
    }

    /// Compares what is known of a member with its digest.
    fn compare(&mut self, ctx: &mut MeshContext, member: u32, digest: &FlowTableDigest) {
        let wake = MeshTimer::Want(self.id, member);
        let losses_differ = digest.lost != self.members.lost_sum;
        let reception = &mut self.peer(member).reception;
        match reception.compare(digest) {
            Some(false) if !ctx.timers.is_set(wake) => {
                reception.begin_wanting();
                self.want(ctx, member);
            }
            Some(true) => ctx.timers.cancel(wake),
            Some(false) | None => {}
        }
        if losses_differ {
            self.answer_outsider(ctx, member);
        }
    }

    /// Asks a member for missing versions, and again until they are there.
    pub(super) fn want(&mut self, ctx: &mut MeshContext, member: u32) {
        let (run, agent) = (self.id, self.members.agent(member));
        let Some((have, wait)) = self.peer(member).reception.next_want() else { return };
        let at = ctx.about_after(wait);
        ctx.timers.set(MeshTimer::Want(run, member), at);
        let from = ctx.me();
        ctx.send_to(agent, &MeshMessage::Want { from, run, have });
    }
}
