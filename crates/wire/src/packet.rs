//! What a router needs to know about a frame, read once.

use core::net::IpAddr;

use crate::ecn::codepoint::EcnCodepoint;
use crate::icmp::header as icmp;
pub use crate::parse_error::PacketParseError;
use crate::{bytes, ethernet, ipv4, ipv6, udp};

/// The IP version of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A frame that holds an IP packet, and what was read of it. The frame cannot change while this is
/// there, so that the facts hold for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedPacket<'a> {
    /// The facts.
    pub info: IpPacketSummary,
    /// The whole frame.
    pub frame: &'a [u8],
}

impl<'a> ParsedPacket<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`PacketParseError`] when it is not an IP packet or its IP lengths contradict its bytes. A
    /// transport header that is cut is not an error here: routers do not look at it.
    pub fn parse(frame: &'a [u8]) -> Result<Self, PacketParseError> {
        let outer = ethernet::EthernetFrame::parse(frame)?;
        let info = match outer.ethertype() {
            ethernet::IPV4 => from_v4(&ipv4::Ipv4Packet::parse(outer.payload())?),
            ethernet::IPV6 => from_v6(&ipv6::Ipv6Packet::parse(outer.payload())?),
            other => return Err(PacketParseError::NotIp(other)),
        };
        let mut packet = Self { info, frame };
        packet.info.is_multicast |= outer.is_multicast();
        packet.info.is_icmp_error = is_icmp_error(&packet);
        Ok(packet)
    }

    /// The transport header and payload.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.info.payload(self.frame)
    }

    /// Source and destination port of TCP, UDP, UDP-Lite, SCTP and DCCP; `None` for others, and
    /// for all fragments, so that a datagram's fragments stay together.
    #[must_use]
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.info.is_fragment || !matches!(self.info.protocol, 6 | 17 | 33 | 132 | 136) {
            return None;
        }
        let payload = self.payload();
        Some((bytes::u16_at(payload, 0)?, bytes::u16_at(payload, 2)?))
    }

    /// Of a fragment, what it shares with the others of its datagram. That of IPv6 is read where no
    /// other header follows the fragment header, which ends with it (RFC 8200, 4.5).
    #[must_use]
    pub fn fragment_identification(&self) -> Option<u32> {
        match self.info.version {
            IpVersion::V4 => bytes::u16_at(self.frame, ethernet::HEADER_LEN + 4).map(u32::from),
            IpVersion::V6 => bytes::u32_at(self.frame, self.info.transport.checked_sub(4)?),
        }
    }
}

/// The facts of an IP packet in an Ethernet frame, as [`ParsedPacket::parse`] has read them: what is kept
/// of it while the frame changes. Offsets count from the start of the frame.
///
/// INVARIANT: `14 <= transport <= end <= frame.len()` for the frame it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IpPacketSummary {
    /// The IP version.
    pub version: IpVersion,
    /// The sender.
    pub source: IpAddr,
    /// Where the packet goes next: the address to route by.
    pub destination: IpAddr,
    /// The last destination: differs from `destination` only with an IPv6 routing header, and is
    /// the one that transport checksums cover (RFC 8200, 8.1).
    pub final_destination: IpAddr,
    /// The transport protocol, after IPv6 extension headers.
    pub protocol: u8,
    /// Offset of the transport header; of the payload, for a later fragment.
    pub transport: usize,
    /// Offset after the last byte of the IP packet; what follows is Ethernet padding.
    pub end: usize,
    /// Bytes of the IP packet, IP header included: what an MTU limits.
    pub ip_len: u32,
    /// Hops left.
    pub ttl: u8,
    /// The congestion codepoint.
    pub ecn: EcnCodepoint,
    /// Whether routers may not fragment it; always so for IPv6.
    pub dont_fragment: bool,
    /// Whether it is any fragment of a datagram, the first included.
    pub is_fragment: bool,
    /// Whether it is a fragment other than the first, and so has no transport header.
    pub is_later_fragment: bool,
    /// Whether the Ethernet or IP destination is a multicast or limited broadcast address.
    /// A subnet's directed broadcast cannot be known here.
    pub is_multicast: bool,
    /// Whether it is an ICMP message that reports an error or a redirect.
    pub is_icmp_error: bool,
}

impl IpPacketSummary {
    /// The transport header and payload, in the frame it was read from.
    #[inline]
    pub(crate) fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(self.transport..self.end).unwrap_or_default()
    }

    /// Offset after the last byte that the transport checksum covers: UDP has its own length.
    pub(crate) fn transport_end(&self, frame: &[u8]) -> Option<usize> {
        if self.protocol != udp::PROTOCOL || self.is_fragment {
            return Some(self.end);
        }
        let length = usize::from(bytes::u16_at(self.payload(frame), udp::LENGTH)?);
        let end = self.transport + length;
        (length >= udp::HEADER_LEN && end <= self.end).then_some(end)
    }
}

/// Bytes of the IP packet in a frame, as [`IpPacketSummary::ip_len`], where no more is to be known.
///
/// # Errors
/// As [`ParsedPacket::parse`].
#[inline]
pub fn ip_len(frame: &[u8]) -> Result<u32, PacketParseError> {
    let outer = ethernet::EthernetFrame::parse(frame)?;
    match outer.ethertype() {
        ethernet::IPV4 => Ok(ipv4::Ipv4Packet::parse(outer.payload())?.total_len().into()),
        ethernet::IPV6 => {
            let payload = ipv6::Ipv6Packet::parse(outer.payload())?.payload_len();
            Ok(bytes::len32(ipv6::HEADER_LEN) + u32::from(payload))
        }
        other => Err(PacketParseError::NotIp(other)),
    }
}

fn from_v4(view: &ipv4::Ipv4Packet<'_>) -> IpPacketSummary {
    let destination = view.destination();
    let transport = ethernet::HEADER_LEN + view.header_len();
    let is_later_fragment = view.fragment_offset() != 0;
    IpPacketSummary {
        version: IpVersion::V4,
        source: view.source().into(),
        destination: destination.into(),
        final_destination: destination.into(),
        protocol: view.protocol(),
        transport,
        end: transport + view.payload().len(),
        ip_len: view.total_len().into(),
        ttl: view.ttl(),
        ecn: view.ecn(),
        dont_fragment: view.dont_fragment(),
        is_fragment: is_later_fragment || view.more_fragments(),
        is_later_fragment,
        is_multicast: destination.is_multicast() || destination.is_broadcast(),
        is_icmp_error: false,
    }
}

fn from_v6(view: &ipv6::Ipv6Packet<'_>) -> IpPacketSummary {
    let destination = view.destination();
    let chain = view.chain();
    let start = ethernet::HEADER_LEN + ipv6::HEADER_LEN;
    IpPacketSummary {
        version: IpVersion::V6,
        source: view.source().into(),
        destination: destination.into(),
        final_destination: chain.final_destination.unwrap_or(destination).into(),
        protocol: chain.protocol,
        transport: start + chain.offset,
        end: start + view.payload().len(),
        ip_len: bytes::len32(ipv6::HEADER_LEN) + u32::from(view.payload_len()),
        ttl: view.hop_limit(),
        ecn: view.ecn(),
        dont_fragment: true,
        is_fragment: chain.is_fragment,
        is_later_fragment: chain.is_later_fragment,
        is_multicast: destination.is_multicast(),
        is_icmp_error: false,
    }
}

/// Whether a packet is an ICMP error or redirect, about which no error may be sent. A message cut
/// before its type might be one, and counts.
fn is_icmp_error(packet: &ParsedPacket<'_>) -> bool {
    let (info, kind) = (&packet.info, bytes::u8_at(packet.payload(), 0));
    match (info.version, info.protocol) {
        _ if info.is_later_fragment => false,
        (IpVersion::V4, icmp::PROTOCOL_V4) => {
            kind.is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12))
        }
        (IpVersion::V6, icmp::PROTOCOL_V6) => kind.is_none_or(|kind| kind < 128 || kind == 137),
        _ => false,
    }
}
