//! Packets to replicas: the client's in each replica's numbers, and some in its place.

use super::client_state::ClientTcpState;
use super::delivered::DeliveredStream;
use super::replica_set::ConnectionReplicaSet;
use super::server_state::VirtualServerTcpState;
use crate::context::ReplicationContext;
use crate::draft::SegmentDraft;
use crate::event::ReplicaId;
use crate::icmp::IcmpQuotedSegment;
use crate::options::TcpOptions;
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use crate::segment::{CONTROL, ParsedTcpSegment};
use windtunnel_wire::{ecn::EcnCodepoint, tcp};

/// What packets to replicas are made of. Only the count of packets changes.
pub(super) struct ReplicaSender<'a> {
    pub(super) client: &'a ClientTcpState,
    pub(super) server: &'a mut VirtualServerTcpState,
    pub(super) replicas: &'a ConnectionReplicaSet,
    pub(super) delivered: &'a DeliveredStream,
}

impl ReplicaSender<'_> {
    /// The client's SYN. Fast open and other options that need a state of their own on both sides
    /// are left out, and so is data with the SYN.
    pub(super) fn send_syn(&self, cx: &mut ReplicationContext<'_>, index: usize) {
        let client = self.client;
        let ecn = if client.wants_ecn { tcp::ECE | tcp::CWR } else { 0 };
        let draft = SegmentDraft {
            sequence: client.space.sequence(0),
            flags: tcp::SYN | ecn,
            window: client.syn_window,
            options: client.syn,
            ..SegmentDraft::default()
        };
        if let Some(replica) = self.replicas.members.get(index) {
            cx.sink.send_to_replica(replica.id, &draft, &client.template, 0);
        }
    }

    /// Passes a segment on as it is: the client's numbers are the same to all.
    pub(super) fn copy_to_all(
        &self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let draft = SegmentDraft {
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            flags: segment.flags & (CONTROL | tcp::ACK),
            window: segment.window,
            ..SegmentDraft::default()
        };
        let members = self.replicas.members.iter();
        for replica in members.filter(|one| one.status != ReplicaLifecycleStage::Out) {
            cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
        }
    }

    /// Passes a segment on in each replica's numbers.
    pub(super) fn pass(
        &self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        acked: u64,
    ) {
        let edge = self.client.window_edge(segment, acked);
        for replica in self.replicas.live() {
            let draft = SegmentDraft {
                sequence: segment.sequence,
                acknowledgement: replica.space.sequence(acked),
                flags: segment.flags,
                window: self.window_for(cx, replica, acked, edge),
                urgent: segment.urgent.unwrap_or(0),
                options: self.options_for(replica, segment, acked),
                payload: segment.payload,
                ecn: if replica.ecn { segment.ecn } else { EcnCodepoint::NotEct },
                gso_size: segment.gso_size,
            };
            let number = self.server.identification;
            cx.sink.send_to_replica(replica.id, &draft, &self.client.template, number);
        }
    }

    /// The options of the client's segment in a replica's numbers.
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
    fn window_for(
        &self,
        cx: &ReplicationContext<'_>,
        replica: &ConnectionReplica,
        acked: u64,
        edge: u64,
    ) -> u16 {
        let bound = self.delivered.end + u64::from(cx.config.limits.output);
        let shift = replica.syn.shift.and(self.client.syn.shift).unwrap_or(0);
        let window = edge.min(bound).saturating_sub(acked) >> shift;
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// Passes a reset of the client on in each replica's numbers.
    pub(super) fn pass_reset(
        &self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        acked: u64,
    ) {
        for replica in self.replicas.live() {
            let draft = SegmentDraft {
                sequence: segment.sequence,
                acknowledgement: replica.space.sequence(acked),
                flags: segment.flags & (CONTROL | tcp::ACK),
                ..SegmentDraft::default()
            };
            cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
        }
    }

    /// Passes an ICMP error on, about the packet of that offset in each replica's numbers.
    pub(super) fn pass_icmp(
        &self,
        cx: &mut ReplicationContext<'_>,
        quote: &IcmpQuotedSegment,
        frame: &[u8],
        offset: u64,
    ) {
        for replica in self.replicas.live() {
            let mut copy = frame.to_vec();
            quote.write(&mut copy, replica.space.sequence(offset));
            cx.sink.copy_to_replica(replica.id, copy);
        }
    }

    /// Answers a replica that repeats what the client has acknowledged.
    pub(super) fn answer(&mut self, cx: &mut ReplicationContext<'_>, index: usize) {
        cx.sink.counters.answered += 1;
        self.send_as_client(cx, index, self.client.sent, &[]);
    }

    /// Sends a replica a byte that it has acknowledged: its kernel answers at once with what it
    /// has (RFC 9293, 3.8.4). Without the byte, Linux would answer once in 500 ms
    /// (`tcp_invalid_ratelimit`).
    pub(super) fn probe(&mut self, cx: &mut ReplicationContext<'_>, index: usize) {
        cx.sink.counters.probes += 1;
        let offset = self.replicas.members[index].acked.saturating_sub(1);
        self.send_as_client(cx, index, offset, &[0]);
    }

    fn send_as_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        offset: u64,
        payload: &[u8],
    ) {
        let replica = &self.replicas.members[index];
        let client = self.client;
        let echo = replica.stamps.latest.unwrap_or(0);
        let draft = SegmentDraft {
            sequence: client.space.sequence(offset),
            acknowledgement: replica.space.sequence(client.acked),
            flags: tcp::ACK,
            window: self.window_for(cx, replica, client.acked, client.edge),
            options: TcpOptions {
                stamps: replica.syn.stamps.map(|_| (client.stamp, echo)),
                ..TcpOptions::default()
            },
            payload,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_replica(replica.id, &draft, &client.template, self.server.identification);
        self.server.count_packets(0);
    }

    /// A reset for a replica, with the number that it has acknowledged.
    pub(super) fn reset(&self, cx: &mut ReplicationContext<'_>, index: usize) {
        let Some(replica) = self.replicas.members.get(index) else { return };
        let draft = SegmentDraft {
            // One that has not answered may know the SYN.
            sequence: self.client.space.sequence(replica.acked.max(1)),
            flags: tcp::RST,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_replica(replica.id, &draft, &self.client.template, 0);
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
        let rejection = SegmentDraft::rejection(segment);
        cx.sink.send_to_replica(id, &rejection, &self.client.template, 0);
    }
}
