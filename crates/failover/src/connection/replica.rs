//! Replicas' packets, and what the client gets of them.

use core::ops::Range;

use super::ReplicatedConnection;
use super::comparison::OutputComparison;
use super::lifecycle::ConnectionPhase;
use super::repetition::{RepetitionResponse, SegmentRepetition};
use crate::context::ReplicationContext;
use crate::event::{ReplicaExpulsionCause, ReplicaId};
use crate::offset::len64;
use crate::replica::ReplicaAckKind;
use crate::segment::ParsedTcpSegment;
use crate::stamps;
use windtunnel_wire::tcp;

impl ReplicatedConnection {
    /// A packet of a replica.
    pub(crate) fn handle_replica(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        id: ReplicaId,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let Some(index) = self.replicas.index_of(id) else {
            self.replica_sender().reject(cx, id, segment);
            return;
        };
        self.life.active = cx.now;
        self.replicas.note_alive(index, cx.now, &cx.config.detection);
        match self.life.phase {
            ConnectionPhase::Opening { .. } => self.handle_answer(cx, index, segment),
            _ if !self.life.is_translating(&self.replicas) => {
                self.replica_sender().reject(cx, id, segment);
            }
            _ if segment.has(tcp::RST) => self.reset_by_replica(cx, index, segment),
            _ if segment.has(tcp::SYN) => self.repeat_handshake(cx, index),
            _ => self.take(cx, index, segment),
        }
    }

    /// A SYN-ACK again: the replica lacks what the client has answered, or the client does.
    fn repeat_handshake(&mut self, cx: &mut ReplicationContext<'_>, index: usize) {
        if self.client.acked > 0 {
            self.replica_sender().answer(cx, index);
        } else if index == self.replicas.primary || self.server.is_quiet(cx.now) {
            self.client_sender().send_syn_ack(cx);
        }
    }

    /// A reset means that this replica cannot go on. Where others can, they do; where it is the
    /// last, the client is reset: a server that resets its connection does so on all replicas.
    fn reset_by_replica(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let replica = &self.replicas.members[index];
        let near = replica.output.data_end();
        let reach = u64::from(cx.config.limits.output);
        let offset = replica.space.offset(segment.sequence, near);
        if !offset.is_some_and(|offset| offset + reach >= near && offset <= near + reach) {
            cx.sink.counters.implausible += 1;
            return;
        }
        self.expel(cx, index, ReplicaExpulsionCause::Reset, cx.now);
        self.go_on(cx);
    }

    fn take(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let before = self.acked();
        let replica = &mut self.replicas.members[index];
        let Some(offset) = replica.space.offset(segment.sequence, replica.output.data_end()) else {
            cx.sink.counters.implausible += 1;
            return;
        };
        let mut said = replica.acknowledge(segment, offset, self.client.space, self.client.sent);
        if said == ReplicaAckKind::Implausible {
            cx.sink.counters.implausible += 1;
            return;
        }
        let detection = &cx.config.detection;
        if said == ReplicaAckKind::Duplicate && replica.health.answers_probe(cx.now, detection) {
            // The client has asked for no answer to a probe of this room.
            replica.repeated = replica.repeated.saturating_sub(1);
            said = ReplicaAckKind::Old;
        }
        replica.note_sent(segment, offset, self.client.acked, self.client.edge);
        if let Some((value, _)) = segment.options.stamps {
            replica.stamps.record(stamps::clock(cx.now), value);
        }
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        self.note_acknowledged(index, before);
        self.server.note_marks(segment, index == self.replicas.primary);
        let known = self.delivered.known_from(offset);
        self.replicas.members[index].output.store(cx, segment, offset);
        self.deliver(cx, Some(offset..offset + len64(segment.payload.len())));
        if self.replicas.members[index].is_live() {
            self.repeat(cx, index, segment, offset, known);
            self.client_sender().acknowledge(cx, Some((index, segment, said)));
        } else {
            self.client_sender().acknowledge(cx, None);
        }
        self.watch(cx);
        self.end_if_finished(cx);
    }

    /// What is echoed to the client: what the replica that lets the acknowledgement grow echoes,
    /// and otherwise what the one that speaks does.
    fn note_acknowledged(&mut self, index: usize, before: u64) {
        let has_grown = self.acked() > before;
        if has_grown {
            self.client.retransmissions = 0;
        }
        if has_grown || self.replicas.speaker() == index {
            let replica = &self.replicas.members[index];
            // One without timestamps echoes nothing: the latest is the best guess.
            let has_stamps = replica.syn.stamps.is_some();
            self.server.echo = if has_stamps { replica.echo } else { self.client.stamp };
        }
    }

    /// Compares what has come, expels those that differ, and gives the client what all have sent.
    /// `came` is the only range in which there may be something new, if it is known.
    ///
    /// The client gets a byte once every live replica has sent the same, in whatever order they
    /// come: what a replica's way has lost is missing to the client, too, whose acknowledgements
    /// then have it sent again at once.
    pub(super) fn deliver(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        mut came: Option<Range<u64>>,
    ) {
        let agreed = loop {
            let comparison = OutputComparison::new(&self.replicas, &self.delivered, came.as_ref());
            let conflict = match comparison.agreed() {
                Ok(agreed) => break agreed,
                Err(conflict) => conflict,
            };
            for loser in &conflict.losers {
                let cause = conflict.cause(&self.replicas.members[*loser]);
                self.expel(cx, *loser, cause, cx.now);
            }
            came = None;
        };
        let mut sender = self.client_sender();
        for range in agreed.iter() {
            sender.send_new(cx, range.clone());
        }
        let end = sender.delivered.end;
        if !sender.delivered.is_finished() && sender.replicas.all_finish_at(end) {
            sender.send_new(cx, end..end);
        }
    }

    /// What a segment repeats, up to `known`: the client is sent it again, or has acknowledged it
    /// already, and then the replica is answered from here.
    fn repeat(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        known: u64,
    ) {
        let repetition = SegmentRepetition {
            segment,
            offset,
            known,
            acked: self.client.acked,
            is_primary: index == self.replicas.primary,
            is_quiet: self.server.is_quiet(cx.now),
        };
        match repetition.response() {
            RepetitionResponse::Nothing => {}
            RepetitionResponse::Answer => self.replica_sender().answer(cx, index),
            RepetitionResponse::SendAgain { end } => {
                self.client_sender().send_again(cx, segment, offset, end);
            }
            RepetitionResponse::Absorb => cx.sink.counters.absorbed += 1,
        }
    }
}
