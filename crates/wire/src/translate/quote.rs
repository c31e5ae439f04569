//! Errors of ICMP, and the packets that they quote (RFC 5508, 4).

use core::net::Ipv4Addr;

use super::{EndpointRewrite, HeaderOffsets, IDENTIFIER, TIMESTAMP, change_checksum, rewrite};
use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, icmp, ipv4, tcp, udp};

/// The packet that an ICMP error of IPv4 quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpQuotedPacket {
    /// Its protocol: TCP, UDP, or ICMP for a query.
    pub protocol: u8,
    /// Its sender: address, and port or identifier.
    pub source: (Ipv4Addr, u16),
    /// Its receiver; of a query with the same identifier.
    pub destination: (Ipv4Addr, u16),
    offsets: HeaderOffsets,
}

impl IcmpQuotedPacket {
    /// Reads what an error quotes: the IP header and 8 bytes behind it (RFC 792). `None` where the
    /// frame is no such error, or quotes less, a later fragment, or another protocol.
    #[must_use]
    pub fn of(packet: &ParsedPacket<'_>) -> Option<IcmpQuotedPacket> {
        IcmpQuotedPacket::find(packet.frame, &packet.info)
    }

    fn find(frame: &[u8], info: &IpPacketSummary) -> Option<IcmpQuotedPacket> {
        if !info.is_icmp_error || info.is_fragment || info.version != IpVersion::V4 {
            return None;
        }
        let at = info.transport + icmp::HEADER_LEN;
        let quoted = frame.get(at..info.end)?;
        let first = bytes::u8_at(quoted, 0)?;
        let header = usize::from(first & 0x0f) * 4;
        let is_first = bytes::u16_at(quoted, 6)? & 0x1fff == 0;
        if first >> 4 != 4 || header < ipv4::HEADER_LEN || !is_first {
            return None;
        }
        let behind = quoted.get(header..).filter(|behind| behind.len() >= icmp::HEADER_LEN)?;
        let protocol = bytes::u8_at(quoted, 9)?;
        let ports = match protocol {
            tcp::PROTOCOL | udp::PROTOCOL => (bytes::u16_at(behind, 0)?, bytes::u16_at(behind, 2)?),
            icmp::PROTOCOL_V4 if is_query(behind) => {
                let identifier = bytes::u16_at(behind, IDENTIFIER)?;
                (identifier, identifier)
            }
            _ => return None,
        };
        let address = |at| bytes::array_at::<4>(quoted, at).map(Ipv4Addr::from);
        Some(IcmpQuotedPacket {
            protocol,
            source: (address(super::SOURCE)?, ports.0),
            destination: (address(super::DESTINATION)?, ports.1),
            offsets: HeaderOffsets { ip: at, transport: at + header },
        })
    }
}

/// Writes other addresses into an error, and other ends into what it quotes. Type, code and the rest
/// stay (RFC 5508, REQ-4 and REQ-5). `false` where it quotes too little or its checksum is wrong
/// (REQ-3); nothing is changed then.
pub fn error(
    frame: &mut [u8],
    info: &IpPacketSummary,
    outer: &EndpointRewrite,
    inner: &EndpointRewrite,
) -> bool {
    let Some(quoted) = IcmpQuotedPacket::find(frame, info) else { return false };
    checksum::verify(frame) && change(frame, info, &quoted, outer, inner).is_some()
}

fn change(
    frame: &mut [u8],
    info: &IpPacketSummary,
    quoted: &IcmpQuotedPacket,
    outer: &EndpointRewrite,
    inner: &EndpointRewrite,
) -> Option<()> {
    let change = rewrite(frame, quoted.offsets, quoted.protocol, inner)?;
    let field = quoted.offsets.transport
        + match quoted.protocol {
            tcp::PROTOCOL => tcp::CHECKSUM,
            udp::PROTOCOL => udp::CHECKSUM,
            _ => icmp::CHECKSUM,
        };
    // Of TCP the 8 bytes that must be there end before it.
    if field + 2 <= info.end {
        change_checksum(frame, field, quoted.protocol, false, change)?;
    }
    let ends = [(outer.source, super::SOURCE), (outer.destination, super::DESTINATION)];
    for (end, at) in ends {
        if let Some((address, _)) = end {
            bytes::put(frame, ethernet::HEADER_LEN + at, address.octets())?;
        }
    }
    ipv4::set_checksum(frame)?;
    checksum::fill(frame, info)
}

fn is_query(message: &[u8]) -> bool {
    let kind = bytes::u8_at(message, 0);
    matches!(kind, Some(icmp::ECHO_REQUEST_V4 | icmp::ECHO_REPLY_V4 | TIMESTAMP))
        || kind == Some(super::TIMESTAMP_REPLY)
}
