//! ICMP errors, as a router writes them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::{IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, ipv4, ipv6};

use super::header::{
    HEADER_LEN, PACKET_TOO_BIG_V6, PROTOCOL_V4, PROTOCOL_V6, TIME_EXCEEDED_V4, TIME_EXCEEDED_V6,
    UNREACHABLE_V4, UNREACHABLE_V6,
};

/// RFC 1812, 4.3.2.3: an error is no longer than 576 bytes, IP header included.
const V4_LEN_MAX: usize = 576;
/// RFC 4443, 2.4 (c): an error is no longer than the minimum IPv6 MTU.
const V6_LEN_MAX: usize = 1280;
/// RFC 1812, 4.3.2.5: errors travel with precedence 6, internetwork control.
const V4_TOS: u8 = 0xc0;
const TTL: u8 = 64;

/// What went wrong with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IcmpErrorKind {
    /// It has passed too many routers.
    TimeExceeded,
    /// There is no route to its destination.
    NetUnreachable,
    /// Its destination's last link does not know it.
    HostUnreachable,
    /// No socket listens at its port.
    PortUnreachable,
    /// A rule forbids it.
    AdminProhibited,
    /// It does not fit the next link and may not be fragmented: "fragmentation needed" of
    /// RFC 1191, "packet too big" of RFC 4443.
    TooBig {
        /// IP bytes that the next link takes.
        mtu: u32,
    },
    /// Whatever a message of the packet's version of IP has said.
    Said { kind: u8, code: u8, word: u32 },
}

/// The sender of an error: its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpErrorReply {
    /// What went wrong.
    pub kind: IcmpErrorKind,
    /// The router's address, of the packet's own IP version.
    pub source: IpAddr,
    /// The Ethernet address of source and destination alike; the fabric sets real ones.
    pub mac: [u8; 6],
}

/// Writes the ICMP error about a packet; returns its length.
///
/// As much of the packet is quoted as fits 576 bytes (IPv4) or 1280 bytes (IPv6), as it is: a
/// partial checksum, a train's length or a decremented TTL are quoted so. Quote the frame of before
/// the TTL was touched, and the train's first segment, where that matters. Checksums are complete.
///
/// `None` when the original is not an IP packet, `source` is of the other version, or `out` is too
/// short (1294 bytes always do). Ask [`may_send_error`] first.
pub fn write_error(reply: &IcmpErrorReply, original: &[u8], out: &mut [u8]) -> Option<usize> {
    let info = ParsedPacket::parse(original).ok()?.info;
    let packet = original.get(ethernet::HEADER_LEN..info.end)?;
    match (info.source, reply.source) {
        (IpAddr::V4(to), IpAddr::V4(from)) => write_v4(reply, from, to, packet, out),
        (IpAddr::V6(to), IpAddr::V6(from)) => write_v6(reply, from, to, packet, out),
        _ => None,
    }
}

/// Whether an error may be sent about a packet (RFC 1812, 4.3.2.7; RFC 4443, 2.4 (e)): not about
/// ICMP errors and redirects, later fragments, multicasts and broadcasts, nor to a source that is
/// not one host. A packet too big for IPv6 multicast is treated like the others.
#[must_use]
pub fn may_send_error(packet: &ParsedPacket<'_>) -> bool {
    let ParsedPacket { info, frame } = packet;
    let link_group = ethernet::EthernetFrame::parse(frame).is_ok_and(|view| view.is_multicast());
    let source_is_host = match info.source {
        IpAddr::V4(v4) => {
            // 0.0.0.0/8 is "this network", 240.0.0.0/4 is reserved and broadcast.
            !(v4.octets()[0] == 0 || v4.octets()[0] >= 224 || v4.is_loopback())
        }
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_multicast() || v6.is_loopback()),
    };
    let excluded = info.is_icmp_error || info.is_later_fragment || info.is_multicast || link_group;
    source_is_host && !excluded
}

impl IcmpErrorKind {
    /// Type, code and second word of the message.
    fn encode(self, version: IpVersion) -> (u8, u8, u32) {
        match (self, version) {
            (Self::Said { kind, code, word }, _) => (kind, code, word),
            (Self::TimeExceeded, IpVersion::V4) => (TIME_EXCEEDED_V4, 0, 0),
            (Self::NetUnreachable, IpVersion::V4) => (UNREACHABLE_V4, 0, 0),
            (Self::HostUnreachable, IpVersion::V4) => (UNREACHABLE_V4, 1, 0),
            (Self::PortUnreachable, IpVersion::V4) => (UNREACHABLE_V4, 3, 0),
            (Self::AdminProhibited, IpVersion::V4) => (UNREACHABLE_V4, 13, 0),
            // RFC 1191, 4: the MTU is the low half of the word.
            (Self::TooBig { mtu }, IpVersion::V4) => (UNREACHABLE_V4, 4, mtu.min(0xffff)),
            (Self::TimeExceeded, IpVersion::V6) => (TIME_EXCEEDED_V6, 0, 0),
            (Self::NetUnreachable, IpVersion::V6) => (UNREACHABLE_V6, 0, 0),
            (Self::HostUnreachable, IpVersion::V6) => (UNREACHABLE_V6, 3, 0),
            (Self::PortUnreachable, IpVersion::V6) => (UNREACHABLE_V6, 4, 0),
            (Self::AdminProhibited, IpVersion::V6) => (UNREACHABLE_V6, 1, 0),
            (Self::TooBig { mtu }, IpVersion::V6) => (PACKET_TOO_BIG_V6, 0, mtu),
        }
    }
}

fn write_v4(
    reply: &IcmpErrorReply,
    from: Ipv4Addr,
    to: Ipv4Addr,
    packet: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    let room = V4_LEN_MAX - ipv4::HEADER_LEN - HEADER_LEN;
    let quote = packet.get(..room).unwrap_or(packet);
    let total = ipv4::HEADER_LEN + HEADER_LEN + quote.len();
    let frame = out.get_mut(..ethernet::HEADER_LEN + total)?;
    write_outer(frame, reply.mac, ethernet::IPV4)?;
    // Not fragmented, so the identification is free (RFC 6864, 4.1).
    let fixed = [0x45, V4_TOS, 0, 0, 0, 0, 0x40, 0, TTL, PROTOCOL_V4, 0, 0];
    let at = ethernet::HEADER_LEN;
    bytes::put(frame, at, fixed)?;
    bytes::put_u16(frame, at + 2, bytes::len16(total)?)?;
    bytes::put(frame, at + 12, from.octets())?;
    bytes::put(frame, at + 16, to.octets())?;
    ipv4::set_checksum(frame)?;
    write_message(frame, reply.kind.encode(IpVersion::V4), quote)
}

fn write_v6(
    reply: &IcmpErrorReply,
    from: Ipv6Addr,
    to: Ipv6Addr,
    packet: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    let room = V6_LEN_MAX - ipv6::HEADER_LEN - HEADER_LEN;
    let quote = packet.get(..room).unwrap_or(packet);
    let length = HEADER_LEN + quote.len();
    let frame = out.get_mut(..ethernet::HEADER_LEN + ipv6::HEADER_LEN + length)?;
    write_outer(frame, reply.mac, ethernet::IPV6)?;
    let at = ethernet::HEADER_LEN;
    bytes::put(frame, at, [0x60, 0, 0, 0, 0, 0, PROTOCOL_V6, TTL])?;
    bytes::put_u16(frame, at + 4, bytes::len16(length)?)?;
    bytes::put(frame, at + 8, from.octets())?;
    bytes::put(frame, at + 24, to.octets())?;
    write_message(frame, reply.kind.encode(IpVersion::V6), quote)
}

fn write_outer(frame: &mut [u8], mac: [u8; 6], ethertype: u16) -> Option<()> {
    bytes::put(frame, 0, mac)?;
    bytes::put(frame, 6, mac)?;
    bytes::put_u16(frame, 12, ethertype)
}

/// Writes header and quotation behind the IP header, and the checksum over both.
fn write_message(frame: &mut [u8], message: (u8, u8, u32), quote: &[u8]) -> Option<usize> {
    let (kind, code, rest) = message;
    let at = frame.len().checked_sub(HEADER_LEN + quote.len())?;
    bytes::put(frame, at, [kind, code, 0, 0])?;
    bytes::put_u32(frame, at + 4, rest)?;
    bytes::copy(quote, frame.get_mut(at + HEADER_LEN..)?)?;
    let info = ParsedPacket::parse(frame).ok()?.info;
    checksum::fill(frame, &info)?;
    Some(frame.len())
}
