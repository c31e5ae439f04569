//! Replicas that leave a connection, and which speaks after them.

use super::{ConnectionPhase, ReplicatedConnection, ReplicationContext};
use crate::config::{LastReplicaLossPolicy, RESET_LINGER};
use crate::draft::SegmentDraft;
use crate::event::{ConnectionTermination, ReplicaExpulsionCause, ReplicaId, ReplicationEventKind};
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use crate::segment::ParsedTcpSegment;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

impl ReplicatedConnection {
    /// A replica is gone: the caller says so.
    pub(crate) fn lose(&mut self, cx: &mut ReplicationContext<'_>, id: ReplicaId) {
        let Some(index) = self.index_of(id) else { return };
        if self.status(index) == ReplicaLifecycleStage::Out || self.is_over() {
            return;
        }
        self.expel(cx, index, ReplicaExpulsionCause::Withdrawn, cx.now);
        match self.phase {
            ConnectionPhase::Opening { .. } => self.open_if_all_answered(cx),
            ConnectionPhase::Open => self.go_on(cx),
            ConnectionPhase::Over { .. } => {}
        }
    }

    /// Takes a replica out of the connection and resets its side, so that a server that lives does
    /// not keep a connection that leads nowhere. What it kept back from the client is for
    /// [`ReplicatedConnection::go_on`], afterwards.
    pub(super) fn expel(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        cause: ReplicaExpulsionCause,
        since: Time,
    ) {
        if cause != ReplicaExpulsionCause::Reset {
            self.reset_replica(cx, index);
        }
        self.leave(cx, index, cause, since);
        if matches!(self.phase, ConnectionPhase::Opening { .. }) {
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
    pub(super) fn leave(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        cause: ReplicaExpulsionCause,
        since: Time,
    ) {
        self.replicas[index].leave();
        cx.sink.counters.expelled += 1;
        if matches!(cause, ReplicaExpulsionCause::Differed { .. }) {
            cx.sink.counters.differed += 1;
        }
        let left =
            self.replicas.iter().filter(|one| one.status != ReplicaLifecycleStage::Out).count();
        let (replica, after) = (self.replicas[index].id, cx.now.since(since));
        cx.sink.event(self.key, ReplicationEventKind::Expelled { replica, cause, after, left });
    }

    /// The first of the live replicas speaks. All have what the client has, so that any could.
    fn promote(&mut self, cx: &mut ReplicationContext<'_>) {
        let Some(next) = self.replicas.iter().position(ConnectionReplica::is_live) else { return };
        self.primary = next;
        self.server.cwr = false;
        cx.sink.counters.promoted += 1;
        cx.sink.event(self.key, ReplicationEventKind::Promoted { replica: self.replicas[next].id });
    }

    /// The last replica is gone.
    fn lost(&mut self, cx: &mut ReplicationContext<'_>, cause: ReplicaExpulsionCause) {
        let is_reset = cause == ReplicaExpulsionCause::Reset;
        if is_reset || cx.config.on_loss == LastReplicaLossPolicy::Reset {
            self.reset_client(cx);
        }
        let ending = if is_reset {
            ConnectionTermination::ReplicaReset
        } else {
            ConnectionTermination::Lost
        };
        self.end(cx, ending, RESET_LINGER);
    }

    /// What the client expects next is the only number that it takes a reset by (RFC 5961, 3.2).
    fn reset_client(&self, cx: &mut ReplicationContext<'_>) {
        let draft = SegmentDraft {
            sequence: self.server.space.sequence(self.delivered),
            acknowledgement: self.client.space.sequence(self.server.announced.0),
            flags: tcp::RST | tcp::ACK,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
    }

    /// A reset for a replica, with the number that it has acknowledged.
    fn reset_replica(&self, cx: &mut ReplicationContext<'_>, index: usize) {
        let Some(replica) = self.replicas.get(index) else { return };
        let draft = SegmentDraft {
            // One that has not answered may know the SYN.
            sequence: self.client.space.sequence(replica.acked.max(1)),
            flags: tcp::RST,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
    }

    /// This connection is forgotten at once: replicas that wait for the client are reset, so that
    /// they do not answer it themselves.
    pub(crate) fn abandon(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        ending: ConnectionTermination,
    ) {
        let is_half_open = self.is_half_open();
        for index in 0..self.replicas.len() {
            let waits = match self.status(index) {
                ReplicaLifecycleStage::Asked | ReplicaLifecycleStage::Answered => true,
                ReplicaLifecycleStage::Live => is_half_open,
                ReplicaLifecycleStage::Out => false,
            };
            if waits {
                self.reset_replica(cx, index);
            }
        }
        self.end(cx, ending, RESET_LINGER);
    }

    /// A segment of a replica that takes no part is answered as by a closed port.
    pub(super) fn reject(
        &self,
        cx: &mut ReplicationContext<'_>,
        id: ReplicaId,
        segment: &ParsedTcpSegment<'_>,
    ) {
        cx.sink.counters.outsiders += 1;
        if segment.has(tcp::RST) {
            return;
        }
        cx.sink.send_to_replica(id, &rejection(segment), &self.client.template, 0);
    }

    /// A segment of the client after the last replica is gone.
    pub(super) fn reject_client(
        &self,
        cx: &mut ReplicationContext<'_>,
        ending: ConnectionTermination,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let is_silent = ending == ConnectionTermination::Lost
            && cx.config.on_loss == LastReplicaLossPolicy::Silent;
        if segment.has(tcp::RST) || is_silent {
            return;
        }
        let server = &self.server;
        cx.sink.send_to_client(&rejection(segment), &server.template, server.identification);
    }
}

/// The reset that answers a segment where there is no connection (RFC 9293, 3.10.7.1).
fn rejection(segment: &ParsedTcpSegment<'_>) -> SegmentDraft<'static> {
    if segment.has(tcp::ACK) {
        return SegmentDraft {
            sequence: segment.acknowledgement,
            flags: tcp::RST,
            ..SegmentDraft::default()
        };
    }
    let length = crate::offset::low_half(segment.len());
    SegmentDraft {
        acknowledgement: segment.sequence.wrapping_add(length),
        flags: tcp::RST | tcp::ACK,
        ..SegmentDraft::default()
    }
}
