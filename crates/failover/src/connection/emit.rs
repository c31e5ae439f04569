//! Packets to the client, and answers to replicas in its place.

use core::ops::Range;

use super::{ReplicatedConnection, ReplicationContext};
use crate::draft::{SegmentDraft, piece};
use crate::event::ReplicationEventKind;
use crate::icmp::IcmpQuotedSegment;
use crate::offset::{index as as_index, is_later, len64};
use crate::options::TcpOptions;
use crate::ranges::StreamRangeSet;
use crate::replica::Acknowledgement;
use crate::segment::{ParsedTcpSegment, URG};
use crate::stamps;
use windtunnel_wire::{ecn::Codepoint, tcp};

/// Payload of a packet at the least, whatever an ICMP error says: Linux's `tcp_min_snd_mss`, 48, with
/// timestamps.
const SEGMENT_MIN: usize = 36;

impl ReplicatedConnection {
    /// Gives the client a range of the primary's output, which all live replicas have sent, and FIN
    /// if that comes next.
    pub(super) fn send_new(&mut self, cx: &mut ReplicationContext<'_>, range: Range<u64>) {
        cx.sink.counters.delivered += range.end - range.start;
        self.sent.insert(range.clone(), usize::MAX);
        self.delivered = self.sent.end_from(self.delivered);
        self.sent.remove_below(self.delivered);
        let has_fin = self.delivered == range.end && self.all_finish_at(range.end);
        let mut at = range.start;
        loop {
            let next = self.piece_end(cx, at, range.end);
            let payload = self.replicas[self.primary].output.slice(at..next);
            let mut draft = self.draft(cx, at, payload);
            if next >= range.end {
                draft.flags |= tcp::PSH | if has_fin { tcp::FIN } else { 0 };
            }
            if self.server.cwr && !payload.is_empty() {
                draft.flags |= tcp::CWR;
            }
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.count_packets(next - at);
            self.server.ce = false;
            self.server.cwr = false;
            at = next;
            if at >= range.end {
                break;
            }
        }
        if has_fin {
            self.fin = Some(self.delivered);
            self.delivered += 1;
        }
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_live()) {
            replica.output.deliver(self.delivered);
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
            let next = self.piece_end(cx, at, data_end);
            let range = as_index(at - offset)..as_index(next - offset);
            let payload = segment.payload.get(range).unwrap_or_default();
            let mut draft = self.draft(cx, at, payload);
            if next >= data_end && has_fin {
                draft.flags |= tcp::FIN;
            }
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.count_packets(next - at);
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
        came: Option<(usize, &ParsedTcpSegment<'_>, Acknowledgement)>,
    ) {
        if self.live_count() == 0 {
            return;
        }
        let (acked, edge) = (self.acked(), self.window_edge());
        let is_new = acked > self.server.announced.0 || edge > self.server.announced.1;
        let sacked = self.sacked();
        let is_sacked = sacked != self.shown && !sacked.is_empty();
        let repeats = came.is_some_and(|(index, segment, said)| {
            said == Acknowledgement::Duplicate && self.is_passed(index, segment)
        });
        if is_new || is_sacked || repeats {
            let mut draft = self.draft(cx, self.delivered, &[]);
            self.add_blocks(&mut draft.options, &sacked, came.map(|(_, segment, _)| segment));
            cx.sink.send_to_client(&draft, &self.server.template, self.server.identification);
            self.count_packets(0);
            if repeats {
                self.server.repeated = self.server.repeated.saturating_add(1);
            }
            self.note_sent(cx);
        }
        self.shown = sacked;
    }

    /// Whether the client is shown a duplicate acknowledgement of a replica.
    ///
    /// A client that has not got the acknowledgement, or asks for it, is answered by the replica that is first:
    /// the others may be dead. Else a repetition says that a segment came after a hole, and is shown
    /// once all that have the hole have said it as often: each segment is one repetition, also where
    /// one replica has the hole filled sooner than another. One with news of what that replica has
    /// beyond is shown once all have it, and by its blocks.
    fn is_passed(&self, index: usize, segment: &ParsedTcpSegment<'_>) -> bool {
        let first = segment.options.blocks().first();
        let has_news = first.is_some_and(|(start, _)| is_later(*start, segment.acknowledgement));
        let waits = has_news && self.server.syn.sack_permitted && self.live_count() > 1;
        if self.client.lacks_ack {
            return self.replicas.get(index).is_some_and(|one| one.acked == self.acked());
        }
        !waits && self.repeated() > self.server.repeated
    }

    /// How often all that have no more than the client is acknowledged have repeated that.
    fn repeated(&self) -> u32 {
        let acked = self.acked();
        let live = self.replicas.iter().filter(|one| one.is_live() && one.acked == acked);
        live.map(|one| one.repeated).min().unwrap_or(0)
    }

    /// A segment with the present acknowledgement and window.
    fn draft<'a>(
        &self,
        cx: &ReplicationContext<'_>,
        offset: u64,
        payload: &'a [u8],
    ) -> SegmentDraft<'a> {
        let server = &self.server;
        let urgent = self.replicas.get(self.primary).and_then(|one| one.output.urgent);
        let urgent = urgent.and_then(|end| end.checked_sub(offset)).filter(|ahead| *ahead > 0);
        let reports = self.replicas.iter().any(|replica| replica.is_live() && replica.ece);
        let mut flags = tcp::ACK;
        flags |= if urgent.is_some() { URG } else { 0 };
        flags |= if reports && server.ecn { tcp::ECE } else { 0 };
        SegmentDraft {
            sequence: server.space.sequence(offset),
            acknowledgement: self.client.space.sequence(self.acked()),
            flags,
            window: self.window(),
            urgent: u16::try_from(urgent.unwrap_or(0)).unwrap_or(u16::MAX),
            options: TcpOptions {
                stamps: server.syn.stamps.map(|_| (stamps::clock(cx.now), server.echo)),
                ..TcpOptions::default()
            },
            payload,
            ecn: match (server.ecn && !payload.is_empty(), server.ce) {
                (false, _) => Codepoint::NotEct,
                (true, true) => Codepoint::Ce,
                (true, false) => server.codepoint,
            },
            gso_size: u16::try_from(server.segment_max).unwrap_or(u16::MAX),
        }
    }

    /// The window field: rounded down, so that the client sends no replica more than it takes.
    fn window(&self) -> u16 {
        let window = self.edge().saturating_sub(self.acked()) >> self.shift();
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// The end of the window as the client will read it.
    fn window_edge(&self) -> u64 {
        self.acked() + (u64::from(self.window()) << self.shift())
    }

    fn shift(&self) -> u8 {
        self.server.syn.shift.unwrap_or(0)
    }

    /// What lies beyond the acknowledgement and every live replica has.
    fn sacked(&self) -> StreamRangeSet {
        let acked = self.acked();
        let mut all: Option<StreamRangeSet> = None;
        for replica in self.replicas.iter().filter(|replica| replica.is_live()) {
            if replica.acked == acked && replica.sacked.is_empty() {
                return StreamRangeSet::default();
            }
            let mut own = replica.sacked.clone();
            own.insert(acked..replica.acked, usize::MAX);
            all = Some(match all {
                None => own,
                Some(others) => others.intersection(&own),
            });
        }
        all.unwrap_or_default()
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
        if let Some(theirs) = theirs.filter(|_| self.live_count() == 1) {
            for block in theirs.blocks() {
                options.add_block(*block);
            }
            return;
        }
        let latest = theirs.and_then(|options| options.blocks().first().copied());
        let latest = latest.and_then(|(start, _)| self.client.space.offset(start, self.acked()));
        let is_latest = |range: &Range<u64>| latest.is_some_and(|offset| range.contains(&offset));
        let first = sacked.iter().filter(|range| is_latest(range));
        for range in first.chain(sacked.iter().rev().filter(|range| !is_latest(range))) {
            let sequence = |offset| self.client.space.sequence(offset);
            if !options.add_block((sequence(range.start), sequence(range.end))) {
                break;
            }
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
        let offset = self.replicas[index].acked.saturating_sub(1);
        self.send_as_client(cx, index, offset, &[0]);
    }

    fn send_as_client(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        offset: u64,
        payload: &[u8],
    ) {
        let replica = &self.replicas[index];
        let client = &self.client;
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
        self.count_packets(0);
    }

    /// A packet to the client met an error on its way: every replica is informed, in its own
    /// numbers, and packets from here are no longer than the way takes.
    pub(crate) fn handle_icmp(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        quote: &IcmpQuotedSegment,
        frame: &[u8],
    ) {
        let Some(offset) = self.server.space.offset(quote.sequence, self.client.acked) else {
            return;
        };
        if let Some(room) = quote.segment_max.and_then(|room| usize::try_from(room).ok()) {
            let headers = tcp::HEADER_LEN + if self.server.syn.stamps.is_some() { 12 } else { 0 };
            let room = room.saturating_sub(headers).max(SEGMENT_MIN);
            self.server.segment_max = self.server.segment_max.min(room);
        }
        for replica in self.replicas.iter().filter(|replica| replica.is_live()) {
            let mut copy = frame.to_vec();
            quote.write(&mut copy, replica.space.sequence(offset));
            cx.sink.copy_to_replica(replica.id, copy);
        }
    }

    /// Where the piece of data that begins at an offset ends: what one frame carries.
    fn piece_end(&self, cx: &ReplicationContext<'_>, at: u64, end: u64) -> u64 {
        let left = end.saturating_sub(at);
        at + len64(piece(left, self.server.segment_max, cx.config.trains)).min(left)
    }

    /// Each packet of a train has its own identification.
    fn count_packets(&mut self, length: u64) {
        let packets = as_index(length).div_ceil(self.server.segment_max.max(1)).max(1);
        let packets = u16::try_from(packets).unwrap_or(1);
        self.server.identification = self.server.identification.wrapping_add(packets);
    }

    fn note_sent(&mut self, cx: &mut ReplicationContext<'_>) {
        let announced = (self.acked(), self.window_edge());
        if announced.0 > self.server.announced.0 {
            self.server.repeated = 0;
        }
        self.server.announced = announced;
        self.client.lacks_ack = false;
        if self.is_resuming {
            self.is_resuming = false;
            let silence = cx.now.since(self.server.spoke);
            cx.sink.event(self.key, ReplicationEventKind::Resumed { silence });
        }
        self.server.spoke = cx.now;
    }
}
