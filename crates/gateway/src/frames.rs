//! Frames in the name of addresses outside; their checksums are complete.

use std::net::{IpAddr, SocketAddr};

use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{checksum, ethernet, fragment, icmp, ipv4, ipv6, udp, vnet};

/// The addresses of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressPair {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
}

/// What an echo reply repeats of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoNumbers {
    pub(crate) identifier: u16,
    pub(crate) sequence: u16,
}

/// How a packet is cut that is longer than an MTU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragmentation {
    pub(crate) mtu: u32,
    /// Separates fragments of packets from one another.
    pub(crate) identification: u32,
}

impl Fragmentation {
    /// No packet is too long.
    pub(crate) const NONE: Fragmentation = Fragmentation { mtu: u32::MAX, identification: 0 };
}

/// The frames of a datagram: one, or fragments where it is longer than the MTU; none where the
/// addresses are of two families or it is too long for IP.
pub(crate) fn datagram(
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    fragmentation: Fragmentation,
) -> Vec<Vec<u8>> {
    let Ok(length) = u16::try_from(udp::HEADER_LEN + payload.len()) else { return Vec::new() };
    let mut transport = Vec::with_capacity(usize::from(length));
    transport.extend(source.port().to_be_bytes());
    transport.extend(destination.port().to_be_bytes());
    transport.extend(length.to_be_bytes());
    transport.extend([0; 2]);
    transport.extend(payload);
    let addresses = AddressPair { source: source.ip(), destination: destination.ip() };
    whole(addresses, udp::PROTOCOL, &transport, fragmentation)
}

/// The frames of an echo reply, in the same way.
pub(crate) fn echo_reply(
    addresses: AddressPair,
    numbers: EchoNumbers,
    payload: &[u8],
    fragmentation: Fragmentation,
) -> Vec<Vec<u8>> {
    let kind = if addresses.source.is_ipv4() { ECHO_REPLY_V4 } else { ECHO_REPLY_V6 };
    echo(addresses, kind, numbers, payload, fragmentation)
}

/// The packet that an echo request was, for quoting it in an ICMP error.
pub(crate) fn quoted_echo(
    addresses: AddressPair,
    numbers: EchoNumbers,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let v4 = addresses.source.is_ipv4();
    let kind = if v4 { icmp::ECHO_REQUEST_V4 } else { icmp::ECHO_REQUEST_V6 };
    echo(addresses, kind, numbers, payload, Fragmentation::NONE).into_iter().next()
}

fn echo(
    addresses: AddressPair,
    kind: u8,
    numbers: EchoNumbers,
    payload: &[u8],
    fragmentation: Fragmentation,
) -> Vec<Vec<u8>> {
    let protocol = match addresses.source {
        IpAddr::V4(_) => icmp::PROTOCOL_V4,
        IpAddr::V6(_) => icmp::PROTOCOL_V6,
    };
    let mut message = vec![kind, 0, 0, 0];
    message.extend(numbers.identifier.to_be_bytes());
    message.extend(numbers.sequence.to_be_bytes());
    message.extend(payload);
    whole(addresses, protocol, &message, fragmentation)
}

/// The packet that a datagram was, for quoting it in an ICMP error: whatever its checksum was.
pub(crate) fn quoted(
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
) -> Option<Vec<u8>> {
    datagram(source, destination, payload, Fragmentation::NONE).into_iter().next()
}

/// The whole packet with its checksums, cut where it is longer than the MTU.
fn whole(
    addresses: AddressPair,
    protocol: u8,
    transport: &[u8],
    fragmentation: Fragmentation,
) -> Vec<Vec<u8>> {
    let AddressPair { source, destination } = addresses;
    let Fragmentation { mtu, identification } = fragmentation;
    let frame = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let addresses = [source.octets(), destination.octets()].concat();
            let [_, _, high, low] = identification.to_be_bytes();
            v4(protocol, transport, &addresses, [high, low])
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let addresses = [source.octets(), destination.octets()].concat();
            v6(protocol, transport, &addresses)
        }
        _ => None,
    };
    let Some(frame) = frame.and_then(complete) else { return Vec::new() };
    if frame.len() - ethernet::HEADER_LEN <= usize::try_from(mtu).unwrap_or(usize::MAX) {
        return vec![frame];
    }
    match source {
        IpAddr::V4(_) => cut_v4(&frame, mtu),
        IpAddr::V6(_) => cut_v6(&frame, mtu, identification),
    }
}

fn v4(protocol: u8, transport: &[u8], addresses: &[u8], id: [u8; 2]) -> Option<Vec<u8>> {
    let total = u16::try_from(ipv4::HEADER_LEN + transport.len()).ok()?;
    let mut frame = vec![0; 12];
    frame.extend(ethernet::IPV4.to_be_bytes());
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([id[0], id[1], 0, 0, TTL, protocol, 0, 0]);
    frame.extend(addresses);
    frame.extend(transport);
    ipv4::set_checksum(&mut frame)?;
    Some(frame)
}

fn v6(protocol: u8, transport: &[u8], addresses: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(transport.len()).ok()?;
    let mut frame = vec![0; 12];
    frame.extend(ethernet::IPV6.to_be_bytes());
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([protocol, TTL]);
    frame.extend(addresses);
    frame.extend(transport);
    Some(frame)
}

/// Computes the transport's checksum.
fn complete(mut frame: Vec<u8>) -> Option<Vec<u8>> {
    let info = ParsedPacket::parse(&frame).ok()?.info;
    checksum::write_partial(&mut frame, &info)?;
    let offset = if info.protocol == udp::PROTOCOL { UDP_CHECKSUM } else { ICMP_CHECKSUM };
    let mut header = vnet::VirtioNetHeader {
        flags: vnet::NEEDS_CSUM,
        csum_start: u16::try_from(info.transport).ok()?,
        csum_offset: offset,
        ..vnet::VirtioNetHeader::default()
    };
    checksum::complete(&mut frame, &mut header).then_some(frame)
}

fn cut_v4(frame: &[u8], mtu: u32) -> Vec<Vec<u8>> {
    let count = fragment::count(frame, mtu).unwrap_or(0);
    let piece = |index| {
        let mut out = vec![0; ethernet::HEADER_LEN + usize::try_from(mtu).ok()?];
        let length = fragment::write(frame, mtu, index, &mut out)?;
        out.truncate(length);
        Some(out)
    };
    (0..count).filter_map(piece).collect()
}

/// Fragments of an IPv6 packet without extension headers (RFC 8200, 4.5).
fn cut_v6(frame: &[u8], mtu: u32, identification: u32) -> Vec<Vec<u8>> {
    let start = ethernet::HEADER_LEN + ipv6::HEADER_LEN;
    let room =
        usize::try_from(mtu).unwrap_or(0).saturating_sub(ipv6::HEADER_LEN + FRAGMENT_LEN) & !7;
    let (Some(header), Some(payload)) = (frame.get(..start), frame.get(start..)) else {
        return Vec::new();
    };
    if room == 0 {
        return Vec::new();
    }
    let protocol = header[NEXT_HEADER];
    let pieces = payload.chunks(room).enumerate().map(|(index, part)| {
        let offset = index * room;
        let more = offset + part.len() < payload.len();
        let word = u16::try_from(offset).unwrap_or(u16::MAX) & !7 | u16::from(more);
        let length = u16::try_from(FRAGMENT_LEN + part.len()).unwrap_or(u16::MAX);
        let mut out = header.to_vec();
        out[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 2].copy_from_slice(&length.to_be_bytes());
        out[NEXT_HEADER] = FRAGMENT_HEADER;
        out.extend([protocol, 0]);
        out.extend(word.to_be_bytes());
        out.extend(identification.to_be_bytes());
        out.extend(part);
        out
    });
    pieces.collect()
}

/// Of RFC 1700, as Linux has it.
const TTL: u8 = 64;
const UDP_CHECKSUM: u16 = 6;
const ICMP_CHECKSUM: u16 = 2;
/// RFC 792 and RFC 4443, 4.2.
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;
/// RFC 8200, 4.5: the header's number and its length.
pub(crate) const FRAGMENT_HEADER: u8 = 44;
pub(crate) const FRAGMENT_LEN: usize = 8;
/// Frame offsets of IPv6's payload length and next header.
const PAYLOAD_LENGTH: usize = ethernet::HEADER_LEN + 4;
const NEXT_HEADER: usize = ethernet::HEADER_LEN + 6;

#[cfg(test)]
mod tests {
    use windtunnel_wire::packet::ParsedPacket;

    use super::*;

    fn cut(mtu: u32, identification: u32) -> Fragmentation {
        Fragmentation { mtu, identification }
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_datagram_is_what_its_sender_would_have_sent() {
        for (from, to) in
            [("192.0.2.1:53", "10.0.0.1:4000"), ("[2001:db8::1]:53", "[fd00::1]:4000")]
        {
            let frames = datagram(at(from), at(to), b"answer", cut(1500, 1));
            assert_eq!(frames.len(), 1);
            let packet = ParsedPacket::parse(&frames[0]).unwrap();
            let info = packet.info;
            assert_eq!((info.source, info.destination), (at(from).ip(), at(to).ip()));
            assert_eq!(packet.ports(), Some((53, 4000)));
            assert_eq!(&packet.payload()[udp::HEADER_LEN..], b"answer");
            assert!(checksum::verify(&frames[0]));
        }
    }

    #[test]
    fn an_echo_reply_has_identifier_sequence_and_payload_of_its_request() {
        for (from, to) in [("192.0.2.1", "10.0.0.1"), ("2001:db8::1", "fd00::1")] {
            let (source, destination) = (from.parse().unwrap(), to.parse().unwrap());
            let addresses = AddressPair { source, destination };
            let numbers = EchoNumbers { identifier: 7, sequence: 8 };
            let frames = echo_reply(addresses, numbers, b"abc", cut(1500, 1));
            let packet = ParsedPacket::parse(&frames[0]).unwrap();
            let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
            assert_eq!((view.identifier(), view.sequence(), view.body()), (7, 8, &b"abc"[..]));
            assert!(checksum::verify(&frames[0]));
        }
    }

    #[test]
    fn a_long_datagram_is_cut_into_fragments_that_hold_all_of_it() {
        let payload: Vec<u8> = (0..4000_u32).map(|i| i.to_le_bytes()[0]).collect();
        // 8 bytes of UDP and 4000 of payload: of IPv4, 1480 bytes fit each of 1500; of IPv6, 1448,
        // as 1500 - 40 - 8 = 1452 is rounded down to a multiple of 8.
        for (from, to, lengths) in [
            ("192.0.2.1:53", "10.0.0.1:4000", [1500, 1500, 1068]),
            ("[2001:db8::1]:53", "[fd00::1]:4000", [1496, 1496, 1160]),
        ] {
            let frames = datagram(at(from), at(to), &payload, cut(1500, 77));
            let found: Vec<usize> = frames.iter().map(|frame| frame.len() - 14).collect();
            assert_eq!(found, lengths, "{from}");
            assert!(
                frames.iter().all(|frame| ParsedPacket::parse(frame).unwrap().info.is_fragment)
            );
        }
        let longest = vec![0; 65_508];
        let frames = datagram(at("1.2.3.4:1"), at("1.2.3.5:2"), &longest, cut(1500, 1));
        assert_eq!(frames, [[0; 0]; 0]);
    }
}
