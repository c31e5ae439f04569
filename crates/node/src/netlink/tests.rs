//! Requests beside the same requests as an independent implementation writes them.

use std::net::IpAddr;

use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use windtunnel_model::Subnet;

use super::message::RtnetlinkMessage;
use super::request::{self, DeviceAddress, Hop, RouteNextHop, RoutingPolicyRule, Veth};
use crate::net_config::prefixes::Prefix;

#[track_caller]
fn assert_same(ours: RtnetlinkMessage, theirs: RouteNetlinkMessage) {
    let mut header = NetlinkHeader::default();
    (header.flags, header.sequence_number) = (0x605, 7);
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(theirs));
    message.finalize();
    let mut expected = vec![0; message.buffer_len().next_multiple_of(4)];
    message.serialize(&mut expected);
    let mut written = Vec::new();
    ours.write(&mut written, 0x605, 7);
    assert_eq!(written, expected);
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn link(index: u32, flags: LinkFlags, attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    (message.header.index, message.header.flags) = (index, flags);
    message.header.change_mask = flags;
    message.attributes = attributes;
    message
}

fn veth(pair: &Veth<'_>) -> RouteNetlinkMessage {
    let mut attributes = vec![
        LinkAttribute::IfName(pair.node_name.into()),
        LinkAttribute::Address(pair.mac.to_vec()),
        LinkAttribute::Mtu(pair.mtu),
        LinkAttribute::NumTxQueues(1),
        LinkAttribute::NumRxQueues(1),
        LinkAttribute::NetNsPid(pair.node_pid),
    ];
    attributes.extend((!pair.offload).then_some(LinkAttribute::GsoMaxSegs(1)));
    let flags = if pair.on_lan { LinkFlags::empty() } else { LinkFlags::Noarp };
    let peer = link(pair.node_index, flags, attributes);
    let attributes = vec![
        LinkAttribute::IfName(pair.fabric_name.clone()),
        LinkAttribute::Mtu(65_535),
        LinkAttribute::NumTxQueues(1),
        LinkAttribute::NumRxQueues(1),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    let flags = LinkFlags::Up | LinkFlags::Noarp;
    RouteNetlinkMessage::NewLink(link(pair.fabric_index, flags, attributes))
}

#[test]
fn a_pair_of_devices_is_asked_for_with_the_nodes_end_in_its_namespace() {
    // Names of each length modulo four, as attributes are filled up to a multiple of it.
    for (name, offload, on_lan) in
        [("eth0", true, false), ("a", false, true), ("to-b", false, false), ("abc-2", true, true)]
    {
        let pair = Veth {
            fabric_name: format!("f-{name}"),
            fabric_index: 12,
            node_name: name,
            node_index: 70_000,
            node_pid: 4_321,
            mac: [2, 0, 0, 0, 1, 3],
            mtu: 1_400,
            offload,
            on_lan,
        };
        assert_same(request::veth(&pair), veth(&pair));
    }
}

#[test]
fn a_device_is_taken_up() {
    let theirs = link(70_000, LinkFlags::Up, Vec::new());
    assert_same(request::up(70_000), RouteNetlinkMessage::SetLink(theirs));
}

#[test]
fn an_address_stands_alone_or_in_the_subnet_of_a_lan() {
    let lan = |network: &str, prefix| Some(Subnet { network: ip(network), prefix });
    let cases = [
        (ip("10.1.2.3"), None, 32, AddressScope::Universe),
        (ip("fd00::7"), None, 128, AddressScope::Universe),
        (ip("fe80::7"), None, 128, AddressScope::Link),
        (ip("10.1.2.3"), lan("10.1.2.0", 24), 24, AddressScope::Universe),
        (ip("fd00::7"), lan("fd00::", 64), 64, AddressScope::Universe),
    ];
    for (address, subnet, prefix, scope) in cases {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.scope = scope;
        message.header.index = 9;
        let alone =
            if subnet.is_none() { AddressFlags::Noprefixroute } else { AddressFlags::empty() };
        message.attributes = vec![
            AddressAttribute::Address(address),
            AddressAttribute::Local(address),
            AddressAttribute::Flags(AddressFlags::Nodad | alone),
        ];
        if prefix == 24 {
            message.attributes.push(AddressAttribute::Broadcast([10, 1, 2, 255].into()));
        }
        let ours = request::address(9, DeviceAddress { address, subnet });
        assert_same(ours, RouteNetlinkMessage::NewAddress(message));
    }
}

#[test]
fn a_route_goes_to_anyone_on_a_link_or_to_a_gateway_or_the_owner_on_a_lan() {
    let (four, six) = (ip("10.0.0.1"), ip("fd00::1"));
    let cases = [
        (four, "10.9.0.0", 16, RouteNextHop::Anyone, Some("169.254.1.1")),
        (six, "fd09::", 32, RouteNextHop::Anyone, Some("fe80::1")),
        (four, "0.0.0.0", 0, RouteNextHop::Gateway(ip("10.0.0.254")), Some("10.0.0.254")),
        (six, "::", 0, RouteNextHop::Gateway(ip("fd00::fe")), Some("fd00::fe")),
        (four, "10.0.0.7", 32, RouteNextHop::Owner, None),
    ];
    for (source, to, length, via, gateway) in cases {
        let mut message = RouteMessage::default();
        message.header.address_family = family(source);
        message.header.destination_prefix_length = length;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        if via == RouteNextHop::Owner {
            message.header.scope = RouteScope::Link;
        }
        if via == RouteNextHop::Anyone {
            message.header.flags = RouteFlags::Onlink;
        }
        message.attributes = vec![
            RouteAttribute::Oif(5),
            RouteAttribute::PrefSource(source.into()),
            RouteAttribute::Table(300),
        ];
        let gateway = gateway.map(|gateway| RouteAttribute::Gateway(ip(gateway).into()));
        message.attributes.extend(gateway);
        if length > 0 {
            message.attributes.push(RouteAttribute::Destination(RouteAddress::from(ip(to))));
        }
        let to = Prefix { address: ip(to), length };
        let hop = Hop { device: 5, source, table: 300, via };
        assert_same(request::route(to, hop), RouteNetlinkMessage::NewRoute(message.clone()));
        assert_same(request::no_route(to, hop), RouteNetlinkMessage::DelRoute(message));
    }
}

#[test]
fn a_rule_for_a_pair_of_addresses_precedes_one_for_a_single_address() {
    let cases = [
        (ip("10.0.0.1"), Some(ip("10.0.0.2")), 32, 900),
        (ip("10.0.0.1"), None, 32, 1000),
        (ip("fd00::1"), Some(ip("fd00::2")), 128, 900),
    ];
    for (from, to, whole, priority) in cases {
        let mut message = RuleMessage::default();
        message.header.family = family(from);
        (message.header.src_len, message.header.dst_len) = (whole, to.map_or(0, |_| whole));
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Source(from),
            RuleAttribute::Table(300),
            RuleAttribute::Priority(priority),
        ];
        message.attributes.extend(to.map(RuleAttribute::Destination));
        let rule = RoutingPolicyRule { from, to, udp_port: None, table: 300 };
        assert_same(request::rule(rule), RouteNetlinkMessage::NewRule(message.clone()));
        assert_same(request::no_rule(rule), RouteNetlinkMessage::DelRule(message));
    }
}

#[test]
fn a_rule_for_a_udp_port_names_no_address() {
    for any in [ip("0.0.0.0"), ip("::")] {
        let mut message = RuleMessage::default();
        message.header.family = family(any);
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Table(300),
            RuleAttribute::Priority(1100),
            RuleAttribute::IpProtocol(IpProtocol::Udp),
            RuleAttribute::SourcePortRange(RulePortRange { start: 53, end: 53 }),
        ];
        let rule = RoutingPolicyRule { from: any, to: None, udp_port: Some(53), table: 300 };
        assert_same(request::rule(rule), RouteNetlinkMessage::NewRule(message));
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
