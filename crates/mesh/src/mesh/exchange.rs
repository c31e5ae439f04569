//! Receiving the others' flows.

use windtunnel_model::Span;

use super::{Event, Mesh, Message, RunId, Sender, Wake};
use crate::wire::message::{Delta, Digest};

/// Until a request for missing versions is repeated: doubled each time…
const WANT_WAIT: Span = Span::from_millis(20);
/// …up to this.
const WANT_WAIT_MAX: Span = Span::from_millis(500);

impl Mesh {
    pub(super) fn on_delta(&mut self, from: Sender, delta: &Delta) {
        let Some(member) = self.confirmed(from, delta.run) else { return };
        let (id, agent, limit) = (delta.run, from.agent, self.config.limits.flows);
        let Some(run) = self.runs.get_mut(&id) else { return };
        let peer = run.peer(member);
        let range = (delta.prev, delta.top);
        let applied = peer.flows.apply(range, delta.full, &delta.entries, limit);
        let (gap, lacks) = (peer.flows.has_gap(), peer.lacks());
        let overflow = applied.refused > 0 && !peer.overflow_reported;
        peer.overflow_reported |= overflow;
        self.out.counters.stale += u64::from(applied.stale);
        self.out.counters.refused += applied.refused;
        if !applied.changes.is_empty() {
            self.note_arrivals(id, member, &applied.changes);
            let changes = applied.changes;
            self.out.events.push_back(Event::Flows { run: id, agent, changes });
        }
        if overflow {
            self.refuse_flows(id, agent);
        }
        if !lacks {
            self.timers.cancel(Wake::Want(id, member));
        } else if gap && !self.timers.is_set(Wake::Want(id, member)) {
            // A missing message may only be late.
            let at = self.after(self.config.pace.patience);
            self.begin_wanting(id, member);
            self.timers.set(Wake::Want(id, member), at);
        }
    }

    pub(super) fn on_digest(&mut self, from: Sender, digest: &Digest) {
        let Some(member) = self.confirmed(from, digest.run) else { return };
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
            if !self.timers.is_set(Wake::Want(id, member)) {
                self.begin_wanting(id, member);
                self.want(id, member);
            }
        } else if agrees == Some(true) {
            // Announcements beyond that have been withdrawn.
            peer.want_top = 0;
            self.timers.cancel(Wake::Want(id, member));
        }
        if losses_differ {
            self.answer_outsider(id, member);
        }
    }

    fn begin_wanting(&mut self, id: RunId, member: u32) {
        if let Some(run) = self.runs.get_mut(&id) {
            run.peer(member).want_wait = WANT_WAIT;
        }
    }

    /// Asks a member for missing versions, and again until they are there.
    pub(super) fn want(&mut self, id: RunId, member: u32) {
        let from = self.me();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let agent = run.agent(member);
        let peer = run.peer(member);
        if !peer.lacks() {
            return;
        }
        let (have, wait) = (peer.flows.have(), peer.want_wait.max(WANT_WAIT));
        peer.want_wait = Span::from_nanos(wait.as_nanos() * 2).min(WANT_WAIT_MAX);
        let at = self.about_after(wait);
        self.timers.set(Wake::Want(id, member), at);
        self.send_to(agent, &Message::Want { from, run: id, have });
    }
}
