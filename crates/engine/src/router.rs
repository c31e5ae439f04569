//! What a router does with a packet that has come to it.
//!
//! The order is that of Linux: for the router itself; then the route; then the TTL. Errors are sent
//! only where RFC 1812 (4.3.2.7) and RFC 4443 (2.4) allow, one for a train of segments, from the
//! address of the interface by which the packet came.

use core::net::IpAddr;

use windtunnel_model::{Lane, RouterId};
use windtunnel_routing::RouteDestination;
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::{flow, icmp, tcp, udp};

use crate::network::NetworkDirectory;
use crate::records::RouterReason;
use crate::services::ServiceAddressFilter;
use crate::tunnel::PacketTunnel;

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardingDecision {
    /// One hop less to live, and on along this lane.
    Forward(Lane),
    /// Its address may be that of a service.
    Service,
    /// It asks for an echo.
    Echo,
    /// Dropped, with a message to the sender.
    Refuse(ForwardingRefusal),
    /// Not for others to see, or nothing that a router has a use for.
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForwardingRefusal {
    /// Its TTL ends here.
    Expired,
    /// The destination exists, but no route leads there.
    NoRoute,
    /// No interface has the destination address.
    NoHost,
    /// Nothing listens at the router itself.
    NoPort,
}

impl ForwardingRefusal {
    /// Why its router drops it, as is recorded.
    pub(crate) fn reason(self) -> RouterReason {
        match self {
            ForwardingRefusal::Expired => RouterReason::TtlExpired,
            ForwardingRefusal::NoRoute | ForwardingRefusal::NoHost => RouterReason::NoRoute,
            ForwardingRefusal::NoPort => RouterReason::NotForwarded,
        }
    }

    /// What its sender gets.
    pub(crate) fn kind(self) -> icmp::IcmpErrorKind {
        match self {
            ForwardingRefusal::Expired => icmp::IcmpErrorKind::TimeExceeded,
            ForwardingRefusal::NoRoute => icmp::IcmpErrorKind::NetUnreachable,
            ForwardingRefusal::NoHost => icmp::IcmpErrorKind::HostUnreachable,
            ForwardingRefusal::NoPort => icmp::IcmpErrorKind::PortUnreachable,
        }
    }
}

/// Decides what `router` does with a packet that is in no tunnel.
pub(crate) fn decide(
    network: &mut NetworkDirectory,
    services: &ServiceAddressFilter,
    router: RouterId,
    packet: &ParsedPacket<'_>,
) -> ForwardingDecision {
    if !travels(&packet.info) {
        return ForwardingDecision::Ignore;
    }
    if services.may_hold(packet.info.destination) {
        return ForwardingDecision::Service;
    }
    decide_route(network, router, packet)
}

/// Whether a packet is for others to see.
pub(crate) fn travels(info: &IpPacketSummary) -> bool {
    !info.is_multicast && !stays_on_link(info.destination) && may_travel(info.source)
}

/// Decides about a packet that is not redirected, and may travel.
pub(crate) fn decide_route(
    network: &mut NetworkDirectory,
    router: RouterId,
    packet: &ParsedPacket<'_>,
) -> ForwardingDecision {
    decide_route_to(network, router, packet.info.destination, packet)
}

/// The same for a packet that goes to another destination than is written in it.
#[inline]
pub(crate) fn decide_route_to(
    network: &mut NetworkDirectory,
    router: RouterId,
    destination: IpAddr,
    packet: &ParsedPacket<'_>,
) -> ForwardingDecision {
    let info = &packet.info;
    let target = match network.locate(destination) {
        None => return ForwardingDecision::Refuse(ForwardingRefusal::NoHost),
        Some((RouteDestination::Lan(_), _)) if network.is_broadcast(destination) => {
            return ForwardingDecision::Ignore;
        }
        Some((RouteDestination::Router(own), _)) if own == router => return for_itself(packet),
        // Inside of a NAT, where no route leads.
        Some((_, realm)) if !network.is_visible(router, realm) => {
            return ForwardingDecision::Refuse(ForwardingRefusal::NoRoute);
        }
        Some((target, _)) => target,
    };
    let flow = || flow::FiveTuple::of(packet).hash64();
    forward(info, network.next_hop(router, Some(info.source), target, flow))
}

/// Decides about a packet in a tunnel: only the tunnel's end matters.
pub(crate) fn decide_tunnel(
    network: &mut NetworkDirectory,
    router: RouterId,
    packet: &ParsedPacket<'_>,
    tunnel: &PacketTunnel,
) -> ForwardingDecision {
    let flow = || flow::FiveTuple::of(packet).hash64();
    forward(&packet.info, network.next_hop(router, None, tunnel.end.target(), flow))
}

fn forward(info: &IpPacketSummary, next: Option<Lane>) -> ForwardingDecision {
    match next {
        None => ForwardingDecision::Refuse(ForwardingRefusal::NoRoute),
        Some(_) if info.ttl <= 1 => ForwardingDecision::Refuse(ForwardingRefusal::Expired),
        Some(lane) => ForwardingDecision::Forward(lane),
    }
}

fn for_itself(packet: &ParsedPacket<'_>) -> ForwardingDecision {
    let kind = packet.payload().first().copied();
    match (packet.info.protocol, kind) {
        (icmp::PROTOCOL_V4, Some(icmp::ECHO_REQUEST_V4))
        | (icmp::PROTOCOL_V6, Some(icmp::ECHO_REQUEST_V6)) => ForwardingDecision::Echo,
        (tcp::PROTOCOL | udp::PROTOCOL, _) => ForwardingDecision::Refuse(ForwardingRefusal::NoPort),
        _ => ForwardingDecision::Ignore,
    }
}

/// Whether a destination means something on its own link only (RFC 3927, 2.7; RFC 4291, 2.5.6).
fn stays_on_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_loopback() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.is_loopback() || v6.is_unspecified(),
    }
}

/// Whether a source may be seen beyond its link (RFC 1812, 5.3.7).
fn may_travel(address: IpAddr) -> bool {
    !(stays_on_link(address) || address.is_multicast())
}
