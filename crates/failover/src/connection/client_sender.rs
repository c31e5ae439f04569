//! Packets to the client.

use core::ops::Range;

use super::client_state::ClientTcpState;
use super::delivered::DeliveredStream;
use super::replica_set::ConnectionReplicaSet;
use super::server_state::{AnnouncedWindow, VirtualServerTcpState};
use crate::config::LastReplicaLossPolicy;
use crate::context::ReplicationContext;
use crate::draft::SegmentDraft;
use crate::event::{ConnectionTermination, ReplicatedConnectionKey, ReplicationEventKind};
use crate::offset::{index as as_index, is_later, len64};
use crate::options::TcpOptions;
use crate::ranges::StreamRangeSet;
use crate::replica::ReplicaAckKind;
use crate::segment::{ParsedTcpSegment, URG};
use crate::stamps;
use windtunnel_wire::tcp;

/// What packets to the client are made of, and what they change: numbers of the virtual server, and
/// what all live replicas have and have sent.
pub(super) struct ClientSender<'a> {
    pub(super) key: &'a ReplicatedConnectionKey,
    pub(super) client: &'a mut ClientTcpState,
    pub(super) server: &'a mut VirtualServerTcpState,
    pub(super) replicas: &'a mut ConnectionReplicaSet,
    pub(super) delivered: &'a mut DeliveredStream,
}

impl ClientSender<'_> {
    /// Gives the client a range of the primary's output, which all live replicas have sent, and FIN
    /// if that comes next.
    pub(super) fn send_new(&mut self, cx: &mut ReplicationContext<'_>, range: Range<u64>) {
        cx.sink.counters.delivered += range.end - range.start;
        self.delivered.add(range.clone());
        let has_fin = self.delivered.end == range.end && self.replicas.all_finish_at(range.end);
        let mut at = range.start;
        loop {
            let next = self.server.piece_end(at, range.end, cx.config.trains);
            let payload = self.replicas.members[self.replicas.primary].output.slice(at..next);
            let mut draft = self.draft(cx, at, payload);
            if next >= range.end {
                draft.flags |= tcp::PSH | if has_fin { tcp::FIN } else { 0 };
            }
            if self.server.cwr && !payload.is_empty() {
                draft.flags |= tcp::CWR;
            }
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.server.count_packets(next - at);
            self.server.ce = false;
            self.server.cwr = false;
            at = next;
            if at >= range.end {
                break;
            }
        }
        if has_fin {
            self.delivered.finish();
        }
        for replica in self.replicas.live_mut() {
            replica.output.deliver(self.delivered.end);
        }
        self.server.sent_data = Some(cx.now);
        self.note_sent(cx);
    }

    /// Gives the client again what a replica has sent again, up to `end`.
    pub(super) fn send_again(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
        end: u64,
    ) {
        let data_end = end.min(offset + len64(segment.payload.len()));
        let has_fin = segment.has(tcp::FIN) && end > data_end;
        let mut at = offset;
        loop {
            let next = self.server.piece_end(at, data_end, cx.config.trains);
            let range = as_index(at - offset)..as_index(next - offset);
            let payload = segment.payload.get(range).unwrap_or_default();
            let mut draft = self.draft(cx, at, payload);
            if next >= data_end && has_fin {
                draft.flags |= tcp::FIN;
            }
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.server.count_packets(next - at);
            at = next;
            if at >= data_end {
                break;
            }
        }
        self.server.sent_data = Some(cx.now);
        self.note_sent(cx);
    }

    /// Acknowledges to the client what all live replicas have, where it does not know yet, or where
    /// a repetition is to be passed on ([`Self::is_passed`]).
    pub(super) fn acknowledge(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        came: Option<(usize, &ParsedTcpSegment<'_>, ReplicaAckKind)>,
    ) {
        if self.replicas.live_count() == 0 {
            return;
        }
        let (window, before) = (self.window(), self.server.announced);
        let is_new = window.acked > before.acked || window.edge > before.edge;
        let sacked = self.replicas.sacked();
        let is_sacked = sacked != self.server.shown && !sacked.is_empty();
        let repeats = came.is_some_and(|(index, segment, said)| {
            said == ReplicaAckKind::Duplicate && self.is_passed(index, segment)
        });
        if is_new || is_sacked || repeats {
            let mut draft = self.draft(cx, self.delivered.end, &[]);
            self.add_blocks(&mut draft.options, &sacked, came.map(|(_, segment, _)| segment));
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.server.count_packets(0);
            if repeats {
                self.server.repeated = self.server.repeated.saturating_add(1);
            }
            self.note_sent(cx);
        }
        self.server.shown = sacked;
    }

    /// Whether the client is shown a duplicate acknowledgement of a replica.
    ///
    /// A client that has not got the acknowledgement, or asks for it, is answered by the replica
    /// that is first: the others may be dead. Else a repetition says that a segment came after a
    /// hole, and is shown once all that have the hole have said it as often: each segment is one
    /// repetition, also where one replica has the hole filled sooner than another. One with news of
    /// what that replica has beyond is shown once all have it, and by its blocks.
    fn is_passed(&self, index: usize, segment: &ParsedTcpSegment<'_>) -> bool {
        let first = segment.options.blocks().first();
        let has_news = first.is_some_and(|(start, _)| is_later(*start, segment.acknowledgement));
        let waits = has_news && self.server.syn.sack_permitted && self.replicas.live_count() > 1;
        if self.client.lacks_ack {
            return self.replicas.members.get(index).is_some_and(|one| one.acked == self.acked());
        }
        !waits && self.replicas.repeated() > self.server.repeated
    }

    /// A segment with the present acknowledgement and window.
    fn draft<'a>(
        &self,
        cx: &ReplicationContext<'_>,
        offset: u64,
        payload: &'a [u8],
    ) -> SegmentDraft<'a> {
        let server = &self.server;
        let primary = self.replicas.members.get(self.replicas.primary);
        let urgent = primary.and_then(|one| one.output.urgent);
        let urgent = urgent.and_then(|end| end.checked_sub(offset)).filter(|ahead| *ahead > 0);
        let reports = self.replicas.live().any(|replica| replica.ece);
        let mut flags = tcp::ACK;
        flags |= if urgent.is_some() { URG } else { 0 };
        flags |= if reports && server.ecn { tcp::ECE } else { 0 };
        SegmentDraft {
            sequence: server.space.sequence(offset),
            acknowledgement: self.client.space.sequence(self.acked()),
            flags,
            window: self.window_field(),
            urgent: u16::try_from(urgent.unwrap_or(0)).unwrap_or(u16::MAX),
            options: TcpOptions {
                stamps: server.syn.stamps.map(|_| (stamps::clock(cx.now), server.echo)),
                ..TcpOptions::default()
            },
            payload,
            ecn: server.codepoint_of(payload),
            gso_size: u16::try_from(server.segment_max).unwrap_or(u16::MAX),
        }
    }

    /// All live replicas have the client's stream up to here.
    fn acked(&self) -> u64 {
        self.replicas.acked().unwrap_or(self.server.announced.acked)
    }

    /// The window field: rounded down, so that the client sends no replica more than it takes.
    fn window_field(&self) -> u16 {
        let edge = self.replicas.edge().unwrap_or(self.server.announced.edge);
        let window = edge.saturating_sub(self.acked()) >> self.server.shift();
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// What the client may send, as it will read it.
    fn window(&self) -> AnnouncedWindow {
        let acked = self.acked();
        let edge = acked + (u64::from(self.window_field()) << self.server.shift());
        AnnouncedWindow { acked, edge }
    }

    /// SACK blocks: that of the segment that came first (RFC 2018, 4), then from the end. Those of
    /// the last replica are passed as they are, with its reports of duplicates (RFC 2883).
    fn add_blocks(
        &self,
        options: &mut TcpOptions,
        sacked: &StreamRangeSet,
        came: Option<&ParsedTcpSegment<'_>>,
    ) {
        if !self.server.syn.sack_permitted {
            return;
        }
        let theirs = came.map(|segment| segment.options);
        if let Some(theirs) = theirs.filter(|_| self.replicas.live_count() == 1) {
            for block in theirs.blocks() {
                options.add_block(*block);
            }
            return;
        }
        let space = self.client.space;
        let latest = theirs.and_then(|options| options.blocks().first().copied());
        let latest = latest.and_then(|(start, _)| space.offset(start, self.acked()));
        let is_latest = |range: &Range<u64>| latest.is_some_and(|offset| range.contains(&offset));
        let first = sacked.iter().filter(|range| is_latest(range));
        for range in first.chain(sacked.iter().rev().filter(|range| !is_latest(range))) {
            if !options.add_block((space.sequence(range.start), space.sequence(range.end))) {
                break;
            }
        }
    }

    /// A packet has gone to the client: what it says is known there.
    fn note_sent(&mut self, cx: &mut ReplicationContext<'_>) {
        let window = self.window();
        let server = &mut self.server;
        if window.acked > server.announced.acked {
            server.repeated = 0;
        }
        server.announced = window;
        self.client.lacks_ack = false;
        if server.is_resuming {
            server.is_resuming = false;
            let silence = cx.now.since(server.spoke);
            cx.sink.event(*self.key, ReplicationEventKind::Resumed { silence });
        }
        server.spoke = cx.now;
    }

    /// The SYN-ACK; also when the client, or a replica, sends its part of the handshake again.
    pub(super) fn send_syn_ack(&mut self, cx: &mut ReplicationContext<'_>) {
        let server = &mut self.server;
        let edge = self.replicas.edge().unwrap_or(server.announced.edge);
        let window = edge.saturating_sub(1).min(u64::from(u16::MAX));
        let draft = SegmentDraft {
            sequence: server.space.sequence(0),
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::SYN | tcp::ACK | if server.ecn { tcp::ECE } else { 0 },
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: TcpOptions {
                stamps: server.syn.stamps.map(|_| (stamps::clock(cx.now), server.echo)),
                ..server.syn
            },
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &server.template, server.identification);
        server.identification = server.identification.wrapping_add(1);
        server.announced = AnnouncedWindow { acked: 1, edge: 1 + window };
        server.spoke = cx.now;
        server.sent_data = Some(cx.now);
    }

    /// A replica that still knows an earlier connection from this port answers with what that one
    /// would have: the client resets it and sends its SYN again (RFC 9293, 3.5.1).
    pub(super) fn pass_challenge(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
    ) {
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

    /// No replica takes the connection.
    pub(super) fn refuse(&self, cx: &mut ReplicationContext<'_>) {
        let draft = SegmentDraft {
            acknowledgement: self.client.space.sequence(1),
            flags: tcp::RST | tcp::ACK,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, 0);
    }

    /// What the client expects next is the only number that it takes a reset by (RFC 5961, 3.2).
    pub(super) fn reset(&self, cx: &mut ReplicationContext<'_>) {
        let draft = SegmentDraft {
            sequence: self.server.space.sequence(self.delivered.end),
            acknowledgement: self.client.space.sequence(self.server.announced.acked),
            flags: tcp::RST | tcp::ACK,
            ..SegmentDraft::default()
        };
        cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
    }

    /// A segment of the client after the last replica is gone.
    pub(super) fn reject(
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
        let (rejection, server) = (SegmentDraft::rejection(segment), &self.server);
        cx.sink.send_to_client(&rejection, &server.template, server.identification);
    }
}
