//! The checksums of a whole frame: finishing partial ones, and checking all of them.

use crate::icmp::header as icmp;
use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, ethernet, ipv4, tcp, udp, vnet};

use super::sum::{add, pseudo_header, sum};

/// Finishes a partial checksum and clears `NEEDS_CSUM`, as Linux's `skb_checksum_help` does.
///
/// Answers whether the checksum is complete now; `false` means that the header points outside the
/// frame, which is then left as it is. Meant for single packets: a train that is completed can no
/// longer be divided by the kernel.
pub fn complete(frame: &mut [u8], vnet: &mut vnet::VirtioNetHeader) -> bool {
    if !vnet.needs_csum() {
        return true;
    }
    let start = usize::from(vnet.csum_start);
    let field = start + usize::from(vnet.csum_offset);
    let end = ParsedPacket::parse(frame).map_or(frame.len(), |packet| packet.info.end);
    if field + 2 > end {
        return false;
    }
    let Some(covered) = frame.get(start..end) else { return false };
    let mut value = !sum(covered);
    // A UDP checksum of 0 means that there is none (RFC 768).
    if value == 0 && usize::from(vnet.csum_offset) == udp::CHECKSUM {
        value = 0xffff;
    }
    let done = bytes::put_u16(frame, field, value).is_some();
    if done {
        vnet.flags &= !vnet::NEEDS_CSUM;
        vnet.csum_start = 0;
        vnet.csum_offset = 0;
    }
    done
}

/// Whether a receiver would accept all complete checksums: IPv4 header, TCP, UDP, ICMP, ICMPv6.
///
/// What has no checksum we know (other protocols, fragments, UDP over IPv4 with 0) passes; what is
/// no IP packet, or too short for its checksum, does not; nor does UDP over IPv6 without one
/// (RFC 8200, 8.1).
#[must_use]
pub fn verify(frame: &[u8]) -> bool {
    ParsedPacket::parse(frame).is_ok_and(|packet| holds(&packet))
}

/// The same for a packet.
#[must_use]
pub fn holds(packet: &ParsedPacket<'_>) -> bool {
    header_holds(packet) && transport_holds(packet)
}

/// What a transport checksum covers, and where it is kept.
pub(crate) struct ChecksumCoverage {
    /// Frame offset of the field.
    pub(crate) field: usize,
    start: usize,
    end: usize,
    /// Sum of the pseudo-header; 0 where there is none.
    pseudo: u16,
}

impl ChecksumCoverage {
    /// The cover of a packet's checksum: `None` when its protocol has none we know, or when it is
    /// a fragment, whose checksum covers the other fragments too.
    pub(crate) fn of(frame: &[u8], info: &IpPacketSummary) -> Result<Option<Self>, TooShort> {
        let Some(offset) = field_offset(info) else { return Ok(None) };
        let end = info.transport_end(frame).ok_or(TooShort)?;
        let (start, field) = (info.transport, info.transport + offset);
        if field + 2 > end {
            return Err(TooShort);
        }
        let length = bytes::len32(end - start);
        let pseudo = match info.protocol {
            icmp::PROTOCOL_V4 => 0,
            protocol => pseudo_header(info.source, info.final_destination, protocol, length),
        };
        Ok(Some(Self { field, start, end, pseudo }))
    }

    fn sum(&self, frame: &[u8]) -> u16 {
        add(self.pseudo, sum(frame.get(self.start..self.end).unwrap_or_default()))
    }
}

/// The packet ends before its checksum field, or contradicts its own UDP length.
pub(crate) struct TooShort;

/// Computes the transport checksum from nothing.
pub(crate) fn fill(frame: &mut [u8], info: &IpPacketSummary) -> Option<()> {
    let cover = ChecksumCoverage::of(frame, info).ok()??;
    bytes::put_u16(frame, cover.field, 0)?;
    let mut value = !cover.sum(frame);
    if value == 0 && info.protocol == udp::PROTOCOL {
        value = 0xffff;
    }
    bytes::put_u16(frame, cover.field, value)
}

/// Puts the pseudo-header's sum into the field, as `NEEDS_CSUM` wants it; `None`: there is no such field.
pub fn write_partial(frame: &mut [u8], info: &IpPacketSummary) -> Option<()> {
    let cover = ChecksumCoverage::of(frame, info).ok()??;
    bytes::put_u16(frame, cover.field, cover.pseudo)
}

fn field_offset(info: &IpPacketSummary) -> Option<usize> {
    match (info.protocol, info.version) {
        _ if info.is_fragment => None,
        (tcp::PROTOCOL, _) => Some(tcp::CHECKSUM),
        (udp::PROTOCOL, _) => Some(udp::CHECKSUM),
        (icmp::PROTOCOL_V4, IpVersion::V4) | (icmp::PROTOCOL_V6, IpVersion::V6) => {
            Some(icmp::CHECKSUM)
        }
        _ => None,
    }
}

fn header_holds(packet: &ParsedPacket<'_>) -> bool {
    let ParsedPacket { info, frame } = packet;
    let header = frame.get(ethernet::HEADER_LEN..info.transport).unwrap_or_default();
    info.version == IpVersion::V6 || (header.len() >= ipv4::HEADER_LEN && sum(header) == 0xffff)
}

fn transport_holds(packet: &ParsedPacket<'_>) -> bool {
    let ParsedPacket { info, frame } = packet;
    let cover = match ChecksumCoverage::of(frame, info) {
        Ok(Some(cover)) => cover,
        Ok(None) => return true,
        Err(TooShort) => return false,
    };
    if info.protocol == udp::PROTOCOL && bytes::u16_at(frame, cover.field) == Some(0) {
        return info.version == IpVersion::V4;
    }
    cover.sum(frame) == 0xffff
}
