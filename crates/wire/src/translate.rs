//! Other addresses and ports for IPv4 packets (RFC 3022, 4): checksums are updated, not recomputed
//! (RFC 1624), so damage stays visible.

mod quote;

use core::net::Ipv4Addr;

use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, icmp, ipv4, tcp, udp, vnet};

pub use quote::{IcmpQuotedPacket, error};

/// What is written into a packet; an end that is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointRewrite {
    /// Address, and port of TCP and UDP or identifier of an ICMP query.
    pub source: Option<(Ipv4Addr, u16)>,
    /// The same of the other end. A query has one identifier: that of the destination wins.
    pub destination: Option<(Ipv4Addr, u16)>,
}

impl EndpointRewrite {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.source.is_none() && self.destination.is_none()
    }
}

/// The identifier of an ICMP query of IPv4 or its answer (echo, timestamp), and whether it is a
/// query; `None` for other messages.
#[must_use]
pub fn query(packet: &ParsedPacket<'_>) -> Option<(u16, bool)> {
    query_in(packet.frame, &packet.info)
}

fn query_in(frame: &[u8], info: &IpPacketSummary) -> Option<(u16, bool)> {
    if info.protocol != icmp::PROTOCOL_V4 || info.is_fragment {
        return None;
    }
    let message = info.payload(frame);
    let identifier = bytes::u16_at(message, IDENTIFIER)?;
    match bytes::u8_at(message, 0)? {
        icmp::ECHO_REQUEST_V4 | TIMESTAMP => Some((identifier, true)),
        icmp::ECHO_REPLY_V4 | TIMESTAMP_REPLY => Some((identifier, false)),
        _ => None,
    }
}

/// Writes other ends into a packet of TCP, UDP or an ICMP query, or into the header of a train.
///
/// A checksum that is partial stays so (`NEEDS_CSUM`: it holds the sum of the pseudo-header); a UDP
/// datagram without one gets none. `false`, and nothing is changed, for a fragment, another
/// protocol, IPv6, or a transport header that is cut.
pub fn packet(
    frame: &mut [u8],
    info: &IpPacketSummary,
    vnet: &vnet::VirtioNetHeader,
    to: &EndpointRewrite,
) -> bool {
    if info.version != IpVersion::V4 || info.is_fragment {
        return false;
    }
    let field = match info.protocol {
        tcp::PROTOCOL => tcp::CHECKSUM,
        udp::PROTOCOL => udp::CHECKSUM,
        icmp::PROTOCOL_V4 if query_in(frame, info).is_some() => icmp::CHECKSUM,
        _ => return false,
    };
    if info.transport + least(info.protocol) > info.end {
        return false;
    }
    let partial = vnet.needs_csum() && usize::from(vnet.csum_start) == info.transport;
    let at = HeaderOffsets { ip: ethernet::HEADER_LEN, transport: info.transport };
    rewrite(frame, at, info.protocol, to)
        .and_then(|change| {
            change_checksum(frame, info.transport + field, info.protocol, partial, change)
        })
        .is_some()
}

/// How the sums of words under a checksum change: by addresses, and by ports.
#[derive(Debug, Clone, Copy, Default)]
struct ChecksumDelta {
    addresses: u32,
    ports: u32,
}

/// Where a packet's IP header and its transport header begin in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeaderOffsets {
    ip: usize,
    transport: usize,
}

/// Writes the ends into the headers of a packet, and updates the checksum of the IP header.
#[inline]
fn rewrite(
    frame: &mut [u8],
    at: HeaderOffsets,
    protocol: u8,
    to: &EndpointRewrite,
) -> Option<ChecksumDelta> {
    let HeaderOffsets { ip, transport } = at;
    let (header, rest) = frame.get_mut(ip..)?.split_first_chunk_mut()?;
    let addresses = rewrite_addresses(header, to);
    let behind = rest.get_mut(transport.checked_sub(ip + ipv4::HEADER_LEN)?..)?;
    let ports = if protocol == icmp::PROTOCOL_V4 {
        rewrite_identifier(behind.get_mut(IDENTIFIER..)?.first_chunk_mut()?, to)
    } else {
        rewrite_ports(behind.first_chunk_mut()?, to)
    };
    Some(ChecksumDelta { addresses, ports })
}

/// The addresses of an IPv4 header, and its checksum.
#[inline]
fn rewrite_addresses(header: &mut [u8; ipv4::HEADER_LEN], to: &EndpointRewrite) -> u32 {
    let [.., c0, c1, s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let mut change = 0;
    // Of one word of 32 bits, the sum of its halves changes as that of two words does.
    let mut replace = |old: [&mut u8; 4], new: Ipv4Addr| {
        let [a, b, c, d] = old;
        change += halves(!u32::from_be_bytes([*a, *b, *c, *d])) + halves(new.to_bits());
        [*a, *b, *c, *d] = new.octets();
    };
    if let Some((address, _)) = to.source {
        replace([s0, s1, s2, s3], address);
    }
    if let Some((address, _)) = to.destination {
        replace([d0, d1, d2, d3], address);
    }
    let sum = u16::from_be_bytes([*c0, *c1]);
    [*c0, *c1] = (!fold(u32::from(!sum) + change)).to_be_bytes();
    change
}

/// The ports of TCP or UDP.
#[inline]
fn rewrite_ports([a, b, c, d]: &mut [u8; 4], to: &EndpointRewrite) -> u32 {
    let source = to.source.map_or(0, |(_, port)| replace([a, b], port));
    source + to.destination.map_or(0, |(_, port)| replace([c, d], port))
}

/// The identifier of a query, which is one for both ends: that of the destination is written last.
#[inline]
fn rewrite_identifier([a, b]: &mut [u8; 2], to: &EndpointRewrite) -> u32 {
    let ends = [to.source, to.destination];
    ends.into_iter().flatten().map(|(_, identifier)| replace([a, b], identifier)).sum()
}

/// Writes a word; by how much the sum of words changes.
#[inline]
fn replace([high, low]: [&mut u8; 2], new: u16) -> u32 {
    let old = u16::from_be_bytes([*high, *low]);
    [*high, *low] = new.to_be_bytes();
    u32::from(!old) + u32::from(new)
}

/// Updates the checksum of a transport header.
fn change_checksum(
    frame: &mut [u8],
    field: usize,
    protocol: u8,
    partial: bool,
    change: ChecksumDelta,
) -> Option<()> {
    let old = bytes::u16_at(frame, field)?;
    if protocol == udp::PROTOCOL && old == 0 && !partial {
        return Some(());
    }
    let new = match (protocol, partial) {
        (icmp::PROTOCOL_V4, _) => !fold(u32::from(!old) + change.ports),
        (_, true) => fold(u32::from(old) + change.addresses),
        (_, false) => !fold(u32::from(!old) + change.addresses + change.ports),
    };
    let is_none = protocol == udp::PROTOCOL && new == 0 && !partial;
    bytes::put_u16(frame, field, if is_none { 0xffff } else { new })
}

/// The sum of the two words of 16 bits.
fn halves(word: u32) -> u32 {
    (word >> 16) + (word & 0xffff)
}

fn fold(sum: u32) -> u16 {
    let [a, b, c, d] = sum.to_be_bytes();
    checksum::add(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

/// Bytes of a transport header that have to be there.
fn least(protocol: u8) -> usize {
    match protocol {
        tcp::PROTOCOL => tcp::HEADER_LEN,
        udp::PROTOCOL => udp::HEADER_LEN,
        _ => icmp::HEADER_LEN,
    }
}

/// Offsets in an IPv4 header.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
/// Offset in an ICMP query.
const IDENTIFIER: usize = 4;
/// RFC 792: timestamp.
const TIMESTAMP: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build;
    use crate::icmp::{IcmpErrorKind, IcmpErrorReply, write_error};
    use crate::segment::{PacketTrain, write_range};

    const PLAIN: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
        flags: 0,
        gso_type: 0,
        hdr_len: 0,
        gso_size: 0,
        csum_start: 0,
        csum_offset: 0,
    };

    fn socket(text: &str) -> std::net::SocketAddr {
        text.parse().unwrap()
    }

    fn both() -> EndpointRewrite {
        EndpointRewrite {
            source: Some(([198, 51, 100, 1].into(), 40_000)),
            destination: Some(([203, 0, 113, 255].into(), 65_535)),
        }
    }

    #[test]
    fn a_translated_packet_is_the_one_that_its_new_ends_would_have_sent() {
        let (a, b) = (socket("10.0.0.1:5000"), socket("10.0.0.2:80"));
        let (c, d) = (socket("198.51.100.1:40000"), socket("203.0.113.255:65535"));
        for payload in [&b""[..], b"x", b"hello", &[0xff; 99]] {
            let mut tcp = build::tcp(a, b, 7, 0x18, payload);
            let info = ParsedPacket::parse(&tcp).unwrap().info;
            assert!(packet(&mut tcp, &info, &PLAIN, &both()));
            assert_eq!(tcp, build::tcp(c, d, 7, 0x18, payload));
            let mut udp = build::udp(a, b, payload);
            let info = ParsedPacket::parse(&udp).unwrap().info;
            assert!(packet(&mut udp, &info, &PLAIN, &both()));
            assert_eq!(udp, build::udp(c, d, payload));
        }
    }

    #[test]
    fn each_end_alone_leaves_a_good_checksum_for_every_port() {
        let frame = build::udp(socket("10.0.0.1:5000"), socket("10.0.0.2:80"), b"payload");
        let info = ParsedPacket::parse(&frame).unwrap().info;
        for port in 0..=u16::MAX {
            let mut changed = frame.clone();
            let source = Some(([198, 51, 100, 1].into(), port));
            assert!(packet(
                &mut changed,
                &info,
                &PLAIN,
                &EndpointRewrite { source, destination: None }
            ));
            assert!(checksum::verify(&changed), "port {port}");
            // 0 would mean that there is none (RFC 768).
            assert_ne!(changed[40..42], [0, 0], "port {port}");
        }
    }

    #[test]
    fn a_datagram_without_a_checksum_stays_without() {
        let mut frame = build::udp(socket("10.0.0.1:5000"), socket("10.0.0.2:80"), b"hi");
        frame[40..42].fill(0);
        let info = ParsedPacket::parse(&frame).unwrap().info;
        assert!(packet(&mut frame, &info, &PLAIN, &both()));
        assert_eq!(frame[40..42], [0, 0]);
        assert!(checksum::verify(&frame));
    }

    #[test]
    fn trains_and_partial_checksums_are_completed_to_those_of_the_new_ends() {
        let (a, b) = (socket("10.0.0.1:5000"), socket("10.0.0.2:80"));
        let (c, d) = (socket("198.51.100.1:40000"), socket("203.0.113.255:65535"));
        let tcp = |from, to| build::tcp_train(from, to, 7, 0x10, &[3; 4000], 1460);
        let udp = |from, to| build::udp_train(from, to, &[3; 4000], 1200);
        for [(mut frame, header), (expected, _)] in [[tcp(a, b), tcp(c, d)], [udp(a, b), udp(c, d)]]
        {
            let info = ParsedPacket::parse(&frame).unwrap().info;
            assert!(packet(&mut frame, &info, &header, &both()));
            assert_eq!(frame, expected);
            for index in 0..PacketTrain::new(&frame, &header).count {
                let mut one = vec![0; frame.len()];
                let (len, mut of_one) =
                    write_range(&frame, &header, index..index + 1, &mut one).unwrap();
                assert!(checksum::complete(&mut one[..len], &mut of_one));
                assert!(checksum::verify(&one[..len]), "segment {index}");
            }
        }
    }

    #[test]
    fn a_query_gets_another_identifier_and_its_sequence_stays() {
        let [a, b] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let mut frame = build::echo_request(a, b, 77, 3, b"abc");
        let asked = ParsedPacket::parse(&frame).unwrap();
        assert_eq!(query(&asked), Some((77, true)));
        let info = asked.info;
        let source = Some(([198, 51, 100, 1].into(), 40_000));
        assert!(packet(&mut frame, &info, &PLAIN, &EndpointRewrite { source, destination: None }));
        assert_eq!(frame, build::echo_request([198, 51, 100, 1].into(), b, 40_000, 3, b"abc"));
    }

    #[test]
    fn what_cannot_be_translated_stays_as_it_is() {
        let [a, b] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let six = build::udp(socket("[fd00::1]:1"), socket("[fd00::2]:2"), b"x");
        let cut = build::ip(a, b, 6, &[0; 12]);
        for frame in [build::ip(a, b, 132, &[0; 40]), six, cut] {
            let mut changed = frame.clone();
            let info = ParsedPacket::parse(&frame).unwrap().info;
            assert!(!packet(&mut changed, &info, &PLAIN, &both()));
            assert_eq!(changed, frame);
        }
    }

    #[test]
    fn an_error_and_what_it_quotes_are_translated_together() {
        let (inside, outside) = (socket("10.0.0.1:5000"), socket("203.0.113.5:80"));
        let external = socket("198.51.100.1:40000");
        for make in [build::udp as fn(_, _, &[u8]) -> Vec<u8>, |from, to, payload| {
            build::tcp(from, to, 1, 0x10, payload)
        }] {
            let reply = IcmpErrorReply {
                kind: IcmpErrorKind::TooBig { mtu: 1400 },
                source: [203, 0, 113, 9].into(),
                mac: [2; 6],
            };
            let mut message = [0; 1294];
            let length = write_error(&reply, &make(external, outside, &[1; 60]), &mut message);
            let message = &mut message[..length.unwrap()];
            let read = ParsedPacket::parse(message).unwrap();
            let (info, quoted) = (read.info, IcmpQuotedPacket::of(&read).unwrap());
            assert_eq!(
                (quoted.source, quoted.destination),
                (([198, 51, 100, 1].into(), 40_000), ([203, 0, 113, 5].into(), 80))
            );
            let back = Some(([10, 0, 0, 1].into(), 5000));
            let outer = EndpointRewrite { source: None, destination: back };
            assert!(error(
                message,
                &info,
                &outer,
                &EndpointRewrite { source: back, destination: None }
            ));
            let mut expected = [0; 1294];
            let length = write_error(&reply, &make(inside, outside, &[1; 60]), &mut expected);
            assert_eq!(*message, expected[..length.unwrap()]);
        }
    }

    #[test]
    fn an_error_with_a_wrong_checksum_or_a_cut_quote_is_not_translated() {
        let about = build::udp(socket("198.51.100.1:4"), socket("203.0.113.5:80"), b"x");
        let reply = IcmpErrorReply {
            kind: IcmpErrorKind::TimeExceeded,
            source: [203, 0, 113, 9].into(),
            mac: [2; 6],
        };
        let mut message = [0; 1294];
        let length = write_error(&reply, &about, &mut message).unwrap();
        let info = ParsedPacket::parse(&message[..length]).unwrap().info;
        message[length - 1] ^= 1;
        assert!(!error(&mut message[..length], &info, &both(), &both()));
        let cut = build::ip([1, 1, 1, 1].into(), [2, 2, 2, 2].into(), 1, &message[34..60]);
        assert_eq!(IcmpQuotedPacket::of(&ParsedPacket::parse(&cut).unwrap()), None);
    }
}
