//! What a frame says of its flow, read once when it enters the network.

use core::net::IpAddr;

use windtunnel_model::record::flag;
use windtunnel_wire::flow::FiveTuple;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{ecn, ethernet, tcp, udp};

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MappedSocket {
    /// IPv4 as `::ffff:a.b.c.d`.
    pub(crate) address: u128,
    /// 0 where there is none.
    pub(crate) port: u16,
}

impl MappedSocket {
    pub(crate) fn without_port(self) -> Self {
        MappedSocket { port: 0, ..self }
    }
}

/// What is known of a packet by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowHeaderFields {
    pub(crate) protocol: u8,
    pub(crate) from: MappedSocket,
    pub(crate) to: MappedSocket,
    /// Bytes of the IP packet in front of the payload.
    pub(crate) header: u16,
    /// SYN, FIN, RST, ACK and MARKED, as in records.
    pub(crate) flags: u8,
    /// Of TCP.
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    /// Of a fragment: what it shares with the others, and whether it is the first.
    pub(crate) fragment: Option<(u32, bool)>,
}

impl FlowHeaderFields {
    /// Looks at a frame; `None`: it is no IP packet.
    #[inline]
    pub(crate) fn of(frame: &[u8]) -> Option<FlowHeaderFields> {
        FlowHeaderFields::plain(frame).or_else(|| FlowHeaderFields::any(frame))
    }

    /// TCP and UDP over IPv4 without options, not fragmented: most of what there is.
    #[inline]
    fn plain(frame: &[u8]) -> Option<FlowHeaderFields> {
        let head = frame.first_chunk::<{ TRANSPORT + 8 }>()?;
        let is_plain = head[12..15] == [0x08, 0x00, 0x45] && head[20] & 0x3f == 0 && head[21] == 0;
        let protocol = head[23];
        if !is_plain || !(protocol == tcp::PROTOCOL || protocol == udp::PROTOCOL) {
            return None;
        }
        let address = |at: usize| {
            let v4 = u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            MAPPED | u128::from(v4)
        };
        let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let marked = if head[15] & 3 == 3 { flag::MARKED } else { 0 };
        let mut sight = FlowHeaderFields {
            protocol,
            from: MappedSocket { address: address(26), port: port(TRANSPORT) },
            to: MappedSocket { address: address(30), port: port(TRANSPORT + 2) },
            header: 28,
            flags: marked,
            sequence: 0,
            acknowledgement: 0,
            fragment: None,
        };
        if protocol == tcp::PROTOCOL {
            let view = frame.get(TRANSPORT..)?.first_chunk::<{ tcp::HEADER_LEN }>()?;
            sight.read_tcp(view, 20);
        }
        Some(sight)
    }

    /// Anything else.
    fn any(frame: &[u8]) -> Option<FlowHeaderFields> {
        let packet = ParsedPacket::parse(frame).ok()?;
        let (info, key) = (&packet.info, FiveTuple::of(&packet));
        let ip_header = info.transport - ethernet::HEADER_LEN;
        let mut sight = FlowHeaderFields {
            protocol: key.protocol,
            from: MappedSocket { address: mapped(key.source), port: key.source_port },
            to: MappedSocket { address: mapped(key.destination), port: key.destination_port },
            header: u16::try_from(ip_header).unwrap_or(u16::MAX),
            flags: if info.ecn == ecn::EcnCodepoint::Ce { flag::MARKED } else { 0 },
            sequence: 0,
            acknowledgement: 0,
            fragment: None,
        };
        let payload = packet.payload();
        if info.is_fragment {
            sight.fragment = Some((packet.fragment_identification()?, !info.is_later_fragment));
        }
        if info.is_later_fragment {
            return Some(sight);
        }
        match info.protocol {
            tcp::PROTOCOL => {
                if let Some(view) = payload.first_chunk::<{ tcp::HEADER_LEN }>() {
                    sight.read_ports(payload);
                    sight.read_tcp(view, ip_header);
                }
            }
            udp::PROTOCOL if payload.len() >= udp::HEADER_LEN => {
                sight.read_ports(payload);
                sight.header = sight.header.saturating_add(8);
            }
            _ => {}
        }
        Some(sight)
    }

    /// The first fragment has the ports of its datagram.
    fn read_ports(&mut self, payload: &[u8]) {
        self.from.port = u16_at(payload, 0).unwrap_or(0);
        self.to.port = u16_at(payload, 2).unwrap_or(0);
    }

    #[inline]
    fn read_tcp(&mut self, view: &[u8; tcp::HEADER_LEN], ip_header: usize) {
        let header = ip_header + usize::from(view[12] >> 4) * 4;
        self.header = u16::try_from(header).unwrap_or(u16::MAX);
        self.sequence = u32::from_be_bytes([view[4], view[5], view[6], view[7]]);
        self.acknowledgement = u32::from_be_bytes([view[8], view[9], view[10], view[11]]);
        let bits = view[13];
        let pairs = [
            (tcp::SYN, flag::SYN),
            (tcp::FIN, flag::FIN),
            (tcp::RST, flag::RST),
            (tcp::ACK, flag::ACK),
        ];
        for (bit, flag) in pairs {
            self.flags |= if bits & bit == 0 { 0 } else { flag };
        }
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Whether a frame changes what is known of flows: all but the TCP segments between the first and
/// the last.
#[inline]
pub(crate) fn is_worth_watching(frame: &[u8]) -> bool {
    match frame.first_chunk::<{ TRANSPORT + 14 }>() {
        Some(head) if head[12..15] == [0x08, 0x00, 0x45] && head[23] == tcp::PROTOCOL => {
            let fragment = head[20] & 0x3f != 0 || head[21] != 0;
            fragment || head[TRANSPORT + 13] & (tcp::SYN | tcp::FIN | tcp::RST) != 0
        }
        _ => true,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

pub(crate) fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => MAPPED | u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

const MAPPED: u128 = 0xffff_0000_0000;
/// Offset of the transport header behind an IPv4 header without options.
const TRANSPORT: usize = ethernet::HEADER_LEN + 20;
