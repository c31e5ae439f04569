//! Replicas that leave a connection, and which speaks after them.

use super::{Connection, Context, Phase};
use crate::config::{OnLoss, RESET_LINGER};
use crate::draft::Draft;
use crate::event::{Cause, Ending, ReplicaId, What};
use crate::replica::{Replica, Status};
use crate::segment::Segment;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

impl Connection {
    /// A replica is gone: the caller says so.
    pub(crate) fn lose(&mut self, cx: &mut Context<'_>, id: ReplicaId) {
        let Some(index) = self.index_of(id) else { return };
        if self.status(index) == Status::Out || self.is_over() {
            return;
        }
        self.expel(cx, index, Cause::Withdrawn, cx.now);
        match self.phase {
            Phase::Opening { .. } => self.open_if_all_answered(cx),
            Phase::Open => self.go_on(cx),
            Phase::Over { .. } => {}
        }
    }

    /// Takes a replica out of the connection and resets its side, so that a server that lives does
    /// not keep a connection that leads nowhere. What it kept back from the client is for
    /// [`Connection::go_on`], afterwards.
    pub(super) fn expel(&mut self, cx: &mut Context<'_>, index: usize, cause: Cause, since: Time) {
        if cause != Cause::Reset {
            self.reset_replica(cx, index);
        }
        self.leave(cx, index, cause, since);
        if matches!(self.phase, Phase::Opening { .. }) {
            return;
        }
        self.is_resuming = true;
        if self.live_count() == 0 {
            self.lost(cx, cause);
        } else if index == self.primary {
            self.promote(cx);
        }
    }

    /// The part of that without consequences for the others.
    pub(super) fn leave(&mut self, cx: &mut Context<'_>, index: usize, cause: Cause, since: Time) {
        self.replicas[index].leave();
        cx.sink.counters.expelled += 1;
        if matches!(cause, Cause::Differed { .. }) {
            cx.sink.counters.differed += 1;
        }
        let left = self.replicas.iter().filter(|one| one.status != Status::Out).count();
        let (replica, after) = (self.replicas[index].id, cx.now.since(since));
        cx.sink.event(self.key, What::Expelled { replica, cause, after, left });
    }

    /// The first of the live replicas speaks. All have what the client has, so that any could.
    fn promote(&mut self, cx: &mut Context<'_>) {
        let Some(next) = self.replicas.iter().position(Replica::is_live) else { return };
        self.primary = next;
        self.server.cwr = false;
        cx.sink.counters.promoted += 1;
        cx.sink.event(self.key, What::Promoted { replica: self.replicas[next].id });
    }

    /// The last replica is gone.
    fn lost(&mut self, cx: &mut Context<'_>, cause: Cause) {
        let is_reset = cause == Cause::Reset;
        if is_reset || cx.config.on_loss == OnLoss::Reset {
            self.reset_client(cx);
        }
        let ending = if is_reset { Ending::ReplicaReset } else { Ending::Lost };
        self.end(cx, ending, RESET_LINGER);
    }

    /// What the client expects next is the only number that it takes a reset by (RFC 5961, 3.2).
    fn reset_client(&self, cx: &mut Context<'_>) {
        let draft = Draft {
            sequence: self.server.space.sequence(self.delivered),
            acknowledgement: self.client.space.sequence(self.server.announced.0),
            flags: tcp::RST | tcp::ACK,
            ..Draft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
    }

    /// A reset for a replica, with the number that it has acknowledged.
    fn reset_replica(&self, cx: &mut Context<'_>, index: usize) {
        let Some(replica) = self.replicas.get(index) else { return };
        let draft = Draft {
            // One that has not answered may know the SYN.
            sequence: self.client.space.sequence(replica.acked.max(1)),
            flags: tcp::RST,
            ..Draft::default()
        };
        cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
    }

    /// This connection is forgotten at once: replicas that wait for the client are reset, so that
    /// they do not answer it themselves.
    pub(crate) fn abandon(&mut self, cx: &mut Context<'_>, ending: Ending) {
        let is_half_open = self.is_half_open();
        for index in 0..self.replicas.len() {
            let waits = match self.status(index) {
                Status::Asked | Status::Answered => true,
                Status::Live => is_half_open,
                Status::Out => false,
            };
            if waits {
                self.reset_replica(cx, index);
            }
        }
        self.end(cx, ending, RESET_LINGER);
    }

    /// A segment of a replica that takes no part is answered as by a closed port.
    pub(super) fn reject(&self, cx: &mut Context<'_>, id: ReplicaId, segment: &Segment<'_>) {
        cx.sink.counters.outsiders += 1;
        if segment.has(tcp::RST) {
            return;
        }
        cx.sink.send_to_replica(id, &rejection(segment), &self.client.template, 0);
    }

    /// A segment of the client after the last replica is gone.
    pub(super) fn reject_client(
        &self,
        cx: &mut Context<'_>,
        ending: Ending,
        segment: &Segment<'_>,
    ) {
        let is_silent = ending == Ending::Lost && cx.config.on_loss == OnLoss::Silent;
        if segment.has(tcp::RST) || is_silent {
            return;
        }
        let server = &self.server;
        cx.sink.send_to_client(&rejection(segment), &server.template, server.identification);
    }
}

/// The reset that answers a segment where there is no connection (RFC 9293, 3.10.7.1).
fn rejection(segment: &Segment<'_>) -> Draft<'static> {
    if segment.has(tcp::ACK) {
        return Draft { sequence: segment.acknowledgement, flags: tcp::RST, ..Draft::default() };
    }
    let length = crate::offset::low_half(segment.len());
    Draft {
        acknowledgement: segment.sequence.wrapping_add(length),
        flags: tcp::RST | tcp::ACK,
        ..Draft::default()
    }
}
