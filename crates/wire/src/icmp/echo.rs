//! A router answering ping.

use core::net::IpAddr;

use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, ipv4, vnet};

use super::header::{
    ECHO_REPLY_V4, ECHO_REPLY_V6, ECHO_REQUEST_V4, ECHO_REQUEST_V6, HEADER_LEN, PROTOCOL_V4,
    PROTOCOL_V6,
};

const TTL: u8 = 64;

/// Turns an echo request into its reply, with TTL 64, addresses swapped (Ethernet's too) and
/// complete checksums; `vnet` says so afterwards.
///
/// Answers `false`, and leaves the frame alone, for a frame that holds no echo request, has a
/// wrong checksum, is a fragment or a multicast, or takes an IPv6 routing header. Options of the
/// IPv4 header and other IPv6 extension headers are sent back as they came.
pub fn echo_reply_in_place(frame: &mut [u8], vnet: &mut vnet::VirtioNetHeader) -> bool {
    let Ok(packet) = ParsedPacket::parse(frame) else { return false };
    if !is_answerable(&packet, vnet) {
        return false;
    }
    let info = packet.info;
    *vnet = vnet::VirtioNetHeader::default();
    reply(frame, &info).is_some()
}

fn is_answerable(packet: &ParsedPacket<'_>, vnet: &vnet::VirtioNetHeader) -> bool {
    let (info, payload) = (&packet.info, packet.payload());
    let asked = match info.version {
        IpVersion::V4 => (PROTOCOL_V4, ECHO_REQUEST_V4),
        IpVersion::V6 => (PROTOCOL_V6, ECHO_REQUEST_V6),
    };
    let source_is_host = !info.source.is_multicast() && !info.source.is_unspecified();
    (info.protocol, payload.first().copied()) == (asked.0, Some(asked.1))
        && payload.len() >= HEADER_LEN
        && !(info.is_fragment || info.is_multicast)
        && info.destination == info.final_destination
        && source_is_host
        && (vnet.needs_csum() || checksum::holds(packet))
}

fn reply(frame: &mut [u8], info: &IpPacketSummary) -> Option<()> {
    let outer = ethernet::EthernetFrame::parse(frame).ok()?;
    let (destination, source) = (outer.source(), outer.destination());
    ethernet::set_addresses(frame, destination, source);
    let at = ethernet::HEADER_LEN;
    let kind = match (info.source, info.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes::put(frame, at + 12, destination.octets())?;
            bytes::put(frame, at + 16, source.octets())?;
            bytes::put(frame, at + 8, [TTL])?;
            ipv4::set_checksum(frame)?;
            ECHO_REPLY_V4
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            bytes::put(frame, at + 8, destination.octets())?;
            bytes::put(frame, at + 24, source.octets())?;
            bytes::put(frame, at + 7, [TTL])?;
            ECHO_REPLY_V6
        }
        _ => return None,
    };
    bytes::put(frame, info.transport, [kind, 0])?;
    // Swapping the addresses leaves the pseudo-header's sum as it was.
    checksum::fill(frame, info)
}
