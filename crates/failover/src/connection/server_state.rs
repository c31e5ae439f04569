//! The server as the client sees it, whichever replica speaks.

use super::client_state::ClientTcpState;
use super::replica_set::ConnectionReplicaSet;
use crate::draft::{PacketHeaderTemplate, piece};
use crate::offset::{SequenceSpace, index, len64};
use crate::options::TcpOptions;
use crate::ranges::StreamRangeSet;
use crate::segment::ParsedTcpSegment;
use windtunnel_model::{Span, Time};
use windtunnel_wire::{ecn::EcnCodepoint, tcp};

/// Bytes of timestamps in a segment.
const STAMPS_LEN: usize = 12;
/// Payload of a packet at the least, whatever an ICMP error says: Linux's `tcp_min_snd_mss`, 48,
/// with timestamps.
const SEGMENT_MIN: usize = 36;
/// A backup's retransmission, or probe of the client's window, is passed where the client was sent
/// nothing for this time: where the primary is dead and that is not known, the client still gets
/// what it needs, and where it lives, it mostly gets it once.
const BACKUP_GAP: Span = Span::from_millis(20);

/// What the client sees of the server.
#[derive(Debug, Clone, Default)]
pub(super) struct VirtualServerTcpState {
    /// The sequence space: that of the first primary, whatever comes after it.
    pub(super) space: SequenceSpace,
    /// The options of the SYN-ACK: what all replicas can do.
    pub(super) syn: TcpOptions,
    pub(super) ecn: bool,
    /// The largest payload of a packet to the client.
    pub(super) segment_max: usize,
    /// Headers of packets to the client.
    pub(super) template: PacketHeaderTemplate,
    /// Identification of the next packet (IPv4).
    pub(super) identification: u16,
    /// The last acknowledgement that the client was given, and the end of its window.
    pub(super) announced: AnnouncedWindow,
    /// Times that it was given again since it grew.
    pub(super) repeated: u32,
    /// Which SACK blocks the client was shown.
    pub(super) shown: StreamRangeSet,
    /// The client's TSval to echo.
    pub(super) echo: u32,
    /// Congestion was met by data on its way here: the next data carries it on.
    pub(super) ce: bool,
    /// The primary has reduced its window: the next data says so.
    pub(super) cwr: bool,
    /// How the primary marks its data.
    codepoint: EcnCodepoint,
    /// When the client was sent the last packet.
    pub(super) spoke: Time,
    /// When it was sent the last one with data, or a probe.
    pub(super) sent_data: Option<Time>,
    /// A replica was expelled, and the client has not been sent anything since.
    pub(super) is_resuming: bool,
}

/// What the client may send: from what is acknowledged to the end of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AnnouncedWindow {
    pub(super) acked: u64,
    pub(super) edge: u64,
}

impl VirtualServerTcpState {
    /// Before any replica has answered. `template` is of packets to the client.
    pub(super) fn new(template: PacketHeaderTemplate, now: Time) -> Self {
        Self { template, spoke: now, ..Self::default() }
    }

    /// What the client is offered: no more than any replica can take, and what can be translated.
    ///
    /// The MSS is the least. Windows and timestamps are translated, so these options are there if
    /// any replica has them; the shift is the largest, so that every window can be said. SACK and
    /// ECN are there if all have them.
    pub(super) fn agree(
        &mut self,
        replicas: &ConnectionReplicaSet,
        client: &ClientTcpState,
        mss_default: u16,
        mss_max: u16,
    ) {
        let mss = replicas.live().map(|replica| replica.syn.mss.unwrap_or(mss_default)).min();
        self.syn = TcpOptions {
            mss: Some(mss.unwrap_or(mss_default).min(mss_max)),
            shift: replicas.live().filter_map(|replica| replica.syn.shift).max(),
            sack_permitted: replicas.live().all(|replica| replica.syn.sack_permitted),
            stamps: replicas.live().find_map(|replica| replica.syn.stamps),
            ..TcpOptions::default()
        };
        self.ecn = replicas.live().all(|replica| replica.ecn) && client.wants_ecn;
        self.space = replicas.members[replicas.primary].space;
        let stamps_len = if self.syn.stamps.is_some() { STAMPS_LEN } else { 0 };
        let room = usize::from(client.syn.mss.unwrap_or(mss_default));
        self.segment_max = room.saturating_sub(stamps_len).max(1);
        self.echo = client.stamp;
    }

    /// Congestion that a replica's segment met, and what the primary says of its own.
    pub(super) fn note_marks(&mut self, segment: &ParsedTcpSegment<'_>, is_primary: bool) {
        if !segment.payload.is_empty() {
            self.ce |= segment.ecn == EcnCodepoint::Ce;
            if is_primary && segment.ecn != EcnCodepoint::Ce {
                self.codepoint = segment.ecn;
            }
        }
        if is_primary {
            self.cwr |= segment.has(tcp::CWR);
            self.template.renew(segment.head);
        }
    }

    /// How a packet to the client is marked.
    pub(super) fn codepoint_of(&self, payload: &[u8]) -> EcnCodepoint {
        match (self.ecn && !payload.is_empty(), self.ce) {
            (false, _) => EcnCodepoint::NotEct,
            (true, true) => EcnCodepoint::Ce,
            (true, false) => self.codepoint,
        }
    }

    /// The way to the client takes TCP segments of no more than this.
    pub(super) fn limit_segments(&mut self, room: usize) {
        let stamps_len = if self.syn.stamps.is_some() { STAMPS_LEN } else { 0 };
        let room = room.saturating_sub(tcp::HEADER_LEN + stamps_len).max(SEGMENT_MIN);
        self.segment_max = self.segment_max.min(room);
    }

    /// Where the piece of data that begins at an offset ends: what one frame carries.
    pub(super) fn piece_end(&self, at: u64, end: u64, trains: bool) -> u64 {
        let left = end.saturating_sub(at);
        at + len64(piece(left, self.segment_max, trains)).min(left)
    }

    /// Each packet of a train has its own identification.
    pub(super) fn count_packets(&mut self, length: u64) {
        let packets = index(length).div_ceil(self.segment_max.max(1)).max(1);
        let packets = u16::try_from(packets).unwrap_or(1);
        self.identification = self.identification.wrapping_add(packets);
    }

    /// How window fields to the client are scaled.
    pub(super) fn shift(&self) -> u8 {
        self.syn.shift.unwrap_or(0)
    }

    /// Whether the client was sent no data for so long that a backup may repeat some.
    pub(super) fn is_quiet(&self, now: Time) -> bool {
        self.sent_data.is_none_or(|last| now.since(last) >= BACKUP_GAP)
    }

    /// Bytes of memory beside the value itself.
    pub(super) fn memory(&self) -> usize {
        self.template.memory() + self.shown.memory()
    }
}
