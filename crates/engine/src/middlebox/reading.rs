//! What a middlebox reads of a packet.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use windtunnel_model::plan::IpTransport;
use windtunnel_model::{Span, Time};
use windtunnel_nat::PacketFiveTuple;
use windtunnel_wire::packet::{IpVersion, ParsedPacket};
use windtunnel_wire::translate::{self, IcmpQuotedPacket};
use windtunnel_wire::{icmp, tcp};

use super::PacketRewrite;
use crate::services::DatagramKey;

/// What a packet is to a middlebox.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MiddleboxPacketKind {
    /// Of TCP or UDP: source and destination port.
    Segment { transport: IpTransport, ports: [u16; 2], flags: u8 },
    /// An ICMP query of IPv4.
    Query { identifier: u16 },
    /// The answer to one.
    Answer { identifier: u16 },
    /// An ICMP error of IPv4, with what it quotes if that can be read.
    Error(Option<IcmpQuotedPacket>),
    /// Anything else.
    Other,
}

impl MiddleboxPacketKind {
    #[inline]
    pub(crate) fn of(packet: &ParsedPacket<'_>) -> MiddleboxPacketKind {
        let info = &packet.info;
        if let Some((source, destination)) = packet.ports()
            && let Some(transport) = IpTransport::of_number(info.protocol)
        {
            let flags = match transport {
                IpTransport::Tcp => packet.payload().get(FLAGS).copied().unwrap_or(0),
                IpTransport::Udp | IpTransport::Icmp => 0,
            };
            return MiddleboxPacketKind::Segment { transport, ports: [source, destination], flags };
        }
        if info.version == IpVersion::V4 && info.is_icmp_error {
            return MiddleboxPacketKind::Error(IcmpQuotedPacket::of(packet));
        }
        match translate::query(packet) {
            Some((identifier, true)) => MiddleboxPacketKind::Query { identifier },
            Some((identifier, false)) => MiddleboxPacketKind::Answer { identifier },
            None => MiddleboxPacketKind::Other,
        }
    }
}

/// The ends of a packet as they are inside: its destination is translated, its source is not yet.
pub(super) fn ends(
    changes: &PacketRewrite,
    packet: &ParsedPacket<'_>,
    reading: &MiddleboxPacketKind,
) -> PacketFiveTuple {
    let info = &packet.info;
    let to = changes.ends.destination.map(|(_, port)| port);
    let ports = match reading {
        MiddleboxPacketKind::Segment { ports, .. } => [ports[0], to.unwrap_or(ports[1])],
        MiddleboxPacketKind::Query { identifier } | MiddleboxPacketKind::Answer { identifier } => {
            let identifier = to.unwrap_or(*identifier);
            [identifier; 2]
        }
        MiddleboxPacketKind::Error(_) => [0; 2],
        MiddleboxPacketKind::Other => ports_of_v6(packet),
    };
    let destination = changes.destination(info);
    PacketFiveTuple { protocol: info.protocol, source: info.source, destination, ports }
}

/// The ends of the packet that an ICMP error is about, as they are inside.
pub(super) fn about(
    changes: &PacketRewrite,
    packet: &ParsedPacket<'_>,
    reading: &MiddleboxPacketKind,
) -> Option<PacketFiveTuple> {
    if let MiddleboxPacketKind::Error(quoted) = reading {
        let quoted = (*quoted)?;
        let (source, port) = changes.quoted.source.unwrap_or(quoted.source);
        let is_query = quoted.protocol == icmp::PROTOCOL_V4;
        let ports = [port, if is_query { port } else { quoted.destination.1 }];
        let (source, destination) = (source.into(), IpAddr::V4(quoted.destination.0));
        return Some(PacketFiveTuple { protocol: quoted.protocol, source, destination, ports });
    }
    let quote =
        icmp::IcmpQuotedFlow::of(packet).filter(|_| packet.info.version == IpVersion::V6)?;
    // Of an echo these bytes are type, code and checksum: its identifier is not known here.
    let has_ports = IpTransport::of_number(quote.protocol).is_some();
    let ports = if has_ports { [quote.ports.0, quote.ports.1] } else { [0; 2] };
    let (source, destination) = (quote.source, quote.destination);
    Some(PacketFiveTuple { protocol: quote.protocol, source, destination, ports })
}

/// Of an `ICMPv6` echo its identifier, of a first fragment its ports.
fn ports_of_v6(packet: &ParsedPacket<'_>) -> [u16; 2] {
    let (info, payload) = (&packet.info, packet.payload());
    let word = |at: usize| payload.get(at..)?.first_chunk().map(|it| u16::from_be_bytes(*it));
    let is_echo = matches!(payload.first(), Some(128 | 129));
    match info.protocol {
        _ if info.is_later_fragment => [0; 2],
        icmp::PROTOCOL_V6 if is_echo => [word(4).unwrap_or(0); 2],
        protocol if info.is_fragment && IpTransport::of_number(protocol).is_some() => {
            [word(0).unwrap_or(0), word(2).unwrap_or(0)]
        }
        _ => [0; 2],
    }
}

/// IPv6 packets whose first fragment has passed: the others have no ports to judge them by.
#[derive(Debug, Default)]
pub(super) struct FirstFragmentTable(VecDeque<(DatagramKey, Time)>);

impl FirstFragmentTable {
    /// Whether the first fragment of this later one has passed.
    pub(super) fn knows(&self, now: Time, packet: &ParsedPacket<'_>) -> bool {
        let whole = packet.info.is_later_fragment.then(|| DatagramKey::of(packet)).flatten();
        let lives = |since: Time| now.since(since) < PATIENCE;
        whole.is_some_and(|it| self.0.iter().any(|(known, since)| *known == it && lives(*since)))
    }

    /// A packet has passed.
    pub(super) fn note(&mut self, now: Time, packet: &ParsedPacket<'_>) {
        if !packet.info.is_fragment || packet.info.version == IpVersion::V4 {
            return;
        }
        if let Some(whole) = DatagramKey::of(packet) {
            if self.0.len() >= KNOWN_MAX {
                self.0.pop_front();
            }
            self.0.push_back((whole, now));
        }
    }
}

/// How long fragments of a packet may follow the first (RFC 8200, 4.5).
const PATIENCE: Span = Span::from_secs(60);
/// Packets that are known at a time.
const KNOWN_MAX: usize = 64;
/// Offset of the flags in a TCP header.
const FLAGS: usize = 13;
const _: () = assert!(tcp::HEADER_LEN > FLAGS);
