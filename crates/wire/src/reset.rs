//! TCP resets, as somebody other than an end of the connection writes them.

use core::net::{IpAddr, SocketAddr};

use crate::packet::ParsedPacket;
use crate::{bytes, checksum, ethernet, ipv4, ipv6, tcp};

/// Bytes of the longest frame here: Ethernet, IPv6 and TCP without options.
pub const FRAME_LEN: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + tcp::HEADER_LEN;

const TTL: u8 = 64;

/// A reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpResetSegment {
    /// In whose name it is.
    pub source: SocketAddr,
    /// Who gets it.
    pub destination: SocketAddr,
    /// The sequence number: what the receiver expects next (RFC 5961, 3.2).
    pub sequence: u32,
    /// What is acknowledged, where the connection was never established.
    pub acknowledgement: Option<u32>,
    /// The Ethernet address of source and destination alike; the fabric sets real ones.
    pub mac: [u8; 6],
}

impl TcpResetSegment {
    /// The answer to a segment of a connection that is not there (RFC 9293, 3.10.7.1); `None` for
    /// what is no TCP segment, or is a reset itself.
    #[must_use]
    pub fn answer(frame: &[u8], mac: [u8; 6]) -> Option<TcpResetSegment> {
        let packet = ParsedPacket::parse(frame).ok()?;
        let info = &packet.info;
        if info.protocol != tcp::PROTOCOL || info.is_fragment {
            return None;
        }
        let segment = tcp::TcpSegment::parse(packet.payload()).ok()?;
        let flags = segment.flags();
        if flags & tcp::RST != 0 {
            return None;
        }
        let (sequence, acknowledgement) = if flags & tcp::ACK != 0 {
            (segment.acknowledgement(), None)
        } else {
            let counts = |flag: u8| u32::from(flags & flag != 0);
            let length = bytes::len32(segment.payload().len());
            let length = length.wrapping_add(counts(tcp::SYN)).wrapping_add(counts(tcp::FIN));
            (0, Some(segment.sequence().wrapping_add(length)))
        };
        Some(TcpResetSegment {
            source: SocketAddr::new(info.final_destination, segment.destination_port()),
            destination: SocketAddr::new(info.source, segment.source_port()),
            sequence,
            acknowledgement,
            mac,
        })
    }

    /// Writes the frame with complete checksums, and answers its length; `None` where the addresses
    /// are of two families or `out` is too short ([`FRAME_LEN`] always is long enough).
    pub fn write(&self, out: &mut [u8]) -> Option<usize> {
        let at = ethernet::HEADER_LEN;
        let (transport, ethertype) = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(_), IpAddr::V4(_)) => (at + ipv4::HEADER_LEN, ethernet::IPV4),
            (IpAddr::V6(_), IpAddr::V6(_)) => (at + ipv6::HEADER_LEN, ethernet::IPV6),
            _ => return None,
        };
        let out = out.get_mut(..transport + tcp::HEADER_LEN)?;
        bytes::put(out, 0, self.mac)?;
        bytes::put(out, 6, self.mac)?;
        bytes::put_u16(out, 12, ethertype)?;
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                // Not fragmented, so the identification is free (RFC 6864, 4.1).
                bytes::put(out, at, [0x45, 0, 0, 40, 0, 0, 0x40, 0, TTL, tcp::PROTOCOL, 0, 0])?;
                bytes::put(out, at + 12, from.octets())?;
                bytes::put(out, at + 16, to.octets())?;
                ipv4::set_checksum(out)?;
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                bytes::put(out, at, [0x60, 0, 0, 0, 0, 20, tcp::PROTOCOL, TTL])?;
                bytes::put(out, at + 8, from.octets())?;
                bytes::put(out, at + 24, to.octets())?;
            }
            _ => return None,
        }
        self.write_segment(out, transport)?;
        let info = ParsedPacket::parse(out).ok()?.info;
        checksum::fill(out, &info)?;
        Some(out.len())
    }

    fn write_segment(&self, out: &mut [u8], at: usize) -> Option<()> {
        let flags = tcp::RST | if self.acknowledgement.is_some() { tcp::ACK } else { 0 };
        bytes::put_u16(out, at, self.source.port())?;
        bytes::put_u16(out, at + 2, self.destination.port())?;
        bytes::put_u32(out, at + tcp::SEQUENCE, self.sequence)?;
        bytes::put_u32(out, at + 8, self.acknowledgement.unwrap_or(0))?;
        bytes::put(out, at + 12, [0x50, flags, 0, 0, 0, 0, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn answer(from: &str, to: &str, flags: u8, data: &[u8]) -> Option<TcpResetSegment> {
        let frame = build::tcp(from.parse().unwrap(), to.parse().unwrap(), 77, flags, data);
        TcpResetSegment::answer(&frame, MAC)
    }

    #[test]
    fn an_acknowledged_number_is_the_resets_own() {
        let reset = answer("10.0.0.1:5000", "10.1.0.80:80", tcp::ACK, b"abc").unwrap();
        assert_eq!((reset.sequence, reset.acknowledgement), (1, None));
        assert_eq!(reset.source, "10.1.0.80:80".parse().unwrap());
        assert_eq!(reset.destination, "10.0.0.1:5000".parse().unwrap());
        let mut out = [0; FRAME_LEN];
        assert_eq!(reset.write(&mut out), Some(54));
        assert!(checksum::verify(&out[..54]));
        let view = tcp::TcpSegment::parse(&out[34..54]).unwrap();
        assert_eq!((view.flags(), view.sequence(), view.acknowledgement()), (tcp::RST, 1, 0));
        assert_eq!((view.source_port(), view.destination_port()), (80, 5000));
    }

    #[test]
    fn what_acknowledges_nothing_is_acknowledged() {
        let reset = answer("[fd00::1]:5000", "[fd00::80]:80", tcp::SYN, b"").unwrap();
        assert_eq!((reset.sequence, reset.acknowledgement), (0, Some(78)), "SYN counts one");
        let mut out = [0; FRAME_LEN];
        assert_eq!(reset.write(&mut out), Some(FRAME_LEN));
        assert!(checksum::verify(&out));
        let view = tcp::TcpSegment::parse(&out[54..]).unwrap();
        assert_eq!((view.flags(), view.acknowledgement()), (tcp::RST | tcp::ACK, 78));
    }

    #[test]
    fn a_reset_and_other_protocols_have_no_answer() {
        assert_eq!(answer("10.0.0.1:5000", "10.1.0.80:80", tcp::RST | tcp::ACK, b""), None);
        let (from, to) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        assert_eq!(TcpResetSegment::answer(&build::udp(from, to, b"x"), MAC), None);
        assert_eq!(TcpResetSegment::answer(&[], MAC), None);
    }
}
