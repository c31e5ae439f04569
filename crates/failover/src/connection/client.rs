//! The client's packets.

use super::ReplicatedConnection;
use super::lifecycle::ConnectionPhase;
use crate::config::RESET_LINGER;
use crate::context::ReplicationContext;
use crate::event::ConnectionTermination;
use crate::segment::ParsedTcpSegment;
use windtunnel_wire::tcp;

impl ReplicatedConnection {
    /// A packet of the client. `true` if it opens a new connection in the place of this one, which
    /// is the caller's to do.
    pub(crate) fn handle_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) -> bool {
        self.life.active = cx.now;
        if segment.has(tcp::SYN) && !segment.has(tcp::ACK) {
            return self.handle_syn(cx, segment);
        }
        match self.life.phase {
            // What a client in SYN-SENT answers to an acknowledgement out of place.
            ConnectionPhase::Opening { .. } => self.replica_sender().copy_to_all(cx, segment),
            ConnectionPhase::Over { ending, .. } if !self.life.is_translating(&self.replicas) => {
                self.client_sender().reject(cx, ending, segment);
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
        match (self.life.phase, is_same) {
            (ConnectionPhase::Opening { .. }, true) => self.ask_again(cx, segment),
            (ConnectionPhase::Open, true) if self.client.acked == 0 => {
                self.client_sender().send_syn_ack(cx);
            }
            (ConnectionPhase::Opening { .. } | ConnectionPhase::Over { .. }, false) => return true,
            // The replicas challenge it (RFC 9293, 3.10.7.4), and the client resets what it
            // does not know any more.
            (ConnectionPhase::Open, _) => {
                self.client.lacks_ack = true;
                self.replica_sender().copy_to_all(cx, segment);
            }
            (ConnectionPhase::Over { ending, .. }, true) => {
                self.client_sender().reject(cx, ending, segment);
            }
        }
        false
    }

    fn translate(&mut self, cx: &mut ReplicationContext<'_>, segment: &ParsedTcpSegment<'_>) {
        let Some(offset) = self.client.space.offset(segment.sequence, self.client.sent) else {
            cx.sink.counters.implausible += 1;
            return;
        };
        let acked = self.server.space.offset(segment.acknowledgement, self.client.acked);
        // Nothing beyond `delivered` was sent to it, so it cannot have it; and a replica that is
        // behind would take the acknowledgement for an attack (RFC 5961, 5).
        let acked = acked.filter(|acked| *acked <= self.delivered.end);
        if segment.has(tcp::RST) {
            self.reset_by_client(cx, segment, offset, acked.unwrap_or(self.client.acked));
            return;
        }
        let Some(acked) = acked.filter(|_| segment.has(tcp::ACK)) else {
            cx.sink.counters.implausible += 1;
            return;
        };
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        self.note(cx, segment, offset, acked);
        self.replica_sender().pass(cx, segment, acked);
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
        self.replicas.count_offers(offset, offset + segment.len());
        self.client.note_request(segment, offset, self.server.announced, &self.replicas);
        if self.client.advance(segment, offset, acked) {
            cx.sink.counters.client_retransmissions += 1;
        }
        if let Some((_, echo)) = segment.options.stamps {
            for replica in &mut self.replicas.members {
                replica.stamps.forget_before(echo);
            }
        }
        if self.client.retransmissions >= cx.config.detection.retransmissions {
            for replica in self.replicas.live_mut() {
                replica.health.hurry();
            }
        }
    }

    /// The client resets the connection. Each replica judges for itself whether the number is right
    /// (RFC 5961, 3.2): one that has less than the client sent challenges it, which is passed.
    fn reset_by_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        acked: u64,
    ) {
        self.replica_sender().pass_reset(cx, segment, acked);
        if (self.acked()..=self.client.sent).contains(&offset) {
            self.life.end(cx, ConnectionTermination::ClientReset, RESET_LINGER);
        }
    }
}
