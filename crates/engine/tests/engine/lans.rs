//! LANs: frames through a segment.

mod routers;

use std::net::{IpAddr, Ipv4Addr};

use windtunnel_model::plan::{EventAction, PartitionMode};
use windtunnel_model::profile::LossModel;
use windtunnel_model::{
    DropReason, Lane, LinkDirection, LinkId, LinkProfile, NetworkVertex, Plan, Span,
};
use windtunnel_wire::arp::{self, ArpPacket};
use windtunnel_wire::{build, ethernet, vnet};

use crate::support::{MS, Net, Out, Topology, delayed, partition, rated, up};

const PLAIN: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
    flags: 0,
    gso_type: 0,
    hdr_len: 0,
    gso_size: 0,
    csum_start: 0,
    csum_offset: 0,
};
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
    Lane { link: LinkId(link), direction: LinkDirection::Down }
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
    let message = ArpPacket {
        operation: arp::REQUEST,
        sender: (mac(net, from), v4(net.address(from))),
        target: ([0; 6], v4(target)),
    };
    let mut frame = vec![0; arp::FRAME_LEN];
    message.write(ALL, &mut frame).unwrap();
    frame
}

/// The answer of the host at a port to a question.
fn answer(net: &Net, from: usize, question: &ArpPacket) -> Vec<u8> {
    let message = ArpPacket {
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
    let node = |id| NetworkVertex::Node(windtunnel_model::NodeId(id));
    net.apply(0, &partition(vec![vec![node(0), node(1)], vec![node(2)]]));
    net.send(0, 0, PLAIN, &broadcast(&net, 0));
    assert_eq!(ports(&net.out), [1, 3], "3 is on no side, and keeps its links");
    net.send(0, 2, PLAIN, &udp(&net, 2, 0, 100));
    assert_eq!(ports(&net.out), [1, 3]);
    assert_eq!(net.engine.lane(down(2)).dropped[DropReason::Partition], 1);
    assert_eq!(net.engine.lane(down(0)).dropped[DropReason::Partition], 1);
    net.check_conservation();
    net.apply(MS, &EventAction::Heal);
    net.send(MS, 2, PLAIN, &udp(&net, 2, 0, 100));
    assert_eq!(ports(&net.out), [1, 3, 0]);
}

/// Jepsen's majorities-ring: each of five sees itself and two others, a majority, and no two of them
/// the same one.
#[test]
fn pairs_on_one_lan_give_each_node_a_majority_of_its_own() {
    let mut net = Net::new(plain(5));
    let node = |id| vec![NetworkVertex::Node(windtunnel_model::NodeId(id))];
    let cut = [[0, 2], [0, 3], [1, 3], [1, 4], [2, 4]];
    let groups: Vec<Vec<NetworkVertex>> = cut.iter().flatten().map(|id| node(*id)).collect();
    net.apply(0, &EventAction::Partition { groups, cut: PartitionMode::Pairs });
    let seen: Vec<Vec<u32>> = (0..5)
        .map(|from| {
            let before = net.out.len();
            let frame = broadcast(&net, usize::try_from(from).unwrap());
            net.send(0, from, PLAIN, &frame);
            ports(&net.out[before..])
        })
        .collect();
    assert_eq!(seen, [[1, 4], [0, 2], [1, 3], [2, 4], [0, 3]]);
    net.check_conservation();
    net.apply(MS, &EventAction::Heal);
    let before = net.out.len();
    net.send(MS, 0, PLAIN, &broadcast(&net, 0));
    assert_eq!(ports(&net.out[before..]), [1, 2, 3, 4]);
}

#[test]
fn a_partition_that_names_the_lan_cuts_attachments() {
    let mut net = Net::new(plain(3));
    let node = |id| NetworkVertex::Node(windtunnel_model::NodeId(id));
    let lan = NetworkVertex::Lan(windtunnel_model::LanId(0));
    net.apply(0, &partition(vec![vec![node(0)], vec![lan, node(2)]]));
    net.send(0, 1, PLAIN, &broadcast(&net, 1));
    net.send(0, 0, PLAIN, &broadcast(&net, 0));
    assert_eq!(ports(&net.out), [2]);
}

#[test]
fn address_resolution_takes_no_luck_from_programs_packets() {
    // Packet 2 of the attachment is lost, whatever kernels say in between.
    let listed = LinkProfile { loss: LossModel::Listed(vec![2]), ..LinkProfile::default() };
    let mut net = Net::new(office(&[listed, LinkProfile::default()]));
    for _ in 0..3 {
        net.send(0, 0, PLAIN, &question(&net, 0, net.address(1)));
        net.send(0, 0, PLAIN, &udp(&net, 0, 1, 100));
    }
    net.finish();
    let kinds: Vec<bool> = net.out.iter().map(|out| ArpPacket::parse(&out.frame).is_ok()).collect();
    assert_eq!(kinds, [true, false, true, true, false]);
    assert_eq!(net.engine.lane(up(0)).offered_packets, 6);
}
