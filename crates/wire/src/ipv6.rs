//! IPv6 headers and the walk over extension headers (RFC 8200).

use core::net::Ipv6Addr;

use crate::bytes;
use crate::ecn::codepoint::EcnCodepoint;
use crate::parse_error::PacketParseError;

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Extension headers followed before the walk gives up.
pub const EXTENSIONS_MAX: usize = 16;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// An IPv6 packet whose payload length has been checked against the bytes present.
///
/// Jumbograms (payload length 0 with a hop-by-hop option) are not known.
#[derive(Debug, Clone, Copy)]
pub struct Ipv6Packet<'a> {
    fixed: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Ipv6Packet<'a> {
    /// Looks at the bytes after the Ethernet header; what follows the payload length is padding.
    ///
    /// # Errors
    /// Too few bytes, another version, or a length field that contradicts them.
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, PacketParseError> {
        let (fixed, rest) =
            packet.split_first_chunk::<HEADER_LEN>().ok_or(PacketParseError::Truncated)?;
        if fixed[0] >> 4 != 6 {
            return Err(PacketParseError::Version);
        }
        let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let payload = rest.get(..length).ok_or(PacketParseError::TotalLength)?;
        Ok(Self { fixed, payload })
    }

    /// The traffic class: DSCP and ECN.
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        self.fixed[0] << 4 | self.fixed[1] >> 4
    }

    /// The congestion codepoint (RFC 3168).
    #[must_use]
    pub fn ecn(&self) -> EcnCodepoint {
        EcnCodepoint::from_bits(self.traffic_class())
    }

    /// The flow label, 20 bits.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.fixed[1] & 0x0f, self.fixed[2], self.fixed[3]])
    }

    /// Bytes after the fixed header, extension headers included.
    #[must_use]
    pub fn payload_len(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// The number of the first header after the fixed one.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        self.fixed[6]
    }

    /// Hops left.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// The sender.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        address_at(self.fixed, 8).unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// The receiver, or the next stop of a routing header.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        address_at(self.fixed, 24).unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// What follows the fixed header, up to the payload length.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks over the extension headers to the transport header.
    #[must_use]
    pub fn chain(&self) -> ExtensionHeaderChain {
        let mut chain = ExtensionHeaderChain {
            protocol: self.next_header(),
            ..ExtensionHeaderChain::default()
        };
        for _ in 0..EXTENSIONS_MAX {
            if chain.is_later_fragment || chain.step(self.payload).is_none() {
                break;
            }
        }
        chain
    }
}

/// Where the extension headers lead.
///
/// A chain that is cut short, or longer than [`EXTENSIONS_MAX`], ends at the header that was not
/// followed: `protocol` then names an extension header, and a router can still forward the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtensionHeaderChain {
    /// The transport protocol.
    pub protocol: u8,
    /// Offset of the transport header after the fixed header.
    pub offset: usize,
    /// Whether there is a fragment header that really divides (RFC 6946 calls others atomic).
    pub is_fragment: bool,
    /// Whether the payload begins in the middle of the original.
    pub is_later_fragment: bool,
    /// The final destination, where a routing header names another than the fixed header.
    pub final_destination: Option<Ipv6Addr>,
}

impl ExtensionHeaderChain {
    /// Passes one extension header, or answers `None` when there is none to pass.
    fn step(&mut self, payload: &[u8]) -> Option<()> {
        let next = bytes::u8_at(payload, self.offset)?;
        let length = usize::from(bytes::u8_at(payload, self.offset + 1)?);
        let size = match self.protocol {
            HOP_BY_HOP | DESTINATION_OPTIONS | ROUTING => (length + 1) * 8,
            FRAGMENT => 8,
            AUTHENTICATION => (length + 2) * 4,
            _ => return None,
        };
        let header = payload.get(self.offset..self.offset + size)?;
        match self.protocol {
            ROUTING => self.final_destination = routed_to(header).or(self.final_destination),
            FRAGMENT => {
                let field = bytes::u16_at(header, 2)?;
                self.is_later_fragment = field & 0xfff8 != 0;
                self.is_fragment = field & 0xfff9 != 0;
            }
            _ => {}
        }
        self.protocol = next;
        self.offset += size;
        Some(())
    }
}

/// The last address of a routing header with segments left: the one transport checksums cover
/// (RFC 8200, 8.1). Types 0 and 2 list it last, type 4 (RFC 8754) first.
fn routed_to(header: &[u8]) -> Option<Ipv6Addr> {
    let [_, length, kind, left] = bytes::array_at(header, 0)?;
    match (kind, left) {
        (_, 0) => None,
        (0 | 2, _) => address_at(header, (usize::from(length) * 8).checked_sub(8)?),
        (4, _) => address_at(header, 8),
        _ => None,
    }
}

fn address_at(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    bytes::array_at::<16>(bytes, at).map(Ipv6Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0x3a, 0xbc, 0xde, 0, 0, next, 64];
        packet[5] = u8::try_from(payload.len()).unwrap();
        packet.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(payload);
        packet
    }

    #[test]
    fn the_fields_of_a_literal_packet_are_read() {
        let bytes = packet(17, b"abc");
        let view = Ipv6Packet::parse(&bytes).unwrap();
        assert_eq!((view.traffic_class(), view.ecn()), (0x03, EcnCodepoint::Ce));
        assert_eq!((view.flow_label(), view.payload_len()), (0xabcde, 3));
        assert_eq!((view.next_header(), view.hop_limit()), (17, 64));
        assert_eq!(view.source().to_string(), "fd00::1");
        assert_eq!(view.destination().to_string(), "fd00::2");
        assert_eq!(view.payload(), b"abc");
        assert_eq!(Ipv6Packet::parse(&bytes[..42]).unwrap_err(), PacketParseError::TotalLength);
        assert_eq!(Ipv6Packet::parse(&bytes[..39]).unwrap_err(), PacketParseError::Truncated);
    }

    #[test]
    fn the_walk_passes_options_and_authentication_to_the_transport_header() {
        let mut payload = vec![60, 0, 1, 4, 0, 0, 0, 0];
        payload.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend([6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
        payload.extend([9; 20]);
        let bytes = packet(0, &payload);
        let chain = Ipv6Packet::parse(&bytes).unwrap().chain();
        assert_eq!((chain.protocol, chain.offset, chain.is_fragment), (6, 36, false));
    }

    #[test]
    fn fragments_are_distinguished_by_their_offset() {
        let chain = |field: [u8; 2]| {
            let payload = [17, 0, field[0], field[1], 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
            Ipv6Packet::parse(&packet(44, &payload)).unwrap().chain()
        };
        assert_eq!((chain([0, 1]).is_fragment, chain([0, 1]).is_later_fragment), (true, false));
        assert_eq!((chain([0, 8]).is_fragment, chain([0, 8]).is_later_fragment), (true, true));
        assert_eq!((chain([0, 0]).is_fragment, chain([0, 0]).offset), (false, 8));
    }

    #[test]
    fn a_routing_header_with_segments_left_names_the_final_destination() {
        let mut payload = vec![17, 2, 2, 1, 0, 0, 0, 0];
        payload.extend("fd00::9".parse::<Ipv6Addr>().unwrap().octets());
        let chain = Ipv6Packet::parse(&packet(43, &payload)).unwrap().chain();
        assert_eq!(chain.final_destination, Some("fd00::9".parse().unwrap()));
        payload[3] = 0;
        assert_eq!(
            Ipv6Packet::parse(&packet(43, &payload)).unwrap().chain().final_destination,
            None
        );
    }

    #[test]
    fn a_cut_or_endless_chain_stops_the_walk_without_an_error() {
        let cut = Ipv6Packet::parse(&packet(0, &[6, 9, 0, 0, 0, 0, 0, 0])).unwrap().chain();
        assert_eq!((cut.protocol, cut.offset), (0, 0));
        let endless: Vec<u8> = [60, 0, 1, 4, 0, 0, 0, 0].repeat(20);
        let long = Ipv6Packet::parse(&packet(60, &endless)).unwrap().chain();
        assert_eq!((long.protocol, long.offset), (60, EXTENSIONS_MAX * 8));
    }
}
