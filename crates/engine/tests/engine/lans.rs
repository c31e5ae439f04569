//! LANs: frames through a segment, and routers on one.

use std::net::{IpAddr, Ipv4Addr};

use windtunnel_engine::{DropReason, NetworkChange};
use windtunnel_model::profile::Loss;
use windtunnel_model::{
    Direction, Lane, LinkId, LinkPatch, LinkProfile, Plan, RouterId, Span, Vertex,
};
use windtunnel_wire::arp::{self, Message};
use windtunnel_wire::icmp::{NEIGHBOUR_FRAME_LEN, Neighbour};
use windtunnel_wire::packet::Info;
use windtunnel_wire::{build, ethernet, icmp, vnet};

use crate::support::{MS, Net, Out, Topology, delayed, rated, up};

const PLAIN: vnet::Header =
    vnet::Header { flags: 0, gso_type: 0, hdr_len: 0, gso_size: 0, csum_start: 0, csum_offset: 0 };
const ALL: [u8; 6] = [0xff; 6];

/// Nodes with the ports 0, 1 … on one LAN, each attached with its own profile both ways.
fn office(profiles: &[LinkProfile]) -> Plan {
    let mut plan = Topology::new(1);
    let lan = plan.lan("office");
    for (index, profile) in profiles.iter().enumerate() {
        let node = plan.node(&format!("n{index}"));
        plan.link([node, lan], [profile.clone(), profile.clone()]);
    }
    plan.build()
}

fn plain(count: usize) -> Plan {
    office(&vec![LinkProfile::default(); count])
}

/// Towards the station of link `link`.
fn down(link: u32) -> Lane {
    Lane { link: LinkId(link), direction: Direction::Down }
}

fn mac(net: &Net, port: usize) -> [u8; 6] {
    net.plan.ports().nth(port).unwrap().1.mac()
}

/// A UDP packet between two ports' addresses whose Ethernet addresses are as a host writes them.
fn udp(net: &Net, from: usize, to: usize, len: usize) -> Vec<u8> {
    let mut frame = build::udp(net.socket(from), net.socket(to), &vec![0; len - 28]);
    ethernet::set_addresses(&mut frame, mac(net, to), mac(net, from));
    frame
}

fn broadcast(net: &Net, from: usize) -> Vec<u8> {
    let mut frame = build::udp(net.socket(from), "255.255.255.255:9".parse().unwrap(), b"hi");
    ethernet::set_addresses(&mut frame, ALL, mac(net, from));
    frame
}

fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(v6) => panic!("{v6} is not an IPv4 address"),
    }
}

/// The question of the host at a port for an address.
fn question(net: &Net, from: usize, target: IpAddr) -> Vec<u8> {
    let message = Message {
        operation: arp::REQUEST,
        sender: (mac(net, from), v4(net.address(from))),
        target: ([0; 6], v4(target)),
    };
    let mut frame = vec![0; arp::FRAME_LEN];
    message.write(ALL, &mut frame).unwrap();
    frame
}

/// The answer of the host at a port to a question.
fn answer(net: &Net, from: usize, question: &Message) -> Vec<u8> {
    let message = Message {
        operation: arp::REPLY,
        sender: (mac(net, from), question.target.1),
        target: question.sender,
    };
    let mut frame = vec![0; arp::FRAME_LEN];
    message.write(question.sender.0, &mut frame).unwrap();
    frame
}

fn ports(out: &[Out]) -> Vec<u32> {
    out.iter().map(|out| out.port).collect()
}

#[test]
fn a_broadcast_comes_to_all_others_unchanged_each_after_its_own_delay() {
    let delays = [1u64, 2, 4].map(|ms| delayed(Span::from_millis(ms)));
    let mut net = Net::new(office(&delays));
    let frame = broadcast(&net, 0);
    net.send(0, 0, PLAIN, &frame);
    net.finish();
    assert_eq!((ports(&net.out), net.times()), (vec![1, 2], vec![3 * MS, 5 * MS]));
    assert!(net.out.iter().all(|out| out.frame == frame), "no byte, so no TTL, is touched");
    assert_eq!(net.engine.lane(up(0)).delivered_packets, 1);
    assert_eq!((0..3).map(|l| net.engine.lane(down(l)).offered_packets).sum::<u64>(), 2);
}

#[test]
fn frames_for_a_known_address_go_there_only_and_others_to_all() {
    let mut net = Net::new(plain(4));
    net.send(0, 0, PLAIN, &udp(&net, 0, 1, 100));
    assert_eq!(ports(&net.out), [1, 2, 3], "the place of 1 is unknown");
    net.out.clear();
    net.send(MS, 1, PLAIN, &udp(&net, 1, 0, 100));
    net.send(MS, 2, PLAIN, &udp(&net, 2, 1, 100));
    assert_eq!(ports(&net.out), [0, 1]);
    net.out.clear();
    net.send(301_002 * MS, 3, PLAIN, &udp(&net, 3, 1, 100));
    assert_eq!(ports(&net.out), [0, 1, 2], "1 has been silent for 300 s");
}

#[test]
fn a_known_address_behind_clear_lanes_is_reached_without_a_copy() {
    let mut net = Net::new(plain(2));
    net.send(0, 1, PLAIN, &udp(&net, 1, 0, 100));
    let mut frame = udp(&net, 0, 1, 100);
    let express = net.engine.handle_packet(net.now, windtunnel_model::PortId(0), PLAIN, &mut frame);
    assert_eq!(express.unwrap().port.0, 1);
    assert_eq!(frame, udp(&net, 0, 1, 100));
    net.check_conservation();
}

#[test]
fn a_train_crosses_whole_and_is_copied_whole() {
    let mut net =
        Net::new(office(&[rated(10_000_000_000), LinkProfile::default(), LinkProfile::default()]));
    let (mut frame, header) =
        build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[1; 30_000], 1460);
    ethernet::set_addresses(&mut frame, mac(&net, 1), mac(&net, 0));
    net.send(0, 0, header, &frame);
    net.finish();
    let copies: Vec<_> = net.out.iter().map(|out| (out.port, out.vnet.gso_size)).collect();
    assert_eq!(copies, [(1, 1460), (2, 1460)]);
    assert_eq!(net.engine.lane(down(2)).delivered_packets, 21);
}

#[test]
fn a_frame_too_large_for_an_attachment_is_dropped_silently_and_unfragmented() {
    let narrow = LinkProfile { mtu: 1000, ..LinkProfile::default() };
    let mut net = Net::new(office(&[LinkProfile::default(), narrow]));
    net.send(0, 0, PLAIN, &udp(&net, 0, 1, 1400));
    net.send(0, 1, PLAIN, &build::with_dont_fragment(udp(&net, 1, 0, 1400)));
    net.finish();
    assert!(net.out.is_empty(), "{:?}", net.out);
    assert_eq!(net.engine.lane(down(1)).dropped[DropReason::Mtu], 1);
    assert_eq!(net.engine.lane(up(1)).dropped[DropReason::Mtu], 1);
    assert_eq!(net.engine.lane(down(1)).fragmented, 0);
    net.check_conservation();
}

#[test]
fn a_cut_attachment_neither_sends_nor_receives() {
    let mut net = Net::new(plain(3));
    net.set_up(0, down(1), false);
    net.send(0, 0, PLAIN, &broadcast(&net, 0));
    net.send(0, 1, PLAIN, &broadcast(&net, 1));
    assert_eq!(ports(&net.out), [2, 0, 2]);
    assert_eq!(net.engine.lane(down(1)).dropped[DropReason::Down], 1);
    net.set_up(1, up(1), false);
    net.send(1, 1, PLAIN, &broadcast(&net, 1));
    assert_eq!(net.out.len(), 3);
    net.check_conservation();
}

#[test]
fn a_partition_cuts_frames_and_broadcasts_between_its_sides_of_one_lan() {
    let mut net = Net::new(plain(4));
    let node = |id| Vertex::Node(windtunnel_model::NodeId(id));
    net.apply(0, &NetworkChange::Partition(&[vec![node(0), node(1)], vec![node(2)]]));
    net.send(0, 0, PLAIN, &broadcast(&net, 0));
    assert_eq!(ports(&net.out), [1, 3], "3 is on no side, and keeps its links");
    net.send(0, 2, PLAIN, &udp(&net, 2, 0, 100));
    assert_eq!(ports(&net.out), [1, 3]);
    assert_eq!(net.engine.lane(down(2)).dropped[DropReason::Partition], 1);
    assert_eq!(net.engine.lane(down(0)).dropped[DropReason::Partition], 1);
    net.check_conservation();
    net.apply(MS, &NetworkChange::Heal);
    net.send(MS, 2, PLAIN, &udp(&net, 2, 0, 100));
    assert_eq!(ports(&net.out), [1, 3, 0]);
}

#[test]
fn a_partition_that_names_the_lan_cuts_attachments() {
    let mut net = Net::new(plain(3));
    let node = |id| Vertex::Node(windtunnel_model::NodeId(id));
    let lan = Vertex::Lan(windtunnel_model::LanId(0));
    net.apply(0, &NetworkChange::Partition(&[vec![node(0)], vec![lan, node(2)]]));
    net.send(0, 1, PLAIN, &broadcast(&net, 1));
    net.send(0, 0, PLAIN, &broadcast(&net, 0));
    assert_eq!(ports(&net.out), [2]);
}

#[test]
fn address_resolution_takes_no_luck_from_programs_packets() {
    // Packet 2 of the attachment is lost, whatever kernels say in between.
    let listed = LinkProfile { loss: Loss::Listed(vec![2]), ..LinkProfile::default() };
    let mut net = Net::new(office(&[listed, LinkProfile::default()]));
    for _ in 0..3 {
        net.send(0, 0, PLAIN, &question(&net, 0, net.address(1)));
        net.send(0, 0, PLAIN, &udp(&net, 0, 1, 100));
    }
    net.finish();
    let kinds: Vec<bool> = net.out.iter().map(|out| Message::parse(&out.frame).is_ok()).collect();
    assert_eq!(kinds, [true, false, true, true, false]);
    assert_eq!(net.engine.lane(up(0)).offered_packets, 6);
}

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
    let reply = Message::parse(&net.out[1].frame).unwrap();
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
    Neighbour::write_solicitation(host, mac(&net, 0), own, &mut frame).unwrap();
    net.send(0, 0, PLAIN, &frame);
    let reply = net.out.iter().find(|out| out.port == 0).unwrap();
    let reply = Neighbour::parse(&reply.frame).unwrap();
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
        .map(|o| (o.port, Message::parse(&o.frame).unwrap()))
        .collect();
    assert_eq!(asked[0].1.target.1, Ipv4Addr::new(10, 1, 0, 1));
    assert_eq!(asked.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0, 1]);
    net.send(11 * MS, 0, PLAIN, &answer(&net, 0, &asked[0].1));
    net.send(12 * MS, 2, PLAIN, &build::udp(net.socket(2), net.socket(0), b"in"));
    net.finish();
    let packets: Vec<_> = net
        .out
        .iter()
        .filter_map(|o| Some((o.port, o.at, Info::parse(&o.frame).ok()?.ttl)))
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
    let last = ethernet::View::parse(&net.out.last().unwrap().frame).unwrap();
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
    let asked = Message::parse(&net.out[1].frame).unwrap();
    assert_eq!(asked.target.1, leased);
    net.send(MS, 1, PLAIN, &answer(&net, 1, &asked));
    net.finish();
    let got = net.out.last().unwrap();
    assert_eq!((got.port, Info::parse(&got.frame).unwrap().destination), (1, leased.into()));
}

#[test]
fn an_address_without_a_reply_is_unreachable_after_three_seconds() {
    let mut net = branch();
    let to = "10.1.0.200:9".parse().unwrap();
    net.send(0, 2, PLAIN, &build::udp(net.socket(2), to, b"hello"));
    net.finish();
    let questions = net.out.iter().filter(|out| Message::parse(&out.frame).is_ok());
    assert_eq!(
        questions.map(|out| (out.at, out.port)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (1000 * MS, 0), (1000 * MS, 1), (2000 * MS, 0), (2000 * MS, 1),]
    );
    let refusal = net.out.last().unwrap();
    let info = Info::parse(&refusal.frame).unwrap();
    let message = icmp::View::parse(info.payload(&refusal.frame)).unwrap();
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
    let asked = Message::parse(&net.out[0].frame).unwrap();
    assert_eq!((net.out.len(), net.out[0].port), (1, 1));
    net.send(0, 1, PLAIN, &answer(&net, 1, &asked));
    let got = Info::parse(&net.out[1].frame).unwrap();
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
