//! Frames for tests (feature `build`): small builders that allocate and panic on nonsense.
//!
//! All frames have complete checksums unless said otherwise, TTL 64, and the Ethernet addresses
//! [`SOURCE_MAC`] and [`DESTINATION_MAC`].

use std::net::{IpAddr, SocketAddr};

use crate::packet::ParsedPacket;
use crate::{bytes, checksum, ethernet, icmp, ipv4, tcp, udp, vnet};

/// The sender's Ethernet address.
pub const SOURCE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The receiver's Ethernet address.
pub const DESTINATION_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// An IP packet around a transport header and payload, whose checksum is filled in if known.
///
/// # Panics
/// When the addresses are of two families, or the packet exceeds its length field.
#[must_use]
pub fn ip(source: IpAddr, destination: IpAddr, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = [DESTINATION_MAC, SOURCE_MAC].concat();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend(ethernet::IPV4.to_be_bytes());
            frame.extend([0x45, 0]);
            frame.extend(length(ipv4::HEADER_LEN + transport.len()));
            frame.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend(ethernet::IPV6.to_be_bytes());
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(length(transport.len()));
            frame.extend([protocol, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => panic!("addresses {source} and {destination} are of two families"),
    }
    frame.extend(transport);
    refresh(&mut frame);
    frame
}

/// A TCP segment with acknowledgement number 1 and window 1000.
#[must_use]
pub fn tcp(
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = ports(source, destination);
    segment.extend(sequence.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0x50, flags, 0x03, 0xe8, 0, 0, 0, 0]);
    segment.extend(payload);
    ip(source.ip(), destination.ip(), tcp::PROTOCOL, &segment)
}

/// A UDP datagram.
#[must_use]
pub fn udp(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut datagram = ports(source, destination);
    datagram.extend(length(udp::HEADER_LEN + payload.len()));
    datagram.extend([0, 0]);
    datagram.extend(payload);
    ip(source.ip(), destination.ip(), udp::PROTOCOL, &datagram)
}

/// An echo request of the addresses' version.
#[must_use]
pub fn echo_request(
    source: IpAddr,
    destination: IpAddr,
    identifier: u16,
    sequence: u16,
    payload: &[u8],
) -> Vec<u8> {
    let (protocol, kind) = match source {
        IpAddr::V4(_) => (icmp::PROTOCOL_V4, icmp::ECHO_REQUEST_V4),
        IpAddr::V6(_) => (icmp::PROTOCOL_V6, icmp::ECHO_REQUEST_V6),
    };
    let mut message = vec![kind, 0, 0, 0];
    message.extend(identifier.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(payload);
    ip(source, destination, protocol, &message)
}

/// A TCP train as the kernel hands it over: partial checksum, segments of `gso_size` bytes.
#[must_use]
pub fn tcp_train(
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    flags: u8,
    payload: &[u8],
    gso_size: u16,
) -> (Vec<u8>, vnet::VirtioNetHeader) {
    let kind = if source.is_ipv4() { vnet::GSO_TCPV4 } else { vnet::GSO_TCPV6 };
    train(tcp(source, destination, sequence, flags, payload), kind, gso_size)
}

/// A train of UDP datagrams as the kernel hands it over.
#[must_use]
pub fn udp_train(
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
    gso_size: u16,
) -> (Vec<u8>, vnet::VirtioNetHeader) {
    train(udp(source, destination, payload), vnet::GSO_UDP_L4, gso_size)
}

/// Makes the checksum of a TCP or UDP frame partial, as a sender's kernel leaves it.
///
/// # Panics
/// When the frame holds neither.
#[must_use]
pub fn partial(mut frame: Vec<u8>) -> (Vec<u8>, vnet::VirtioNetHeader) {
    let info = ParsedPacket::parse(&frame).expect("the builder's caller gives a whole packet").info;
    checksum::write_partial(&mut frame, &info).expect("a checksummed protocol");
    let offset = if info.protocol == tcp::PROTOCOL { tcp::CHECKSUM } else { udp::CHECKSUM };
    let header = vnet::VirtioNetHeader {
        flags: vnet::NEEDS_CSUM,
        csum_start: short(info.transport),
        csum_offset: short(offset),
        ..vnet::VirtioNetHeader::default()
    };
    (frame, header)
}

/// Sets the TTL or hop limit.
#[must_use]
pub fn with_ttl(mut frame: Vec<u8>, ttl: u8) -> Vec<u8> {
    let v4 = ParsedPacket::parse(&frame).is_ok_and(|packet| packet.info.source.is_ipv4());
    frame[if v4 { 22 } else { 21 }] = ttl;
    refresh(&mut frame);
    frame
}

/// Sets the two ECN bits.
#[must_use]
pub fn with_ecn(mut frame: Vec<u8>, bits: u8) -> Vec<u8> {
    if ParsedPacket::parse(&frame).is_ok_and(|packet| packet.info.source.is_ipv4()) {
        frame[15] = frame[15] & !3 | bits;
    } else {
        frame[15] = frame[15] & !0x30 | bits << 4;
    }
    refresh(&mut frame);
    frame
}

/// Sets DF of an IPv4 packet.
#[must_use]
pub fn with_dont_fragment(mut frame: Vec<u8>) -> Vec<u8> {
    frame[20] |= 0x40;
    refresh(&mut frame);
    frame
}

/// Puts an extension header (its first byte is replaced) before the first header of an IPv6 packet.
#[must_use]
pub fn with_extension(mut frame: Vec<u8>, number: u8, header: &[u8]) -> Vec<u8> {
    let next = core::mem::replace(&mut frame[20], number);
    frame.splice(54..54, [&[next], &header[1..]].concat());
    let payload = length(frame.len() - 54);
    frame[18..20].copy_from_slice(&payload);
    frame
}

/// Recomputes all checksums of a frame.
pub(crate) fn refresh(frame: &mut [u8]) {
    if let Ok(ParsedPacket { info, .. }) = ParsedPacket::parse(frame) {
        if info.source.is_ipv4() {
            ipv4::set_checksum(frame);
        }
        checksum::fill(frame, &info);
    }
}

fn train(frame: Vec<u8>, gso_type: u8, gso_size: u16) -> (Vec<u8>, vnet::VirtioNetHeader) {
    let (frame, mut header) = partial(frame);
    header.gso_type = gso_type;
    header.gso_size = gso_size;
    header.hdr_len = header.csum_start
        + if gso_type == vnet::GSO_UDP_L4 {
            short(udp::HEADER_LEN)
        } else {
            short(tcp::HEADER_LEN)
        };
    (frame, header)
}

fn ports(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat()
}

fn length(length: usize) -> [u8; 2] {
    short(length).to_be_bytes()
}

fn short(length: usize) -> u16 {
    bytes::len16(length).expect("a packet fits its 16-bit length field")
}
