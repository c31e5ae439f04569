//! Replicas' packets.

use super::{ConnectionPhase, ReplicatedConnection, ReplicationContext};
use crate::event::{ReplicaExpulsionCause, ReplicaId};
use crate::offset::len64;
use crate::output::OutputInsertOutcome;
use crate::replica::{Acknowledgement, ReplicaLifecycleStage};
use crate::segment::ParsedTcpSegment;
use crate::stamps;
use windtunnel_model::Span;
use windtunnel_wire::{ecn::Codepoint, tcp};

/// A backup's retransmission, or probe of the client's window, is passed where the client was sent
/// nothing for this time: where the primary is dead and that is not known, the client still gets
/// what it needs, and where it lives, it mostly gets it once.
const BACKUP_GAP: Span = Span::from_millis(20);

impl ReplicatedConnection {
    /// A packet of a replica.
    pub(crate) fn handle_replica(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        id: ReplicaId,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let Some(index) =
            self.index_of(id).filter(|index| self.status(*index) != ReplicaLifecycleStage::Out)
        else {
            self.reject(cx, id, segment);
            return;
        };
        self.active = cx.now;
        self.is_alive(cx, index);
        match self.phase {
            ConnectionPhase::Opening { .. } => self.handle_answer(cx, index, segment),
            _ if !self.is_translating() => self.reject(cx, id, segment),
            _ if segment.has(tcp::RST) => self.reset_by_replica(cx, index, segment),
            _ if segment.has(tcp::SYN) => self.repeat_handshake(cx, index),
            _ => self.take(cx, index, segment),
        }
    }

    /// A packet of a replica has come.
    fn is_alive(&mut self, cx: &ReplicationContext<'_>, index: usize) {
        let detection = &cx.config.detection;
        if self.replicas[index].health.is_silent(detection) {
            let others = self.replicas.iter_mut().filter(|other| other.health.is_silent(detection));
            others.for_each(|other| other.health.begin_again(cx.now));
        }
        self.replicas[index].health.is_alive(cx.now, detection);
    }

    /// A SYN-ACK again: the replica lacks what the client has answered, or the client does.
    fn repeat_handshake(&mut self, cx: &mut ReplicationContext<'_>, index: usize) {
        if self.client.acked > 0 {
            self.answer(cx, index);
        } else if self.may_repeat(cx, index) {
            self.send_syn_ack(cx);
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
        let replica = &self.replicas[index];
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
        let replica = &mut self.replicas[index];
        let Some(offset) = replica.space.offset(segment.sequence, replica.output.data_end()) else {
            cx.sink.counters.implausible += 1;
            return;
        };
        let mut said = replica.acknowledge(segment, offset, self.client.space, self.client.sent);
        if said == Acknowledgement::Implausible {
            cx.sink.counters.implausible += 1;
            return;
        }
        let detection = &cx.config.detection;
        if said == Acknowledgement::Duplicate && replica.health.answers_probe(cx.now, detection) {
            // The client has asked for no answer to a probe of this room.
            replica.repeated = replica.repeated.saturating_sub(1);
            said = Acknowledgement::Old;
        }
        replica.note_sent(segment, offset, self.client.acked, self.client.edge);
        if let Some((value, _)) = segment.options.stamps {
            replica.stamps.record(stamps::clock(cx.now), value);
        }
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        self.note_acknowledged(index, before);
        self.note_marks(index, segment);
        let known = self.known_from(offset);
        self.store(cx, index, segment, offset);
        self.deliver(cx, Some(offset..offset + len64(segment.payload.len())));
        if self.status(index) == ReplicaLifecycleStage::Live {
            self.repeat(cx, index, segment, offset, known);
            self.acknowledge(cx, Some((index, segment, said)));
        } else {
            self.acknowledge(cx, None);
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
        if has_grown || self.speaker() == index {
            let replica = &self.replicas[index];
            // One without timestamps echoes nothing: the latest is the best guess.
            let has_stamps = replica.syn.stamps.is_some();
            self.server.echo = if has_stamps { replica.echo } else { self.client.stamp };
        }
    }

    /// Congestion that the segment met, and what the primary says of its own.
    fn note_marks(&mut self, index: usize, segment: &ParsedTcpSegment<'_>) {
        let server = &mut self.server;
        if !segment.payload.is_empty() {
            server.ce |= segment.ecn == Codepoint::Ce;
            if index == self.primary && segment.ecn != Codepoint::Ce {
                server.codepoint = segment.ecn;
            }
        }
        if index == self.primary {
            server.cwr |= segment.has(tcp::CWR);
            server.template.renew(segment.head);
        }
    }

    /// Keeps what is new in a segment.
    fn store(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
    ) {
        let end = offset + len64(segment.payload.len());
        let counters = &mut cx.sink.counters;
        let room = cx.config.limits.output_total.saturating_sub(cx.sink.buffered);
        let output = &mut self.replicas[index].output;
        // What comes next is always taken, so that full memory is given back: a segment of each replica.
        let is_next = offset <= self.delivered;
        if end > self.delivered && segment.payload.len() > room && !is_next {
            counters.output_full += 1;
            return;
        }
        match output.insert(offset, segment.payload, u64::from(cx.config.limits.output)) {
            OutputInsertOutcome::Yes => {}
            OutputInsertOutcome::InPlaceOfLast => counters.output_gaps += 1,
            OutputInsertOutcome::TooFar => {
                counters.output_too_far += 1;
                return;
            }
            OutputInsertOutcome::TooManyGaps => {
                counters.output_gaps += 1;
                return;
            }
        }
        if segment.has(tcp::FIN) && output.fin.is_none() && end >= output.data_end() {
            output.fin = Some(end);
        }
        if let Some(urgent) = segment.urgent {
            output.urgent = Some(offset + u64::from(urgent)).max(output.urgent);
        }
    }

    /// The end of what the client was given from an offset on.
    fn known_from(&self, offset: u64) -> u64 {
        if offset < self.delivered { self.delivered } else { self.sent.end_from(offset) }
    }

    /// What a segment repeats, up to `known`: the client is sent it again, or has acknowledged it already, and
    /// then the replica is answered from here.
    fn repeat(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        known: u64,
    ) {
        let acked = self.client.acked;
        let end = (offset + segment.len()).min(known);
        if segment.len() == 0 || offset >= known {
            if segment.len() == 0 && offset < acked {
                self.probe_client(cx, index, segment, offset);
            }
        } else if end <= acked {
            // One byte that was acknowledged is a keep-alive (RFC 9293, 3.8.4).
            if segment.payload.len() == 1 && end == acked && !segment.has(tcp::FIN) {
                self.probe_client(cx, index, segment, offset);
            } else {
                self.answer(cx, index);
            }
        } else if index == self.primary || offset <= acked && self.may_repeat(cx, index) {
            self.send_again(cx, segment, offset, end);
        } else {
            cx.sink.counters.absorbed += 1;
        }
    }

    /// A segment just before what the client has acknowledged asks for its acknowledgement: a
    /// keep-alive, or a probe of its window. One further back is from a replica that has not got
    /// the client's last acknowledgement.
    fn probe_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
    ) {
        if offset + 1 < self.client.acked {
            self.answer(cx, index);
        } else if self.may_repeat(cx, index) {
            self.send_again(cx, segment, offset, offset + segment.len());
        }
    }

    /// Whether a segment that repeats something is passed.
    fn may_repeat(&self, cx: &ReplicationContext<'_>, index: usize) -> bool {
        let last = self.server.sent_data;
        index == self.primary || last.is_none_or(|last| cx.now.since(last) >= BACKUP_GAP)
    }
}
