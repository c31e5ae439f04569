//! The handshake: SYN to all, and the SYN-ACK that all can keep.

use alloc::vec::Vec;

use super::{
    ClientTcpState, ConnectionPhase, ReplicatedConnection, ReplicationContext,
    VirtualServerTcpState,
};
use crate::config::{OPENING_MAX, REPLICAS_MAX, RESET_LINGER};
use crate::draft::{PacketHeaderTemplate, SegmentDraft};
use crate::event::{
    ConnectionTermination, ReplicaExpulsionCause, ReplicaId, ReplicatedConnectionKey,
    ReplicationEventKind,
};
use crate::offset::Space;
use crate::options::TcpOptions;
use crate::ranges::StreamRangeSet;
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use crate::segment::ParsedTcpSegment;
use windtunnel_model::Time;
use windtunnel_wire::tcp;

/// The MSS where the option is missing (RFC 9293, 3.7.1): IPv4, IPv6.
const MSS_DEFAULT: (u16, u16) = (536, 1220);
/// Bytes of timestamps in a segment.
const STAMPS_LEN: usize = 12;

impl ReplicatedConnection {
    /// A client opens a connection: every replica is sent its SYN. Fast open and other options that
    /// need a state of their own on both sides are left out, and so is data with the SYN.
    pub(crate) fn open(
        cx: &mut ReplicationContext<'_>,
        key: ReplicatedConnectionKey,
        segment: &ParsedTcpSegment<'_>,
        order: &[ReplicaId],
    ) -> Self {
        cx.sink.counters.options_removed += u64::from(segment.options.others);
        if order.len() > REPLICAS_MAX {
            cx.sink.counters.replicas_left_out += 1;
        }
        let client = ClientTcpState::new(cx, key, segment);
        let template = client.template.reversed();
        let replicas =
            order.iter().take(REPLICAS_MAX).map(|id| ConnectionReplica::new(*id, cx.now));
        let connection = Self {
            key,
            phase: ConnectionPhase::Opening { first_answer: None },
            opened: cx.now,
            active: cx.now,
            client,
            server: VirtualServerTcpState {
                template,
                spoke: cx.now,
                ..VirtualServerTcpState::default()
            },
            replicas: replicas.collect::<Vec<_>>(),
            primary: 0,
            delivered: 1,
            sent: StreamRangeSet::default(),
            fin: None,
            is_resuming: false,
            shown: StreamRangeSet::default(),
        };
        for index in 0..connection.replicas.len() {
            connection.send_syn(cx, index);
        }
        connection
    }

    fn send_syn(&self, cx: &mut ReplicationContext<'_>, index: usize) {
        let client = &self.client;
        let ecn = if client.wants_ecn { tcp::ECE | tcp::CWR } else { 0 };
        let draft = SegmentDraft {
            sequence: client.space.sequence(0),
            flags: tcp::SYN | ecn,
            window: client.syn_window,
            options: client.syn,
            ..SegmentDraft::default()
        };
        if let Some(replica) = self.replicas.get(index) {
            cx.sink.send_to_replica(replica.id, &draft, &client.template, 0);
        }
    }

    /// The client has sent its SYN again: the replicas that have not answered are asked again.
    pub(super) fn ask_again(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) {
        if let (Some(stamps), true) = (segment.options.stamps, self.client.syn.stamps.is_some()) {
            self.client.syn.stamps = Some(stamps);
            self.client.stamp = stamps.0;
        }
        for index in 0..self.replicas.len() {
            if self.status(index) == ReplicaLifecycleStage::Asked {
                self.send_syn(cx, index);
                self.replicas[index].health.asked_again(cx.now);
            }
        }
    }

    /// A replica's packet before the client has been answered.
    pub(super) fn handle_answer(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        segment: &ParsedTcpSegment<'_>,
    ) {
        let answers_syn = segment.has(tcp::ACK)
            && self.client.space.offset(segment.acknowledgement, 1) == Some(1);
        if segment.has(tcp::RST) {
            if answers_syn {
                self.note_answer(cx.now);
                self.leave(cx, index, ReplicaExpulsionCause::Refused, cx.now);
                self.open_if_all_answered(cx);
            }
        } else if segment.has(tcp::SYN) && answers_syn {
            self.note_answer(cx.now);
            self.server.template.renew(segment.head);
            let replica = &mut self.replicas[index];
            if replica.status == ReplicaLifecycleStage::Asked {
                replica.health.round_trip = cx.now.since(replica.health.asked);
            }
            replica.answer(segment, self.client.syn.shift.is_some());
            if let Some((value, _)) = segment.options.stamps {
                replica.stamps.record(crate::stamps::clock(cx.now), value);
            }
            cx.sink.counters.options_removed += u64::from(segment.options.others);
            self.open_if_all_answered(cx);
        } else {
            self.pass_challenge(cx, segment);
        }
    }

    /// A replica that still knows an earlier connection from this port answers with what that one
    /// would have: the client resets it and sends its SYN again (RFC 9293, 3.5.1).
    fn pass_challenge(&mut self, cx: &mut ReplicationContext<'_>, segment: &ParsedTcpSegment<'_>) {
        self.server.template.renew(segment.head);
        let draft = SegmentDraft {
            sequence: segment.sequence,
            acknowledgement: segment.acknowledgement,
            flags: tcp::ACK,
            window: segment.window,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, 0);
    }

    fn note_answer(&mut self, now: Time) {
        if let ConnectionPhase::Opening { first_answer: first @ None } = &mut self.phase {
            *first = Some(now);
        }
    }

    /// What is due in the handshake, once a replica has answered.
    pub(super) fn opening_timeout(&mut self, cx: &mut ReplicationContext<'_>, first: Option<Time>) {
        let detection = cx.config.detection;
        let Some(first) = first else { return };
        let is_late = first + detection.answer <= cx.now;
        for index in 0..self.replicas.len() {
            if self.status(index) != ReplicaLifecycleStage::Asked {
                continue;
            }
            let again = self.replicas[index].health.ask_again(first, detection.patience);
            if is_late {
                self.leave(cx, index, ReplicaExpulsionCause::NoAnswer, first);
            } else if again <= cx.now {
                self.send_syn(cx, index);
                self.replicas[index].health.asked_again(cx.now);
            }
        }
        self.open_if_all_answered(cx);
    }

    /// When the next of that is due.
    pub(super) fn opening_deadline(
        &self,
        cx: &ReplicationContext<'_>,
        first: Option<Time>,
    ) -> Time {
        let end = self.opened + OPENING_MAX;
        let Some(first) = first else { return end };
        let detection = &cx.config.detection;
        let asked =
            self.replicas.iter().filter(|replica| replica.status == ReplicaLifecycleStage::Asked);
        let again = asked.map(|replica| replica.health.ask_again(first, detection.patience));
        again.min().unwrap_or(end).min(first + detection.answer).min(end)
    }

    /// Gives the client its SYN-ACK, once no answer is waited for.
    pub(super) fn open_if_all_answered(&mut self, cx: &mut ReplicationContext<'_>) {
        let ConnectionPhase::Opening { first_answer } = self.phase else { return };
        if self.replicas.iter().any(|replica| replica.status == ReplicaLifecycleStage::Asked) {
            return;
        }
        let mut answered = self
            .replicas
            .iter_mut()
            .filter(|replica| replica.status == ReplicaLifecycleStage::Answered);
        answered.by_ref().for_each(|replica| replica.status = ReplicaLifecycleStage::Live);
        let Some(primary) = self.replicas.iter().position(ConnectionReplica::is_live) else {
            self.refuse(cx);
            return;
        };
        self.primary = primary;
        self.phase = ConnectionPhase::Open;
        self.agree(cx);
        self.send_syn_ack(cx);
        cx.sink.counters.opened += 1;
        let waited = cx.now.since(first_answer.unwrap_or(cx.now));
        let (primary, replicas) = (self.replicas[primary].id, self.live_count());
        cx.sink.event(self.key, ReplicationEventKind::Opened { primary, replicas, waited });
    }

    /// What the client is offered: no more than any replica can take, and what can be translated.
    ///
    /// The MSS is the least. Windows and timestamps are translated, so these options are there if
    /// any replica has them; the shift is the largest, so that every window can be said. SACK and
    /// ECN are there if all have them.
    fn agree(&mut self, cx: &ReplicationContext<'_>) {
        let default = mss_default(&self.key);
        let live = || self.replicas.iter().filter(|replica| replica.is_live());
        let mss = live().map(|replica| replica.syn.mss.unwrap_or(default)).min();
        let syn = TcpOptions {
            mss: Some(mss.unwrap_or(default).min(cx.config.mss_max)),
            shift: live().filter_map(|replica| replica.syn.shift).max(),
            sack_permitted: live().all(|replica| replica.syn.sack_permitted),
            stamps: live().find_map(|replica| replica.syn.stamps),
            ..TcpOptions::default()
        };
        let ecn = live().all(|replica| replica.ecn);
        let space = self.replicas[self.primary].space;
        let client = &mut self.client;
        client.shift = syn.shift.and(client.syn.shift).unwrap_or(0);
        let stamps_len = if syn.stamps.is_some() { STAMPS_LEN } else { 0 };
        let room = usize::from(client.syn.mss.unwrap_or(default));
        let server = &mut self.server;
        server.segment_max = room.saturating_sub(stamps_len).max(1);
        server.space = space;
        server.syn = syn;
        server.ecn = ecn && client.wants_ecn;
        server.echo = client.stamp;
    }

    /// The SYN-ACK; also when the client, or a replica, sends its part of the handshake again.
    pub(super) fn send_syn_ack(&mut self, cx: &mut ReplicationContext<'_>) {
        let window = self.edge().saturating_sub(1).min(u64::from(u16::MAX));
        let stamp = crate::stamps::clock(cx.now);
        let server = &mut self.server;
        let draft = SegmentDraft {
            sequence: server.space.sequence(0),
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::SYN | tcp::ACK | if server.ecn { tcp::ECE } else { 0 },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: TcpOptions {
                stamps: server.syn.stamps.map(|_| (stamp, server.echo)),
                ..server.syn
            },
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &server.template, server.identification);
        server.identification = server.identification.wrapping_add(1);
        server.announced = (1, 1 + window);
        server.spoke = cx.now;
        server.sent_data = Some(cx.now);
    }

    /// No replica takes the connection.
    fn refuse(&mut self, cx: &mut ReplicationContext<'_>) {
        let draft = SegmentDraft {
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::RST | tcp::ACK,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, 0);
        self.end(cx, ConnectionTermination::Refused, RESET_LINGER);
    }
}

impl ClientTcpState {
    fn new(
        cx: &ReplicationContext<'_>,
        key: ReplicatedConnectionKey,
        segment: &ParsedTcpSegment<'_>,
    ) -> Self {
        let options = &segment.options;
        let mss = options.mss.unwrap_or(mss_default(&key)).min(cx.config.mss_max);
        Self {
            space: Space { isn: segment.sequence },
            syn: TcpOptions {
                mss: Some(mss),
                shift: options.shift,
                sack_permitted: options.sack_permitted,
                stamps: options.stamps,
                ..TcpOptions::default()
            },
            wants_ecn: segment.has(tcp::ECE) && segment.has(tcp::CWR),
            syn_window: segment.window,
            sent: 1,
            acked: 0,
            shift: 0,
            edge: 1 + u64::from(segment.window),
            stamp: options.stamps.map_or(0, |(value, _)| value),
            fin: None,
            asks: false,
            lacks_ack: false,
            retransmissions: 0,
            template: PacketHeaderTemplate::new(
                segment.head,
                key.client.port(),
                key.service.port(),
            ),
        }
    }
}

fn mss_default(key: &ReplicatedConnectionKey) -> u16 {
    if key.client.is_ipv4() { MSS_DEFAULT.0 } else { MSS_DEFAULT.1 }
}
