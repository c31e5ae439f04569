//! Datagrams that their senders fragment, and packets that are fragmented with their outer header.

use windtunnel_model::plan::{ServiceUpdate, TunnelEncapsulation};
use windtunnel_model::profile::LossModel;
use windtunnel_model::{LinkPatch, NodeId, Probability};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, fragment, tcp};

use super::redirect::down;
use super::*;
use crate::support::{MS, up};

/// A datagram of so many bytes, as a kernel fragments it for 1500 bytes.
fn message(from: u16, bytes: usize) -> Vec<Vec<u8>> {
    let payload: Vec<u8> = (0..bytes).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mut frame = build::udp(client(from), dns(), &payload);
    frame[18..20].copy_from_slice(&from.to_be_bytes());
    let frame = build::with_ttl(frame, 64);
    let count = fragment::count(&frame, 1500).unwrap();
    let piece = |index| {
        let mut out = vec![0; 1514];
        let len = fragment::write(&frame, 1500, index, &mut out).unwrap();
        out.truncate(len);
        out
    };
    (0..count).map(piece).collect()
}

fn paper() -> Net {
    world(Service { encapsulation: TunnelEncapsulation::Fragment, v6: None, ..service() })
}

#[test]
fn later_fragments_follow_the_first() {
    let mut net = world(Service { encapsulation: TunnelEncapsulation::None, ..service() });
    for frame in message(1, 4000) {
        net.call(0, &frame);
    }
    // A policy by which it would go elsewhere now.
    net.update(MS, ServiceUpdate::Drain { replica: NodeId(NEAR), drain: true });
    for frame in message(2, 4000) {
        net.call(2 * MS, &frame);
    }
    net.finish();
    let ports: Vec<u32> = net.out.iter().map(|out| out.port).collect();
    assert_eq!(ports, [NEAR, NEAR, NEAR, FAR, FAR, FAR]);
    assert_eq!(net.counters(0).flows, 1);
}

#[test]
fn a_fragment_before_the_first_of_its_datagram_is_not_redirected_and_counted() {
    let mut net = world(service());
    let fragments = message(1, 2000);
    assert_eq!(net.ask(&fragments[1]), [] as [u32; 0], "no error about a later fragment");
    assert_eq!(net.engine.services().pins().unknown_fragments, 1);
    assert_eq!(net.engine.router(RouterId(0)).no_route, 1);
    net.ask(&fragments[0]);
    assert_eq!(net.ask(&fragments[1]), [NEAR]);
    let at = net.now.as_nanos();
    net.run_until(at + 31_000 * MS);
    assert_eq!(net.ask(&fragments[1]), [] as [u32; 0], "forgotten after 30 s");
}

#[test]
fn the_papers_message_of_1600_bytes_is_three_packets_in_the_tunnel() {
    let mut net = paper();
    let fragments = message(1, 1600);
    let lengths: Vec<u32> =
        fragments.iter().map(|it| ParsedPacket::parse(it).unwrap().info.ip_len).collect();
    assert_eq!(lengths, [1500, 148], "1608 bytes of UDP: 1480 and 128");
    for frame in &fragments {
        net.call(0, frame);
    }
    net.finish();
    let lane = net.engine.lane(up(4));
    // 1500 with 20 more are 1520: 1480 of 1500 in one packet (1500), 20 in the next (40); 148 + 20.
    assert_eq!((lane.delivered_packets, lane.delivered_bytes), (3, 1500 + 40 + 168));
    assert_eq!((lane.fragmented, lane.fragments), (1, 2));
    assert_eq!(net.out.len(), 2, "put together at the replica");
    // The second was whole, and passed the first, whose fragments came one after the other.
    for (out, sent) in net.out.iter().zip(&fragments) {
        assert_eq!(out.frame[14..], after(sent, 2)[14..]);
        assert!(checksum::verify(&out.frame));
        assert_eq!(out.port, NEAR);
    }
    net.check_conservation();
}

#[test]
fn messages_around_the_mtu_have_the_packets_that_arithmetic_says() {
    // Bytes of UDP payload, and packets and bytes in the tunnel.
    let table = [
        // 28 bytes of headers and 20 more.
        (64, 1, 112),
        (1400, 1, 1448),
        (1452, 1, 1500),
        // 1481 bytes behind the outer header: 1480 and 1.
        (1453, 2, 1500 + 21),
        // 1480 and 20.
        (1472, 2, 1500 + 40),
        // Here the sender makes fragments, of 1500 and 21 bytes.
        (1473, 3, 1500 + 40 + 41),
        (1600, 3, 1500 + 40 + 168),
    ];
    for (bytes, packets, total) in table {
        let mut net = paper();
        for frame in message(1, bytes) {
            net.call(0, &frame);
        }
        net.finish();
        let lane = net.engine.lane(up(4));
        assert_eq!((lane.delivered_packets, lane.delivered_bytes), (packets, total), "{bytes}");
        assert_eq!(net.out.len(), message(1, bytes).len());
        net.check_conservation();
    }
}

#[test]
fn a_train_that_may_not_be_fragmented_is_so_with_its_outer_header() {
    let mut net = paper();
    let (frame, header) = build::tcp_train(client(1), www(), 0, tcp::ACK, &[1; 4380], 1460);
    let frame = build::with_dont_fragment(frame);
    net.send(0, CLIENT, header, &frame);
    net.finish();
    let lane = net.engine.lane(up(4));
    assert_eq!((lane.delivered_packets, lane.delivered_bytes), (6, 3 * (1500 + 40)));
    assert_eq!(net.out.len(), 3);
    for out in &net.out {
        assert_eq!((out.port, out.frame.len()), (NEAR, 1514));
        assert!(checksum::verify(&out.frame), "complete before it was wrapped");
        assert_eq!(out.frame[20] & 0x40, 0x40, "the inner packet is what it was");
    }
}

#[test]
fn half_a_packet_is_given_up_after_30_s_and_its_memory_comes_back() {
    let mut net = paper();
    net.call(0, &build::udp(client(1), dns(), &[0; 1472]));
    // Between the two fragments on the last link there is no time: cut by the list of losses.
    let patch = LinkPatch { loss: Some(LossModel::Listed(vec![4])), ..LinkPatch::default() };
    net.patch(0, down(1), patch);
    net.call(10 * MS, &build::udp(client(1), dns(), &[0; 1472]));
    net.run_until(100 * MS);
    assert_eq!(net.out.len(), 1, "of two messages, four fragments, the last of which is lost");
    assert!(net.engine.in_flight_bytes() > 0);
    net.run_until(31_000 * MS);
    assert_eq!(net.engine.in_flight_bytes(), 0);
    assert_eq!(net.engine.services().pins().not_reassembled, 1);
    net.finish();
}

#[test]
fn fragments_that_come_twice_or_in_another_order_make_one_packet() {
    let mut net = paper();
    let patch = LinkPatch { duplicate: Some(Probability::ALWAYS), ..LinkPatch::default() };
    net.patch(0, up(4), patch);
    net.call(0, &build::udp(client(1), dns(), &[5; 1472]));
    net.finish();
    // Copies come behind: of each fragment one more. The first two make the packet; what is left
    // of the second lot makes another.
    assert!(!net.out.is_empty());
    for out in &net.out {
        assert_eq!(out.frame[42..], [5; 1472]);
    }
}
