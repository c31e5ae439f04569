//! What a redirector reads of a packet.

use core::net::IpAddr;

use windtunnel_wire::icmp::IcmpQuotedFlow;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{tcp, udp};

use crate::records::mapped;

/// A packet to a service's address: whose it is, and of which flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServicePacketHeader {
    /// The service's address, port and protocol.
    pub(super) address: u128,
    pub(super) port: u16,
    pub(super) protocol: u8,
    /// The client's address and port.
    pub(super) client: u128,
    pub(super) client_port: u16,
    pub(super) kind: CallKind,
}

/// What a packet does to its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// A datagram, or a part of something that says no more.
    Plain,
    /// A TCP segment.
    Segment { flags: u8, sequence: u32, acknowledgement: u32 },
    /// An ICMP error about something that the service sent to the client.
    Error,
}

/// What fragments of one datagram have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramKey {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) identification: u32,
    pub(super) protocol: u8,
}

impl DatagramKey {
    /// That of a fragment.
    pub(crate) fn of(packet: &ParsedPacket<'_>) -> Option<DatagramKey> {
        let info = &packet.info;
        Some(DatagramKey {
            source: mapped(info.source),
            destination: mapped(info.destination),
            identification: packet.fragment_identification()?,
            protocol: info.protocol,
        })
    }
}

/// What can be read of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServicePacketKind {
    Call(ServicePacketHeader),
    /// The first fragment of a datagram.
    First(DatagramKey, ServicePacketHeader),
    /// Another one, which has no ports.
    Later(DatagramKey),
    /// Nothing that is redirected.
    Nothing,
}

impl ServicePacketKind {
    pub(super) fn of(packet: &ParsedPacket<'_>) -> ServicePacketKind {
        let info = &packet.info;
        if info.is_later_fragment {
            return DatagramKey::of(packet)
                .map_or(ServicePacketKind::Nothing, ServicePacketKind::Later);
        }
        if info.is_icmp_error {
            return error(packet).map_or(ServicePacketKind::Nothing, ServicePacketKind::Call);
        }
        let Some(call) = call(packet) else { return ServicePacketKind::Nothing };
        match info.is_fragment.then(|| DatagramKey::of(packet)) {
            None => ServicePacketKind::Call(call),
            Some(Some(whole)) => ServicePacketKind::First(whole, call),
            Some(None) => ServicePacketKind::Nothing,
        }
    }
}

impl ServicePacketHeader {
    /// The same flow, of which no more is known.
    pub(super) fn plain(&self) -> ServicePacketHeader {
        ServicePacketHeader { kind: CallKind::Plain, ..*self }
    }

    pub(super) fn flags(&self) -> u8 {
        match self.kind {
            CallKind::Segment { flags, .. } => flags,
            CallKind::Plain | CallKind::Error => 0,
        }
    }

    /// Whether it asks for a new connection.
    pub(super) fn opens(&self) -> bool {
        self.flags() & (tcp::SYN | tcp::ACK | tcp::RST) == tcp::SYN
    }
}

fn call(packet: &ParsedPacket<'_>) -> Option<ServicePacketHeader> {
    let (info, payload) = (&packet.info, packet.payload());
    let head = payload.first_chunk::<4>()?;
    let [source, destination] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_be_bytes);
    let kind = match info.protocol {
        tcp::PROTOCOL => {
            let view = payload.first_chunk::<{ tcp::HEADER_LEN }>()?;
            let word = |at: usize| {
                u32::from_be_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]])
            };
            CallKind::Segment { flags: view[13], sequence: word(4), acknowledgement: word(8) }
        }
        udp::PROTOCOL => CallKind::Plain,
        _ => return None,
    };
    Some(ServicePacketHeader {
        address: mapped(info.destination),
        port: destination,
        protocol: info.protocol,
        client: mapped(info.source),
        client_port: source,
        kind,
    })
}

/// An error says what it is about in the direction of that.
fn error(packet: &ParsedPacket<'_>) -> Option<ServicePacketHeader> {
    let quote = IcmpQuotedFlow::of(packet)?;
    let (port, client_port) = quote.ports;
    (quote.source == packet.info.destination).then(|| ServicePacketHeader {
        address: mapped(quote.source),
        port,
        protocol: quote.protocol,
        client: mapped(quote.destination),
        client_port,
        kind: CallKind::Error,
    })
}

/// An address as it was before it was mapped.
pub(crate) fn unmapped(address: u128) -> IpAddr {
    core::net::Ipv6Addr::from_bits(address).to_canonical()
}
