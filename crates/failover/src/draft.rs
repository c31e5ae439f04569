//! Packets that leave here: headers of an earlier packet of that direction, with new numbers.

use alloc::vec::Vec;

use crate::offset::{index, low_half};
use crate::options::TcpOptions;
use crate::segment::ParsedTcpSegment;
use windtunnel_wire::ecn::EcnCodepoint;
use windtunnel_wire::packet::{IpVersion, ParsedPacket};
use windtunnel_wire::{checksum, ethernet, ipv4, ipv6, tcp, vnet};

/// Bytes of payload in a train at the most: the length fields of IPv4 have 16 bits.
pub(crate) const TRAIN_MAX: usize = 65_000;

/// Ethernet and IP header of the packets in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PacketHeaderTemplate {
    head: Vec<u8>,
    ports: [u8; 4],
}

impl PacketHeaderTemplate {
    /// From the head of a packet, and its ports.
    pub(crate) fn new(head: &[u8], source_port: u16, destination_port: u16) -> Self {
        let [[a, b], [c, d]] = [source_port, destination_port].map(u16::to_be_bytes);
        Self { head: head.to_vec(), ports: [a, b, c, d] }
    }

    /// Takes over the head of a later packet of the same direction.
    pub(crate) fn renew(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(head);
    }

    /// The same for answers: addresses and ports change places, IP options are left out.
    pub(crate) fn reversed(&self) -> Self {
        let [a, b, c, d] = self.ports;
        let mut head = self.head.clone();
        swap(&mut head, 0, 6, 6);
        match version(&head) {
            IpVersion::V4 => {
                head.truncate(ethernet::HEADER_LEN + ipv4::HEADER_LEN);
                put(&mut head, ethernet::HEADER_LEN, &[0x45]);
                swap(&mut head, ethernet::HEADER_LEN + 12, ethernet::HEADER_LEN + 16, 4);
                put(&mut head, ethernet::HEADER_LEN + 8, &[TTL]);
            }
            IpVersion::V6 => {
                head.truncate(ethernet::HEADER_LEN + ipv6::HEADER_LEN);
                put(&mut head, ethernet::HEADER_LEN + 6, &[tcp::PROTOCOL, TTL]);
                swap(&mut head, ethernet::HEADER_LEN + 8, ethernet::HEADER_LEN + 24, 16);
            }
        }
        Self { head, ports: [c, d, a, b] }
    }

    /// Bytes of memory beside the value itself.
    pub(crate) fn memory(&self) -> usize {
        self.head.capacity()
    }
}

/// What a segment is to say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SegmentDraft<'a> {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) options: TcpOptions,
    pub(crate) payload: &'a [u8],
    pub(crate) ecn: EcnCodepoint,
    /// Payload bytes of each packet, where it is a train; 0 for one packet.
    pub(crate) gso_size: u16,
}

impl SegmentDraft<'static> {
    /// The reset that answers a segment where there is no connection (RFC 9293, 3.10.7.1).
    pub(crate) fn rejection(segment: &ParsedTcpSegment<'_>) -> Self {
        if segment.has(tcp::ACK) {
            return Self { sequence: segment.acknowledgement, flags: tcp::RST, ..Self::default() };
        }
        Self {
            acknowledgement: segment.sequence.wrapping_add(low_half(segment.len())),
            flags: tcp::RST | tcp::ACK,
            ..Self::default()
        }
    }
}

impl SegmentDraft<'_> {
    /// The frame, with a partial checksum, and its header. `identification` is that of IPv4.
    pub(crate) fn write(
        &self,
        to: &PacketHeaderTemplate,
        identification: u16,
    ) -> (vnet::VirtioNetHeader, Vec<u8>) {
        let transport = to.head.len();
        let mut frame = Vec::with_capacity(transport + 60 + self.payload.len());
        frame.extend_from_slice(&to.head);
        self.write_tcp(&to.ports, &mut frame);
        let header_len = frame.len();
        frame.extend_from_slice(self.payload);
        finish_ip(&mut frame, self.ecn, identification);
        finish_tcp(&mut frame);
        let mut vnet = vnet::VirtioNetHeader {
            flags: vnet::NEEDS_CSUM,
            csum_start: u16::try_from(transport).unwrap_or(0),
            csum_offset: u16::try_from(tcp::CHECKSUM).unwrap_or(0),
            ..vnet::VirtioNetHeader::default()
        };
        if self.gso_size > 0 && self.payload.len() > usize::from(self.gso_size) {
            vnet.gso_type = match version(&frame) {
                IpVersion::V4 => vnet::GSO_TCPV4,
                IpVersion::V6 => vnet::GSO_TCPV6,
            };
            if self.flags & tcp::CWR != 0 {
                vnet.gso_type |= vnet::GSO_ECN;
            }
            vnet.gso_size = self.gso_size;
            vnet.hdr_len = u16::try_from(header_len).unwrap_or(0);
        }
        (vnet, frame)
    }

    fn write_tcp(&self, ports: &[u8; 4], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(ports);
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.acknowledgement.to_be_bytes());
        out.extend([0, self.flags]);
        out.extend(self.window.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.urgent.to_be_bytes());
        self.options.write(out);
        let words = u8::try_from((out.len() - start) / 4).unwrap_or(15);
        out[start + 12] = words << 4;
    }
}

/// Lengths, identification, congestion codepoint and the IPv4 header's checksum.
fn finish_ip(frame: &mut [u8], ecn: EcnCodepoint, identification: u16) {
    let total = frame.len() - ethernet::HEADER_LEN;
    let at = ethernet::HEADER_LEN;
    match version(frame) {
        IpVersion::V4 => {
            put(frame, at + 2, &u16::try_from(total).unwrap_or(u16::MAX).to_be_bytes());
            put(frame, at + 4, &identification.to_be_bytes());
            frame[at + 1] = frame[at + 1] & !3 | ecn.bits();
            let _ = ipv4::set_checksum(frame);
        }
        IpVersion::V6 => {
            let length = u16::try_from(total - ipv6::HEADER_LEN).unwrap_or(u16::MAX);
            put(frame, at + 4, &length.to_be_bytes());
            frame[at + 1] = frame[at + 1] & !0x30 | ecn.bits() << 4;
        }
    }
}

/// A template is of a packet that was read, so that it is read once more.
fn finish_tcp(frame: &mut [u8]) {
    let _ = ParsedPacket::parse(frame)
        .ok()
        .map(|packet| packet.info)
        .and_then(|info| checksum::write_partial(frame, &info));
}

/// A template is of a packet that has been read, so it is one or the other.
fn version(frame: &[u8]) -> IpVersion {
    match frame.get(ethernet::HEADER_LEN).map(|byte| byte >> 4) {
        Some(6) => IpVersion::V6,
        _ => IpVersion::V4,
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(at..at + value.len()) {
        field.copy_from_slice(value);
    }
}

fn swap(bytes: &mut [u8], one: usize, two: usize, length: usize) {
    for index in 0..length {
        if two + index < bytes.len() {
            bytes.swap(one + index, two + index);
        }
    }
}

/// Bytes of a piece of a train that begins at `from`: whole packets, as many as fit.
pub(crate) fn piece(length: u64, segment_max: usize, trains: bool) -> usize {
    let max = if trains { TRAIN_MAX / segment_max.max(1) * segment_max } else { segment_max };
    index(length).min(max.max(1))
}

const TTL: u8 = 64;
