//! The requests that this room makes, one function each.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use windtunnel_model::Subnet;

use super::message::RtnetlinkMessage;
use super::number::{
    AF_INET, AF_INET6, FR_ACT_TO_TBL, FRA_DST, FRA_IIFNAME, FRA_IP_PROTO, FRA_PRIORITY,
    FRA_SPORT_RANGE, FRA_SRC, FRA_TABLE, IFA_ADDRESS, IFA_BROADCAST, IFA_F_NODAD,
    IFA_F_NOPREFIXROUTE, IFA_FLAGS, IFA_LOCAL, IFF_NOARP, IFF_UP, IFLA_ADDRESS, IFLA_GSO_MAX_SEGS,
    IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_NET_NS_PID,
    IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES, RT_SCOPE_HOST, RT_SCOPE_LINK, RT_SCOPE_UNIVERSE,
    RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_PREFSRC, RTA_TABLE, RTM_DELROUTE, RTM_DELRULE, RTM_NEWADDR,
    RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE, RTM_SETLINK, RTN_LOCAL, RTN_UNICAST, RTNH_F_ONLINK,
    RTPROT_STATIC, VETH_INFO_PEER,
};
use crate::net_config::prefixes::Prefix;

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
    pub(crate) device: u32,
    /// The address that they come from unless the program has chosen one.
    pub(crate) source: IpAddr,
    pub(crate) table: u32,
    /// The next hop.
    pub(crate) via: RouteNextHop,
}

/// A next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum RouteNextHop {
    /// The other end of the link.
    Anyone,
    /// The owner of the destination itself, on a LAN.
    Owner,
    /// The owner of this address, on a LAN.
    Gateway(IpAddr),
}

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceAddress {
    pub(crate) address: IpAddr,
    /// The subnet that it shares with others on a LAN; `None`: it is alone.
    pub(crate) subnet: Option<Subnet>,
}

pub(crate) fn veth(pair: &Veth<'_>) -> RtnetlinkMessage {
    let flags = IFF_UP | IFF_NOARP;
    RtnetlinkMessage::new(RTM_NEWLINK, &link_header(pair.fabric_index, flags))
        .text(IFLA_IFNAME, &pair.fabric_name)
        .number(IFLA_MTU, FABRIC_MTU)
        .number(IFLA_NUM_TX_QUEUES, 1)
        .number(IFLA_NUM_RX_QUEUES, 1)
        .nested(IFLA_LINKINFO, &[], |info| {
            info.text(IFLA_INFO_KIND, "veth")
                .nested(IFLA_INFO_DATA, &[], |data| node_end(data, pair))
        })
}

/// The node's end, as a part of the request for the pair.
fn node_end(data: RtnetlinkMessage, pair: &Veth<'_>) -> RtnetlinkMessage {
    let flags = if pair.on_lan { 0 } else { IFF_NOARP };
    data.nested(VETH_INFO_PEER, &link_header(pair.node_index, flags), |peer| {
        let peer = peer
            .text(IFLA_IFNAME, pair.node_name)
            .attribute(IFLA_ADDRESS, &pair.mac)
            .number(IFLA_MTU, pair.mtu)
            .number(IFLA_NUM_TX_QUEUES, 1)
            .number(IFLA_NUM_RX_QUEUES, 1)
            .number(IFLA_NET_NS_PID, pair.node_pid);
        if pair.offload { peer } else { peer.number(IFLA_GSO_MAX_SEGS, 1) }
    })
}

/// Two devices of the calling thread's own network namespace, each the other's far end, of which the first
/// one is up; the second one, which cannot be before it has its other end, has this Ethernet address.
pub(crate) fn own_pair(ends: [(u32, &str); 2], mac: [u8; 6]) -> RtnetlinkMessage {
    let [(near, near_name), (far, far_name)] = ends;
    let flags = IFF_UP | IFF_NOARP;
    let sized = |message: RtnetlinkMessage| {
        message
            .number(IFLA_MTU, FABRIC_MTU)
            .number(IFLA_NUM_TX_QUEUES, 1)
            .number(IFLA_NUM_RX_QUEUES, 1)
    };
    let message =
        RtnetlinkMessage::new(RTM_NEWLINK, &link_header(near, flags)).text(IFLA_IFNAME, near_name);
    sized(message).nested(IFLA_LINKINFO, &[], |info| {
        info.text(IFLA_INFO_KIND, "veth").nested(IFLA_INFO_DATA, &[], |data| {
            data.nested(VETH_INFO_PEER, &link_header(far, IFF_NOARP), |peer| {
                sized(peer.text(IFLA_IFNAME, far_name).attribute(IFLA_ADDRESS, &mac))
            })
        })
    })
}

/// A route by which every address of a family is the node's own.
pub(crate) fn all_is_local(like: IpAddr, table: u32) -> RtnetlinkMessage {
    let header = [[family(like), 0, 0, 0], [0, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL], [0; 4]];
    let message = RtnetlinkMessage::new(RTM_NEWROUTE, &header.concat());
    message.number(RTA_OIF, LOOPBACK).number(RTA_TABLE, table)
}

/// Has what comes by a device use a table of its own.
pub(crate) fn rule_of_device(like: IpAddr, device: &str, table: u32) -> RtnetlinkMessage {
    let header = [[family(like), 0, 0, 0], [0, 0, 0, FR_ACT_TO_TBL], [0; 4]];
    RtnetlinkMessage::new(RTM_NEWRULE, &header.concat())
        .text(FRA_IIFNAME, device)
        .number(FRA_TABLE, table)
        .number(FRA_PRIORITY, DEVICE_PRIORITY)
}

/// Takes a device up.
pub(crate) fn up(device: u32) -> RtnetlinkMessage {
    RtnetlinkMessage::new(RTM_SETLINK, &link_header(device, IFF_UP))
}

/// `ifinfomsg`: family, padding, hardware type, index, flags to set, mask of the flags to change.
fn link_header(index: u32, flags: u32) -> Vec<u8> {
    let flags = flags.to_ne_bytes();
    [[0; 4], index.to_ne_bytes(), flags, flags].concat()
}

/// Gives a device an address: one of its own, without a subnet, or one of a LAN's subnet, to which
/// the kernel then makes the route.
pub(crate) fn address(device: u32, own: DeviceAddress) -> RtnetlinkMessage {
    let DeviceAddress { address, subnet } = own;
    let prefix = subnet.map_or(whole(address), |subnet| subnet.prefix);
    // `ifaddrmsg`: family, prefix length, flags, scope, index.
    let header = [family(address), prefix, IFA_F_NODAD, scope(address)];
    let flags = match subnet {
        None => u32::from(IFA_F_NODAD) | IFA_F_NOPREFIXROUTE,
        Some(_) => u32::from(IFA_F_NODAD),
    };
    let message = RtnetlinkMessage::new(RTM_NEWADDR, &[header, device.to_ne_bytes()].concat())
        .attribute(IFA_ADDRESS, &octets(address))
        .attribute(IFA_LOCAL, &octets(address))
        .number(IFA_FLAGS, flags);
    match subnet.and_then(|subnet| subnet.broadcast()) {
        Some(broadcast) => message.attribute(IFA_BROADCAST, &broadcast.octets()),
        None => message,
    }
}

fn scope(address: IpAddr) -> u8 {
    match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => RT_SCOPE_LINK,
        _ => RT_SCOPE_UNIVERSE,
    }
}

/// Which packets use a table of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RoutingPolicyRule {
    /// The address that they come from; unspecified: any of its family, and none yet.
    pub(crate) from: IpAddr,
    /// The address that they go to; `None`: any.
    pub(crate) to: Option<IpAddr>,
    /// The UDP port that they come from; `None`: any protocol.
    #[serde(default)]
    pub(crate) udp_port: Option<u16>,
    pub(crate) table: u32,
}

/// Adds a route.
pub(crate) fn route(to: Prefix, hop: Hop) -> RtnetlinkMessage {
    route_message(RTM_NEWROUTE, to, hop)
}

/// Removes a route.
pub(crate) fn no_route(to: Prefix, hop: Hop) -> RtnetlinkMessage {
    route_message(RTM_DELROUTE, to, hop)
}

fn route_message(kind: u16, to: Prefix, hop: Hop) -> RtnetlinkMessage {
    let (scope, flags, gateway) = match hop.via {
        RouteNextHop::Anyone => (RT_SCOPE_UNIVERSE, RTNH_F_ONLINK, Some(gateway(hop.source))),
        RouteNextHop::Gateway(address) => (RT_SCOPE_UNIVERSE, 0, Some(address)),
        RouteNextHop::Owner => (RT_SCOPE_LINK, 0, None),
    };
    // `rtmsg`: family, lengths of destination and source, type of service; table (an attribute says
    // it), protocol, scope, type; flags.
    let header = [
        [family(hop.source), to.length, 0, 0],
        [0, RTPROT_STATIC, scope, RTN_UNICAST],
        flags.to_ne_bytes(),
    ];
    let mut message = RtnetlinkMessage::new(kind, &header.concat())
        .number(RTA_OIF, hop.device)
        .attribute(RTA_PREFSRC, &octets(hop.source))
        .number(RTA_TABLE, hop.table);
    if let Some(gateway) = gateway {
        message = message.attribute(RTA_GATEWAY, &octets(gateway));
    }
    if to.length > 0 {
        message = message.attribute(RTA_DST, &octets(to.address));
    }
    message
}

/// Has packets use a table of their own.
pub(crate) fn rule(rule: RoutingPolicyRule) -> RtnetlinkMessage {
    rule_message(RTM_NEWRULE, rule)
}

/// Removes a rule.
pub(crate) fn no_rule(rule: RoutingPolicyRule) -> RtnetlinkMessage {
    rule_message(RTM_DELRULE, rule)
}

fn rule_message(kind: u16, rule: RoutingPolicyRule) -> RtnetlinkMessage {
    let priority = match rule {
        RoutingPolicyRule { udp_port: Some(_), .. } => PORT_PRIORITY,
        RoutingPolicyRule { to: Some(_), .. } => PAIR_PRIORITY,
        _ => RULE_PRIORITY,
    };
    let source = Some(rule.from).filter(|from| !from.is_unspecified());
    // `fib_rule_hdr`: family, lengths of destination and source, type of service; table (an
    // attribute says it), two reserved, action; flags.
    let header = [
        [family(rule.from), rule.to.map_or(0, whole), source.map_or(0, whole), 0],
        [0, 0, 0, FR_ACT_TO_TBL],
        [0; 4],
    ];
    let mut message = RtnetlinkMessage::new(kind, &header.concat());
    if let Some(from) = source {
        message = message.attribute(FRA_SRC, &octets(from));
    }
    message = message.number(FRA_TABLE, rule.table).number(FRA_PRIORITY, priority);
    if let Some(to) = rule.to {
        message = message.attribute(FRA_DST, &octets(to));
    }
    if let Some(port) = rule.udp_port {
        // `fib_rule_port_range`: the first and the last.
        let range = [port.to_ne_bytes(), port.to_ne_bytes()].concat();
        message =
            message.attribute(FRA_IP_PROTO, &[IPPROTO_UDP]).attribute(FRA_SPORT_RANGE, &range);
    }
    message
}

/// The next hop of every route on a link: no interface has the address, and none resolves it,
/// because the devices resolve no addresses. Without one the kernel would keep a neighbour for each
/// destination, and all namespaces of the machine share room for 1024.
fn gateway(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => Ipv4Addr::new(169, 254, 1, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
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
/// A port says where a packet comes from only if nothing else does.
const PORT_PRIORITY: u32 = 1100;
/// What comes by a device goes before all else that is chosen.
const DEVICE_PRIORITY: u32 = 800;

/// The loopback device is the first of each namespace.
const LOOPBACK: u32 = 1;

/// Of RFC 768.
const IPPROTO_UDP: u8 = 17;
