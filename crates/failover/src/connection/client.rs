//! The client's packets, translated for each replica.

use super::{ConnectionPhase, ReplicatedConnection, ReplicationContext};
use crate::config::RESET_LINGER;
use crate::draft::SegmentDraft;
use crate::event::ConnectionTermination;
use crate::options::TcpOptions;
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use crate::segment::{CONTROL, ParsedTcpSegment};
use windtunnel_wire::{ecn::Codepoint, tcp};

impl ReplicatedConnection {
    /// A packet of the client. `true` if it opens a new connection in the place of this one, which
    /// is the caller's to do.
    pub(crate) fn handle_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) -> bool {
        self.active = cx.now;
        if segment.has(tcp::SYN) && !segment.has(tcp::ACK) {
            return self.handle_syn(cx, segment);
        }
        match self.phase {
            // What a client in SYN-SENT answers to an acknowledgement out of place.
            ConnectionPhase::Opening { .. } => self.copy_to_all(cx, segment),
            ConnectionPhase::Over { ending, .. } if !self.is_translating() => {
                self.reject_client(cx, ending, segment);
            }
            ConnectionPhase::Open | ConnectionPhase::Over { .. } => self.translate(cx, segment),
        }
        false
    }

    fn handle_syn(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) -> bool {
        let is_same = segment.sequence == self.client.space.isn;
        match (self.phase, is_same) {
            (ConnectionPhase::Opening { .. }, true) => self.ask_again(cx, segment),
            (ConnectionPhase::Open, true) if self.client.acked == 0 => self.send_syn_ack(cx),
            (ConnectionPhase::Opening { .. } | ConnectionPhase::Over { .. }, false) => return true,
            // The replicas challenge it (RFC 9293, 3.10.7.4), and the client resets what it
            // does not know any more.
            (ConnectionPhase::Open, _) => {
                self.client.lacks_ack = true;
                self.copy_to_all(cx, segment);
            }
            (ConnectionPhase::Over { ending, .. }, true) => self.reject_client(cx, ending, segment),
        }
        false
    }

    /// Passes a segment on as it is: the client's numbers are the same to all.
    fn copy_to_all(&self, cx: &mut ReplicationContext<'_>, segment: &ParsedTcpSegment<'_>) {
        let draft = SegmentDraft {
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            flags: segment.flags & (CONTROL | tcp::ACK),
            window: segment.window,
            ..SegmentDraft::default()
        };
        for replica in self.replicas.iter().filter(|one| one.status != ReplicaLifecycleStage::Out) {
            cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
        }
    }

    fn translate(&mut self, cx: &mut ReplicationContext<'_>, segment: &ParsedTcpSegment<'_>) {
        let Some(offset) = self.client.space.offset(segment.sequence, self.client.sent) else {
            cx.sink.counters.implausible += 1;
            return;
        };
        if segment.has(tcp::RST) {
            self.reset_by_client(cx, segment, offset);
            return;
        }
        let acked = self.server.space.offset(segment.acknowledgement, self.client.acked);
        // Nothing beyond `delivered` was sent to it, so it cannot have it; and a replica that is
        // behind would take the acknowledgement for an attack (RFC 5961, 5).
        let Some(acked) = acked.filter(|acked| *acked <= self.delivered && segment.has(tcp::ACK))
        else {
            cx.sink.counters.implausible += 1;
            return;
        };
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        self.note(cx, segment, offset, acked);
        for replica in self.replicas.iter().filter(|replica| replica.is_live()) {
            self.copy(cx, replica, segment, acked);
        }
        self.end_if_finished(cx);
    }

    /// What a segment says of the client.
    fn note(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        acked: u64,
    ) {
        let end = offset + segment.len();
        self.note_offer(segment, offset, end);
        let client = &mut self.client;
        client.template.renew(segment.head);
        if segment.len() > 0 && end <= client.sent {
            cx.sink.counters.client_retransmissions += 1;
            client.retransmissions += 1;
        }
        client.sent = client.sent.max(end);
        if segment.has(tcp::FIN) {
            client.fin = Some(end - 1);
        }
        if acked >= client.acked {
            client.acked = acked;
            client.edge = acked + (u64::from(segment.window) << client.shift);
        }
        if let Some((value, echo)) = segment.options.stamps {
            if crate::offset::is_later(value, client.stamp) {
                client.stamp = value;
            }
            for replica in &mut self.replicas {
                replica.stamps.forget_before(echo);
            }
        }
        if self.client.retransmissions >= cx.config.detection.retransmissions {
            for replica in self.replicas.iter_mut().filter(|replica| replica.is_live()) {
                replica.health.hurry();
            }
        }
    }

    /// What a segment brings to whom, and whether it asks for room: with a byte beyond the window, or
    /// an old number (RFC 9293, 3.8.6.1; Linux does the latter).
    fn note_offer(&mut self, segment: &ParsedTcpSegment<'_>, offset: u64, end: u64) {
        for replica in &mut self.replicas {
            let is_next = offset <= replica.acked && replica.acked < end;
            if is_next && replica.acked < replica.edge {
                replica.offers = replica.offers.saturating_add(1);
            }
        }
        let is_beyond = segment.len() > 0 && end > self.server.announced.1;
        self.client.lacks_ack |= offset < self.server.announced.0 || is_beyond;
        if end > self.client.sent {
            self.client.asks = is_beyond;
        } else if segment.len() == 0 && offset < self.acked() {
            self.client.asks = true;
        }
    }

    /// The segment in a replica's numbers.
    fn copy(
        &self,
        cx: &mut ReplicationContext<'_>,
        replica: &ConnectionReplica,
        segment: &ParsedTcpSegment<'_>,
        acked: u64,
    ) {
        let edge = acked + (u64::from(segment.window) << self.client.shift);
        let draft = SegmentDraft {
            sequence: segment.sequence,
            acknowledgement: replica.space.sequence(acked),
            flags: segment.flags,
            window: self.window_for(cx, replica, acked, edge),
            urgent: segment.urgent.unwrap_or(0),
            options: self.options_for(replica, segment, acked),
            payload: segment.payload,
            ecn: if replica.ecn { segment.ecn } else { Codepoint::NotEct },
            gso_size: segment.gso_size,
        };
        cx.sink.send_to_replica(
            replica.id,
            &draft,
            &self.client.template,
            self.server.identification,
        );
    }

    fn options_for(
        &self,
        replica: &ConnectionReplica,
        segment: &ParsedTcpSegment<'_>,
        acked: u64,
    ) -> TcpOptions {
        let stamps = segment.options.stamps.filter(|_| replica.syn.stamps.is_some());
        let mut options = TcpOptions {
            stamps: stamps.map(|(value, echo)| (value, replica.stamps.echo(echo))),
            ..TcpOptions::default()
        };
        if !replica.syn.sack_permitted {
            return options;
        }
        let theirs = |sequence: u32| {
            let offset = self.server.space.offset(sequence, acked)?;
            Some(replica.space.sequence(offset))
        };
        for (start, end) in segment.options.blocks() {
            if let (Some(start), Some(end)) = (theirs(*start), theirs(*end)) {
                options.add_block((start, end));
            }
        }
        options
    }

    /// The window field for a replica: no further than what is kept of its output when it is
    /// ahead, so that the bound is never met by a replica that keeps to its window.
    pub(super) fn window_for(
        &self,
        cx: &ReplicationContext<'_>,
        replica: &ConnectionReplica,
        acked: u64,
        edge: u64,
    ) -> u16 {
        let bound = self.delivered + u64::from(cx.config.limits.output);
        let shift = replica.syn.shift.and(self.client.syn.shift).unwrap_or(0);
        let window = edge.min(bound).saturating_sub(acked) >> shift;
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// The client resets the connection. Each replica judges for itself whether the number is right
    /// (RFC 5961, 3.2): one that has less than the client sent challenges it, which is passed.
    fn reset_by_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
    ) {
        let acked = self.server.space.offset(segment.acknowledgement, self.client.acked);
        let acked = acked.filter(|acked| *acked <= self.delivered).unwrap_or(self.client.acked);
        for replica in self.replicas.iter().filter(|replica| replica.is_live()) {
            let draft = SegmentDraft {
                sequence: segment.sequence,
                acknowledgement: replica.space.sequence(acked),
                flags: segment.flags & (CONTROL | tcp::ACK),
                ..SegmentDraft::default()
            };
            cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
        }
        if (self.acked()..=self.client.sent).contains(&offset) {
            self.end(cx, ConnectionTermination::ClientReset, RESET_LINGER);
        }
    }
}
