//! Packets that are too large.

use std::net::IpAddr;

use windtunnel_model::{DropReason, LinkProfile, Span};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::segment::PacketTrain;
use windtunnel_wire::{build, checksum, fragment, icmp, vnet};

use crate::support::{MS, Net, Topology, delayed, path};

fn narrow(mtu: u32) -> LinkProfile {
    LinkProfile { mtu, ..delayed(Span::from_millis(1)) }
}

/// Type, code, source and MTU of an ICMP error.
fn message(frame: &[u8]) -> (u8, u8, IpAddr, u16) {
    assert!(checksum::verify(frame));
    let packet = ParsedPacket::parse(frame).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    let [_, _, high, low] = view.rest();
    (view.kind(), view.code(), packet.info.source, u16::from_be_bytes([high, low]))
}

#[test]
fn a_router_reports_the_mtu_of_the_next_link_from_where_the_packet_came_in() {
    let mut net = Net::new(path(1, vec![delayed(Span::from_millis(1)), narrow(1400)]));
    let frame = build::with_dont_fragment(net.udp(1401, 0));
    net.send(0, 0, vnet::VirtioNetHeader::default(), &frame);
    net.finish();
    assert_eq!(net.lane(1).dropped[DropReason::Mtu], 1);
    assert_eq!((net.out[0].port, net.out[0].at), (0, MS));
    assert_eq!(message(&net.out[0].frame), (3, 4, [10, 0, 0, 2].into(), 1400));
    net.send(
        2 * MS,
        0,
        vnet::VirtioNetHeader::default(),
        &build::with_dont_fragment(net.udp(1400, 0)),
    );
    net.finish();
    assert_eq!(net.out[1].port, 1);
}

#[test]
fn ipv6_is_never_fragmented() {
    let mut net = Net::new(path(1, vec![delayed(Span::from_millis(1)), narrow(1400)]));
    let address =
        |port: usize| -> IpAddr { net.plan.ports().nth(port).unwrap().1.v6.unwrap().into() };
    let frame = build::ip(address(0), address(1), 17, &[0; 1400]);
    net.send(0, 0, vnet::VirtioNetHeader::default(), &frame);
    net.finish();
    assert_eq!(message(&net.out[0].frame), (2, 0, "fd00::2".parse().unwrap(), 1400));
    assert_eq!(net.engine.router(windtunnel_model::RouterId(0)).icmp_sent, 1);
}

#[test]
fn ipv4_without_df_is_fragmented_with_a_complete_checksum() {
    let mut net = Net::new(path(1, vec![LinkProfile::default(), narrow(600)]));
    let whole = net.udp(1500, 9);
    let (frame, header) = build::partial(whole.clone());
    net.send(0, 0, header, &frame);
    net.finish();
    let lens: Vec<usize> = net.out.iter().map(|out| out.frame.len() - 14).collect();
    assert_eq!(lens, [596, 596, 348]);
    assert_eq!(net.times(), [MS, MS, MS]);
    let joined: Vec<u8> = net.out.iter().flat_map(|out| out.frame[34..].to_vec()).collect();
    assert_eq!(joined, whole[34..]);
    let lane = net.lane(1);
    assert_eq!((lane.fragmented, lane.fragments, lane.delivered_packets), (1, 3, 3));
    net.check_conservation();
}

#[test]
fn fragments_are_those_of_the_wire_room() {
    let mut net = Net::new(path(1, vec![LinkProfile::default(), narrow(999)]));
    let frame = build::with_ttl(net.udp(1400, 3), 64);
    net.send(0, 0, vnet::VirtioNetHeader::default(), &frame);
    net.finish();
    let passed = build::with_ttl(frame, 63);
    for (index, out) in (0u32..).zip(&net.out) {
        let mut expected = vec![0; 1500];
        let len = fragment::write(&passed, 999, index, &mut expected).unwrap();
        assert_eq!(out.frame[14..], expected[14..len]);
    }
    assert_eq!(net.out.len(), 2);
}

#[test]
fn the_full_segments_of_a_train_are_refused_once_and_a_short_last_one_passes() {
    let mut net = Net::new(path(1, vec![LinkProfile::default(), narrow(1000)]));
    let (mut frame, header) =
        build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[7; 5000], 1460);
    // DF; the header's checksum follows.
    frame[20] |= 0x40;
    let sum = u16::from_be_bytes([frame[24], frame[25]]);
    frame[24..26].copy_from_slice(&checksum::update(sum, 0, 0x4000).to_be_bytes());
    assert_eq!(PacketTrain::new(&frame, &header).count, 4);
    net.send(0, 0, header, &frame);
    net.finish();
    assert_eq!(net.lane(1).dropped[DropReason::Mtu], 3);
    assert_eq!(net.out.len(), 2);
    assert_eq!(message(&net.out[0].frame), (3, 4, [10, 0, 0, 2].into(), 1000));
    assert_eq!((net.out[1].port, net.out[1].frame.len()), (1, 14 + 40 + 5000 - 3 * 1460));
    net.check_conservation();
}

#[test]
fn a_nodes_own_narrow_link_reports_from_its_far_end() {
    let mut plan = Topology::new(1);
    let ends = [plan.node("a"), plan.node("b")];
    let wide = LinkProfile { mtu: 9000, ..LinkProfile::default() };
    plan.link(ends, [narrow(1000), wide]);
    let mut net = Net::new(plan.build());
    let frame = build::with_dont_fragment(net.udp(1200, 0));
    net.send(5, 0, vnet::VirtioNetHeader::default(), &frame);
    net.finish();
    assert_eq!((net.out[0].port, net.out[0].at), (0, 5));
    assert_eq!(message(&net.out[0].frame), (3, 4, [10, 0, 0, 2].into(), 1000));
    assert_eq!(net.out[0].frame[..6], [2, 0x77, 0x74, 0, 0, 0]);
}
