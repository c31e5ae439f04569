//! Trains: one frame that stands for many packets (GSO), measured and cut without expanding it.
//!
//! What the pieces look like follows Linux's own segmentation (`tcp_gso_segment`,
//! `__udp_gso_segment`, `inet_gso_segment`), so that a program sees no difference.

mod write;

use core::ops::Range;

use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, ethernet, tcp, udp, vnet};

pub use write::write_range;

/// What a frame stands for: one packet, or a train of them.
///
/// All lengths are in bytes of Ethernet frame: 14 bytes of header counted, FCS not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketTrain {
    /// Packets on the wire; 1 for a plain packet, and never 0.
    pub count: u32,
    /// Bytes that each packet repeats: Ethernet, IP and transport headers. For a plain packet that
    /// is not whole TCP or UDP, the Ethernet header.
    pub header_len: u32,
    /// All other bytes, of all packets together.
    pub payload_len: u32,
    /// Payload bytes of each packet but the last; for a plain packet `payload_len`.
    pub gso_size: u32,
    /// How it divides.
    pub(crate) form: SegmentationKind,
}

/// How a frame divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentationKind {
    /// Not at all.
    Plain,
    /// Into TCP segments.
    Tcp,
    /// Into UDP datagrams.
    Udp,
}

impl PacketTrain {
    /// Measures a frame. A GSO type that contradicts the frame, or that is neither TCP nor UDP_L4,
    /// makes it a plain packet.
    #[must_use]
    pub fn new(frame: &[u8], vnet: &vnet::VirtioNetHeader) -> Self {
        match ParsedPacket::parse(frame) {
            Ok(packet) => Self::of(&packet, vnet),
            Err(_) => Self::plain(frame, None),
        }
    }

    /// As [`PacketTrain::new`], for a frame that was read already.
    #[must_use]
    pub fn of(packet: &ParsedPacket<'_>, vnet: &vnet::VirtioNetHeader) -> Self {
        let header_len = header_len(packet);
        let Some((header_len, form)) = header_len.zip(form(&packet.info, vnet)) else {
            return Self::plain(packet.frame, header_len);
        };
        let payload_len = bytes::len32(packet.info.end.saturating_sub(header_len));
        let gso_size = u32::from(vnet.gso_size);
        let count = payload_len.div_ceil(gso_size.max(1)).max(1);
        Self { count, header_len: bytes::len32(header_len), payload_len, gso_size, form }
    }

    /// Bytes of packet `index`; 0 beyond the last.
    #[must_use]
    pub fn wire_len(&self, index: u32) -> u32 {
        self.wire_len_range(index..index.saturating_add(1))
    }

    /// Bytes of a range of packets together; what lies beyond the last counts nothing.
    #[must_use]
    pub(crate) fn wire_len_range(&self, range: Range<u32>) -> u32 {
        let (start, end) = (range.start.min(self.count), range.end.min(self.count));
        let payload = self.payload_range(start..end);
        let headers = end.saturating_sub(start).saturating_mul(self.header_len);
        headers.saturating_add(payload.end.saturating_sub(payload.start))
    }

    /// Bytes of all packets together.
    #[must_use]
    pub fn wire_len_total(&self) -> u32 {
        self.wire_len_range(0..self.count)
    }

    /// Which bytes of the payload a range of packets carries.
    #[must_use]
    pub fn payload_range(&self, range: Range<u32>) -> Range<u32> {
        let at = |index: u32| index.saturating_mul(self.gso_size).min(self.payload_len);
        at(range.start)..if range.end >= self.count { self.payload_len } else { at(range.end) }
    }

    fn plain(frame: &[u8], header_len: Option<usize>) -> Self {
        let header_len = header_len.unwrap_or(ethernet::HEADER_LEN).min(frame.len());
        let payload_len = bytes::len32(frame.len() - header_len);
        Self {
            count: 1,
            header_len: bytes::len32(header_len),
            payload_len,
            gso_size: payload_len,
            form: SegmentationKind::Plain,
        }
    }
}

/// Bytes of the frame up to the transport payload.
fn header_len(packet: &ParsedPacket<'_>) -> Option<usize> {
    let (info, payload) = (&packet.info, packet.payload());
    match info.protocol {
        _ if info.is_fragment => None,
        tcp::PROTOCOL => Some(info.transport + tcp::TcpSegment::parse(payload).ok()?.header_len()),
        udp::PROTOCOL if payload.len() >= udp::HEADER_LEN => Some(info.transport + udp::HEADER_LEN),
        _ => None,
    }
}

fn form(info: &IpPacketSummary, vnet: &vnet::VirtioNetHeader) -> Option<SegmentationKind> {
    if vnet.gso_size == 0 || (vnet.needs_csum() && usize::from(vnet.csum_start) != info.transport) {
        return None;
    }
    match (vnet.gso_kind(), info.version, info.protocol) {
        (vnet::GSO_TCPV4, IpVersion::V4, tcp::PROTOCOL)
        | (vnet::GSO_TCPV6, IpVersion::V6, tcp::PROTOCOL) => Some(SegmentationKind::Tcp),
        (vnet::GSO_UDP_L4, _, udp::PROTOCOL) => Some(SegmentationKind::Udp),
        _ => None,
    }
}
