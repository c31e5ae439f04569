//! A bit error on the line.

use core::ops::Range;

use crate::packet::{IpPacketSummary, ParsedPacket};
use crate::segment::PacketTrain;
use crate::{bytes, checksum, icmp, tcp, udp, vnet};

/// Flips one bit of a packet so that it still arrives and the receiver finds its checksum wrong.
///
/// A checksum that is still partial is completed first, and `vnet` afterwards is that of a plain
/// packet, which the receiver has to check for itself. `random` chooses the bit evenly in the
/// transport payload; without payload, in the transport header except ports and UDP's length. What
/// has no checksum keeps none: UDP whose checksum field is 0, fragments, and protocols whose
/// checksum we do not know get their error too, and their receivers read wrong bytes unless
/// something above notices.
///
/// Answers `false`, and leaves the frame alone, for trains of several packets (cut them first:
/// cutting would repair the checksum), for a frame without an IP packet, and for packets without a
/// byte to damage.
pub fn corrupt(frame: &mut [u8], vnet: &mut vnet::VirtioNetHeader, random: u64) -> bool {
    let Ok(packet) = ParsedPacket::parse(frame) else { return false };
    if PacketTrain::of(&packet, vnet).count > 1 {
        return false;
    }
    let info = packet.info;
    let Some(target) = target(&packet).filter(|target| !target.is_empty()) else {
        return false;
    };
    if completes_over_ports(vnet, &info) || !checksum::complete(frame, vnet) {
        return false;
    }
    *vnet = vnet::VirtioNetHeader::default();
    let had_none = has_no_checksum(frame, &info);
    let Some(bit) = flip(frame, &target, random) else { return false };
    if !had_none && has_no_checksum(frame, &info) {
        // A UDP checksum that became 0 would say "none": hit a neighbour bit instead.
        hit_neighbour(frame, target.start, bit);
    }
    true
}

/// The bytes that may be hit.
fn target(packet: &ParsedPacket<'_>) -> Option<Range<usize>> {
    let (info, payload) = (&packet.info, packet.payload());
    let end = info.transport_end(packet.frame)?;
    let (fixed, header) = match info.protocol {
        _ if info.is_later_fragment => (0, 0),
        tcp::PROTOCOL => match tcp::TcpSegment::parse(payload) {
            Ok(view) => (tcp::SEQUENCE, view.header_len()),
            Err(_) => (tcp::SEQUENCE, payload.len()),
        },
        udp::PROTOCOL => (udp::CHECKSUM, udp::HEADER_LEN),
        icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6 => (icmp::CHECKSUM, icmp::HEADER_LEN),
        _ => (0, 0),
    };
    let start = info.transport + if info.transport + header < end { header } else { fixed };
    Some(start..end)
}

/// Whether the checksum to complete lies on UDP's ports or length, which no kernel asks for.
fn completes_over_ports(vnet: &vnet::VirtioNetHeader, info: &IpPacketSummary) -> bool {
    let field = usize::from(vnet.csum_start) + usize::from(vnet.csum_offset);
    let ports = info.transport..info.transport + udp::CHECKSUM;
    vnet.needs_csum()
        && info.protocol == udp::PROTOCOL
        && (ports.contains(&field) || ports.contains(&(field + 1)))
}

fn has_no_checksum(frame: &[u8], info: &IpPacketSummary) -> bool {
    info.protocol == udp::PROTOCOL
        && !info.is_fragment
        && bytes::u16_at(frame, info.transport + udp::CHECKSUM) == Some(0)
}

/// Flips one of the target's bits; which one.
fn flip(frame: &mut [u8], target: &Range<usize>, random: u64) -> Option<usize> {
    let bits = u64::try_from(target.len()).ok()?.checked_mul(8)?;
    let bit = usize::try_from(random % bits).ok()?;
    *frame.get_mut(target.start + bit / 8)? ^= 1 << (bit % 8);
    Some(bit)
}

/// Takes the flip of a bit back and flips the other one of its pair.
fn hit_neighbour(frame: &mut [u8], start: usize, bit: usize) {
    if let Some(byte) = frame.get_mut(start + bit / 8) {
        *byte ^= 3 << (bit & 6);
    }
}
