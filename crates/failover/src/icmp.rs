//! ICMP errors about packets that the client was sent: the packet that they quote.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::event::ReplicatedConnectionKey;
use windtunnel_wire::packet::{IpVersion, ParsedPacket};
use windtunnel_wire::{checksum, ipv4, ipv6, tcp};

/// Bytes of an ICMP header.
const HEADER_LEN: usize = 8;
/// "Fragmentation needed" (RFC 1191), type and code.
const TOO_BIG_V4: (u8, u8) = (3, 4);
/// "Packet too big" (RFC 4443).
const TOO_BIG_V6: u8 = 2;

/// What an error quotes of a segment from a service to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IcmpQuotedSegment {
    pub(crate) key: ReplicatedConnectionKey,
    /// The sequence number of the segment.
    pub(crate) sequence: u32,
    /// Bytes of TCP segment that the next link takes, where the packet was too big.
    pub(crate) segment_max: Option<u32>,
    /// Where the sequence number is in the frame.
    at: usize,
    /// Where the error's checksum is.
    checksum_at: usize,
}

impl IcmpQuotedSegment {
    /// Reads a frame; `None` if it is no ICMP error that quotes a TCP segment.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let packet = ParsedPacket::parse(frame).ok()?;
        let (info, message) = (&packet.info, packet.payload());
        if !info.is_icmp_error || info.is_fragment {
            return None;
        }
        let quoted = message.get(HEADER_LEN..)?;
        let (source, destination, header_len) = match info.version {
            IpVersion::V4 => addresses_v4(quoted)?,
            IpVersion::V6 => addresses_v6(quoted)?,
        };
        let segment = quoted.get(header_len..)?.first_chunk::<8>()?;
        let [a, b, c, d, sequence @ ..] = *segment;
        let too_big = match info.version {
            IpVersion::V4 => (message[0], message[1]) == TOO_BIG_V4,
            IpVersion::V6 => message[0] == TOO_BIG_V6,
        };
        let mtu = u32::from_be_bytes(*message.get(4..)?.first_chunk()?);
        // The upper half is unused in IPv4.
        let mtu = if info.version == IpVersion::V4 { mtu & 0xffff } else { mtu };
        let header = u32::try_from(header_len).ok()?;
        Some(Self {
            key: ReplicatedConnectionKey {
                client: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
                service: SocketAddr::new(source, u16::from_be_bytes([a, b])),
            },
            sequence: u32::from_be_bytes(sequence),
            segment_max: too_big.then(|| mtu.checked_sub(header)).flatten(),
            at: info.transport + HEADER_LEN + header_len + 4,
            checksum_at: info.transport + 2,
        })
    }

    /// Puts another sequence number into a copy of the frame; its checksum follows.
    pub(crate) fn write(&self, frame: &mut [u8], sequence: u32) {
        let [a, b, c, d] = sequence.to_be_bytes();
        for (at, new) in [(self.at, [a, b]), (self.at + 2, [c, d])] {
            let Some(old) = word(frame, at) else { return };
            let Some(sum) = word(frame, self.checksum_at) else { return };
            let sum = checksum::update(sum, old, u16::from_be_bytes(new));
            put(frame, at, new);
            put(frame, self.checksum_at, sum.to_be_bytes());
        }
    }
}

fn addresses_v4(quoted: &[u8]) -> Option<(IpAddr, IpAddr, usize)> {
    let header = quoted.first_chunk::<{ ipv4::HEADER_LEN }>()?;
    let is_tcp = header[0] >> 4 == 4 && header[9] == tcp::PROTOCOL;
    let [.., a, b, c, d, e, f, g, h] = *header;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let (source, destination) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h));
    is_tcp.then_some((source.into(), destination.into(), header_len))
}

fn addresses_v6(quoted: &[u8]) -> Option<(IpAddr, IpAddr, usize)> {
    let header = quoted.first_chunk::<{ ipv6::HEADER_LEN }>()?;
    let is_tcp = header[0] >> 4 == 6 && header[6] == tcp::PROTOCOL;
    let source: [u8; 16] = *header.get(8..)?.first_chunk()?;
    let destination: [u8; 16] = *header.get(24..)?.first_chunk()?;
    let addresses = (Ipv6Addr::from(source).into(), Ipv6Addr::from(destination).into());
    is_tcp.then_some((addresses.0, addresses.1, ipv6::HEADER_LEN))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

fn put(bytes: &mut [u8], at: usize, value: [u8; 2]) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_wire::icmp::{IcmpErrorKind, IcmpErrorReply, write_error};
    use windtunnel_wire::{build, checksum as sums};

    fn quote(source: &str, destination: &str, router: &str) -> (Vec<u8>, IcmpQuotedSegment) {
        let packet = build::tcp(
            source.parse().unwrap(),
            destination.parse().unwrap(),
            0xffff_fff0,
            tcp::ACK,
            &[7; 1400],
        );
        let reply = IcmpErrorReply {
            kind: IcmpErrorKind::TooBig { mtu: 1300 },
            source: router.parse().unwrap(),
            mac: [2; 6],
        };
        let mut error = vec![0; 1500];
        let length = write_error(&reply, &packet, &mut error).unwrap();
        error.truncate(length);
        let quote = IcmpQuotedSegment::parse(&error).unwrap();
        (error, quote)
    }

    #[test]
    fn the_quoted_sequence_number_is_replaced_and_checksums_hold() {
        for (source, destination, router, room) in [
            ("10.1.0.80:80", "10.0.0.7:4000", "10.0.0.1", 1280),
            ("[fd01::80]:80", "[fd00::7]:4000", "fd00::1", 1260),
        ] {
            let (mut error, quote) = quote(source, destination, router);
            assert_eq!(quote.key.service, source.parse().unwrap());
            assert_eq!(quote.key.client, destination.parse().unwrap());
            assert_eq!((quote.sequence, quote.segment_max), (0xffff_fff0, Some(room)));
            quote.write(&mut error, 0x0102_0304);
            assert!(sums::verify(&error));
            assert_eq!(IcmpQuotedSegment::parse(&error).unwrap().sequence, 0x0102_0304);
        }
    }

    #[test]
    fn other_packets_are_no_errors_and_cut_ones_do_not_panic() {
        let (error, _) = quote("10.1.0.80:80", "10.0.0.7:4000", "10.0.0.1");
        for length in 0..error.len() {
            assert_eq!(IcmpQuotedSegment::parse(&error[..length]), None);
        }
        let segment = build::tcp(
            "10.1.0.80:80".parse().unwrap(),
            "10.0.0.7:4000".parse().unwrap(),
            1,
            tcp::ACK,
            b"x",
        );
        assert_eq!(IcmpQuotedSegment::parse(&segment), None);
    }
}
