//! The requests that this room makes, one function each.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use serde::{Deserialize, Serialize};
use windtunnel_model::Subnet;

use crate::recipe::prefixes::Prefix;

/// A pair of devices to make.
pub(crate) struct Veth<'a> {
    /// The fabric's end: in the namespace of the socket, up at once.
    pub(crate) fabric_name: String,
    pub(crate) fabric_index: u32,
    /// The node's end.
    pub(crate) node_name: &'a str,
    pub(crate) node_index: u32,
    /// A process in the namespace where the node's end belongs.
    pub(crate) node_pid: u32,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u32,
    /// Whether the node's end may send packets that are yet to be cut into segments.
    pub(crate) offload: bool,
    /// Whether the node's end is on a LAN, and so resolves addresses.
    pub(crate) on_lan: bool,
}

/// Where packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Hop {
    /// The device's index.
    pub(crate) device: u32,
    /// The address that they come from unless the program has chosen one.
    pub(crate) source: IpAddr,
    /// The routing table.
    pub(crate) table: u32,
    /// Who takes them on.
    pub(crate) via: Via,
}

/// Who takes packets on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Via {
    /// Whoever is at the other end of the link.
    Anyone,
    /// The owner of the destination itself, on a LAN.
    Owner,
    /// Who has this address, on a LAN.
    Gateway(IpAddr),
}

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) address: IpAddr,
    /// The subnet that it shares with others on a LAN; `None`: it is alone.
    pub(crate) subnet: Option<Subnet>,
}

pub(crate) fn veth(pair: &Veth<'_>) -> RouteNetlinkMessage {
    let mut peer = LinkMessage::default();
    peer.header.index = pair.node_index;
    if !pair.on_lan {
        peer.header.flags = LinkFlags::Noarp;
        peer.header.change_mask = LinkFlags::Noarp;
    }
    peer.attributes = vec![
        LinkAttribute::IfName(pair.node_name.into()),
        LinkAttribute::Address(pair.mac.to_vec()),
        LinkAttribute::Mtu(pair.mtu),
        LinkAttribute::NumTxQueues(1),
        LinkAttribute::NumRxQueues(1),
        LinkAttribute::NetNsPid(pair.node_pid),
    ];
    if !pair.offload {
        peer.attributes.push(LinkAttribute::GsoMaxSegs(1));
    }
    let mut message = LinkMessage::default();
    message.header.index = pair.fabric_index;
    message.header.flags = LinkFlags::Up | LinkFlags::Noarp;
    message.header.change_mask = message.header.flags;
    message.attributes = vec![
        LinkAttribute::IfName(pair.fabric_name.clone()),
        LinkAttribute::Mtu(FABRIC_MTU),
        LinkAttribute::NumTxQueues(1),
        LinkAttribute::NumRxQueues(1),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    RouteNetlinkMessage::NewLink(message)
}

/// Takes a device up.
pub(crate) fn up(device: u32) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = device;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    RouteNetlinkMessage::SetLink(message)
}

/// Gives a device an address: one of its own, without a subnet, or one of a LAN's subnet, to which
/// the kernel then makes the route.
pub(crate) fn address(device: u32, own: Own) -> RouteNetlinkMessage {
    let Own { address, subnet } = own;
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = subnet.map_or(whole(address), |subnet| subnet.prefix);
    message.header.flags = AddressHeaderFlags::Nodad;
    message.header.scope = scope(address);
    message.header.index = device;
    let flags = match subnet {
        None => AddressFlags::Nodad | AddressFlags::Noprefixroute,
        Some(_) => AddressFlags::Nodad,
    };
    message.attributes = vec![
        AddressAttribute::Address(address),
        AddressAttribute::Local(address),
        AddressAttribute::Flags(flags),
    ];
    let broadcast = subnet.and_then(|subnet| subnet.broadcast());
    message.attributes.extend(broadcast.map(AddressAttribute::Broadcast));
    RouteNetlinkMessage::NewAddress(message)
}

fn scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => AddressScope::Link,
        _ => AddressScope::Universe,
    }
}

/// Which packets use a table of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// The address that they come from.
    pub(crate) from: IpAddr,
    /// The address that they go to; `None`: any.
    pub(crate) to: Option<IpAddr>,
    /// The table.
    pub(crate) table: u32,
}

/// Adds a route.
pub(crate) fn route(to: Prefix, hop: Hop) -> RouteNetlinkMessage {
    RouteNetlinkMessage::NewRoute(route_message(to, hop))
}

/// Removes a route.
pub(crate) fn no_route(to: Prefix, hop: Hop) -> RouteNetlinkMessage {
    RouteNetlinkMessage::DelRoute(route_message(to, hop))
}

fn route_message(to: Prefix, hop: Hop) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(hop.source);
    message.header.destination_prefix_length = to.length;
    message.header.table = RouteHeader::RT_TABLE_UNSPEC;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Oif(hop.device),
        RouteAttribute::PrefSource(hop.source.into()),
        RouteAttribute::Table(hop.table),
    ];
    let gateway = match hop.via {
        Via::Anyone => {
            message.header.flags = RouteFlags::Onlink;
            Some(gateway(hop.source))
        }
        Via::Gateway(address) => Some(address),
        Via::Owner => {
            message.header.scope = RouteScope::Link;
            None
        }
    };
    message.attributes.extend(gateway.map(|address| RouteAttribute::Gateway(address.into())));
    if to.length > 0 {
        message.attributes.push(RouteAttribute::Destination(RouteAddress::from(to.address)));
    }
    message
}

/// Has packets use a table of their own.
pub(crate) fn rule(rule: Rule) -> RouteNetlinkMessage {
    RouteNetlinkMessage::NewRule(rule_message(rule))
}

/// Removes a rule.
pub(crate) fn no_rule(rule: Rule) -> RouteNetlinkMessage {
    RouteNetlinkMessage::DelRule(rule_message(rule))
}

fn rule_message(rule: Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family(rule.from);
    message.header.src_len = whole(rule.from);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Source(rule.from),
        RuleAttribute::Table(rule.table),
        RuleAttribute::Priority(if rule.to.is_some() { PAIR_PRIORITY } else { RULE_PRIORITY }),
    ];
    if let Some(to) = rule.to {
        message.header.dst_len = whole(to);
        message.attributes.push(RuleAttribute::Destination(to));
    }
    message
}

/// The next hop of every route on a link: nobody has the address, and nobody asks for it, because
/// the devices resolve no addresses. Without one the kernel would keep a neighbour for each
/// destination, and all namespaces of the machine share room for 1024.
fn gateway(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => Ipv4Addr::new(169, 254, 1, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// The length of the prefix that is a whole address.
pub(crate) fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The kernel's main table, which `ip route` shows.
pub(crate) const TABLE_MAIN: u32 = 254;

/// The largest that a veth device takes; a packet's real MTU is the link's business.
const FABRIC_MTU: u32 = 65_535;

/// Between the rule for local addresses (0) and the one for the main table (32766).
const RULE_PRIORITY: u32 = 1000;

/// What is said of a pair of addresses goes before what is said of one.
const PAIR_PRIORITY: u32 = 900;
