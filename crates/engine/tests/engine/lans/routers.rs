//! Routers on LANs.

use std::net::{IpAddr, Ipv4Addr};

use windtunnel_model::{LinkPatch, LinkProfile, RouterId, Span};
use windtunnel_wire::arp::{self, ArpPacket};
use windtunnel_wire::icmp::{NEIGHBOUR_FRAME_LEN, NeighbourMessage};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, ethernet, icmp};

use super::{PLAIN, answer, mac, ports, question, v4};
use crate::support::{MS, Net, Topology, delayed, up};

/// A host (port 0) on a LAN with another one (port 1) and a router, which leads to a node (port 2)
/// beyond.
fn branch() -> Net {
    let mut plan = Topology::new(1);
    let lan = plan.lan("office");
    let (a, b, far) = (plan.node("a"), plan.node("b"), plan.node("far"));
    let router = plan.router("r");
    let none = LinkProfile::default;
    plan.link([a, lan], [none(), none()]);
    plan.link([b, lan], [none(), none()]);
    plan.link([router, lan], [none(), none()]);
    plan.link([router, far], [delayed(Span::from_millis(5)), none()]);
    Net::new(plan.build())
}

const ROUTER: u32 = 2;

fn router_mac(net: &Net) -> [u8; 6] {
    net.plan.routers[0].interfaces[0].mac()
}

#[test]
fn a_router_on_a_lan_answers_for_its_own_address_only() {
    let mut net = branch();
    let own = IpAddr::from([10, 1, 0, 3]);
    net.send(0, 0, PLAIN, &question(&net, 0, own));
    assert_eq!(ports(&net.out), [1, 0], "the other host gets the question, the asker the reply");
    let reply = ArpPacket::parse(&net.out[1].frame).unwrap();
    assert_eq!(reply.sender, (router_mac(&net), v4(own)));
    assert_eq!((reply.operation, reply.target.0), (arp::REPLY, mac(&net, 0)));
    net.out.clear();
    net.send(0, 0, PLAIN, &question(&net, 0, [10, 1, 0, 99].into()));
    assert_eq!(ports(&net.out), [1]);
}

#[test]
fn a_router_on_a_lan_answers_neighbour_solicitations() {
    let mut net = branch();
    let host = net.plan.ports().next().unwrap().1.v6.unwrap();
    let own = net.plan.routers[0].interfaces[0].v6.unwrap();
    let mut frame = vec![0; NEIGHBOUR_FRAME_LEN];
    NeighbourMessage::write_solicitation(host, mac(&net, 0), own, &mut frame).unwrap();
    net.send(0, 0, PLAIN, &frame);
    let reply = net.out.iter().find(|out| out.port == 0).unwrap();
    let reply = NeighbourMessage::of(&ParsedPacket::parse(&reply.frame).unwrap()).unwrap();
    assert_eq!((reply.asks, reply.target, reply.mac), (false, own, Some(router_mac(&net))));
}

#[test]
fn packets_through_a_router_reach_and_leave_a_lan_with_one_hop_less_to_live() {
    let mut net = branch();
    // Out: the host has the router's Ethernet address.
    let mut frame = build::udp(net.socket(0), net.socket(2), b"out");
    ethernet::set_addresses(&mut frame, router_mac(&net), mac(&net, 0));
    net.send(0, 0, PLAIN, &frame);
    // In: the router has to ask for the host first.
    net.send(10 * MS, 2, PLAIN, &build::udp(net.socket(2), net.socket(0), b"in"));
    let asked: Vec<_> = net
        .out
        .iter()
        .filter(|o| o.at == 10 * MS)
        .map(|o| (o.port, ArpPacket::parse(&o.frame).unwrap()))
        .collect();
    assert_eq!(asked[0].1.target.1, Ipv4Addr::new(10, 1, 0, 1));
    assert_eq!(asked.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0, 1]);
    net.send(11 * MS, 0, PLAIN, &answer(&net, 0, &asked[0].1));
    net.send(12 * MS, 2, PLAIN, &build::udp(net.socket(2), net.socket(0), b"in"));
    net.finish();
    let packets: Vec<_> = net
        .out
        .iter()
        .filter_map(|o| Some((o.port, o.at, ParsedPacket::parse(&o.frame).ok()?.info.ttl)))
        .collect();
    assert_eq!(
        packets,
        [
            // The segment has not learned the router yet.
            (1, 0, 64),
            (2, 5 * MS, 63),
            (0, 11 * MS, 63),
            (0, 12 * MS, 63),
        ]
    );
    let last = ethernet::EthernetFrame::parse(&net.out.last().unwrap().frame).unwrap();
    assert_eq!((last.destination(), last.source()), (mac(&net, 0), router_mac(&net)));
    assert_eq!(net.engine.router(RouterId(0)).forwarded, 3);
    net.check_conservation();
}

#[test]
fn an_address_that_no_plan_gave_is_found_by_asking() {
    let mut net = branch();
    let leased: Ipv4Addr = [10, 1, 0, 150].into();
    let to = (IpAddr::V4(leased), 7000).into();
    net.send(0, 2, PLAIN, &build::udp(net.socket(2), to, b"hello"));
    let asked = ArpPacket::parse(&net.out[1].frame).unwrap();
    assert_eq!(asked.target.1, leased);
    net.send(MS, 1, PLAIN, &answer(&net, 1, &asked));
    net.finish();
    let got = net.out.last().unwrap();
    assert_eq!(
        (got.port, ParsedPacket::parse(&got.frame).unwrap().info.destination),
        (1, leased.into())
    );
}

#[test]
fn an_address_without_a_reply_is_unreachable_after_three_seconds() {
    let mut net = branch();
    let to = "10.1.0.200:9".parse().unwrap();
    net.send(0, 2, PLAIN, &build::udp(net.socket(2), to, b"hello"));
    net.finish();
    let questions = net.out.iter().filter(|out| ArpPacket::parse(&out.frame).is_ok());
    assert_eq!(
        questions.map(|out| (out.at, out.port)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (1000 * MS, 0), (1000 * MS, 1), (2000 * MS, 0), (2000 * MS, 1),]
    );
    let refusal = net.out.last().unwrap();
    let packet = ParsedPacket::parse(&refusal.frame).unwrap();
    let message = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    assert_eq!((refusal.port, refusal.at), (2, 3005 * MS), "5 ms to there");
    assert_eq!((message.kind(), message.code()), (3, 1));
    assert_eq!(net.engine.router(RouterId(0)).no_route, 1);
}

#[test]
fn two_routers_join_two_lans_and_each_finds_the_next() {
    let mut plan = Topology::new(1);
    let (left, middle, right) = (plan.lan("left"), plan.lan("middle"), plan.lan("right"));
    let (a, b) = (plan.node("a"), plan.node("b"));
    let (r, s) = (plan.router("r"), plan.router("s"));
    for ends in [[a, left], [r, left], [r, middle], [s, middle], [s, right], [b, right]] {
        plan.link(ends, [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut net = Net::new(plan.build());
    let first = net.plan.routers[0].interfaces[0].mac();
    let mut frame = build::udp(net.socket(0), net.socket(1), b"hello");
    ethernet::set_addresses(&mut frame, first, mac(&net, 0));
    net.send(0, 0, PLAIN, &frame);
    // The routers find each other by themselves; only the last question comes to a host.
    let asked = ArpPacket::parse(&net.out[0].frame).unwrap();
    assert_eq!((net.out.len(), net.out[0].port), (1, 1));
    net.send(0, 1, PLAIN, &answer(&net, 1, &asked));
    let got = ParsedPacket::parse(&net.out[1].frame).unwrap().info;
    assert_eq!((got.ttl, got.source), (62, net.address(0)));
}

#[test]
fn a_router_fragments_for_an_attachment_and_reports_its_mtu() {
    let mut net = branch();
    net.send(0, 0, PLAIN, &question(&net, 0, [10, 1, 0, 3].into()));
    net.out.clear();
    let patch = LinkPatch { mtu: Some(1000), ..LinkPatch::default() };
    net.patch(0, up(ROUTER), patch);
    let big = build::udp(net.socket(2), net.socket(0), &[1; 1400]);
    net.send(0, 2, PLAIN, &big);
    net.send(0, 2, PLAIN, &build::with_dont_fragment(big));
    net.finish();
    assert_eq!(ports(&net.out), [0, 0, 2]);
    assert_eq!(net.engine.lane(up(ROUTER)).fragments, 2);
}
