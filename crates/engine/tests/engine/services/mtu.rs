//! Sizes: what fits a tunnel, and which end gets the error.

use windtunnel_model::LinkPatch;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, icmp, mss, tcp};

use super::redirect::down;
use super::*;
use crate::support::{MS, up};

fn narrow(mtu: u32) -> LinkPatch {
    LinkPatch { mtu: Some(mtu), ..LinkPatch::default() }
}

/// Source, type, code and MTU of an ICMP error in a frame, whose checksums hold.
fn error(frame: &[u8]) -> (IpAddr, u8, u8, u32) {
    assert!(checksum::verify(frame));
    let packet = ParsedPacket::parse(frame).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    (packet.info.source, view.kind(), view.code(), u32::from_be_bytes(view.rest()))
}

#[test]
fn what_is_too_large_with_its_header_is_answered_with_the_mtu_without_it() {
    let mut net = world(service());
    let full = build::with_dont_fragment(build::udp(client(1), dns(), &[0; 1472]));
    assert_eq!(net.ask(&full), [CLIENT]);
    // r1's address on the client's link.
    assert_eq!(error(&net.out[0].frame), (address("10.0.0.2"), 3, 4, 1480));
    // What is quoted is the packet as its sender knows it, but for its TTL.
    assert_eq!(net.out[0].frame[42..70], after(&full, 1)[14..42]);
    let fits = build::with_dont_fragment(build::udp(client(1), dns(), &[0; 1452]));
    assert_eq!(net.ask(&fits), [NEAR]);
    assert_eq!(net.engine.lane(up(4)).dropped.total(), 1);
    net.check_conservation();
}

#[test]
fn over_ipv6_the_header_is_40_bytes() {
    let mut net = world(service());
    let full = build::udp(client6(1), (V6, 53).into(), &[0; 1452]);
    assert_eq!(net.ask(&full), [CLIENT]);
    assert_eq!(error(&net.out[0].frame), (address("fd00::2"), 2, 0, 1460));
    let fits = build::udp(client6(1), (V6, 53).into(), &[0; 1412]);
    assert_eq!(net.ask(&fits), [NEAR]);
}

#[test]
fn the_router_before_a_narrow_link_inside_of_the_tunnel_says_so() {
    let mut net = world(service());
    net.patch(0, down(1), narrow(1400));
    let large = build::with_dont_fragment(build::udp(client(1), dns(), &[0; 1400]));
    assert_eq!(net.ask(&large), [CLIENT]);
    // r2's interface by which the packet came.
    assert_eq!(error(&net.out[0].frame), (address("10.0.4.2"), 3, 4, 1380));
    let fits = build::with_dont_fragment(build::udp(client(1), dns(), &[0; 1352]));
    assert_eq!(net.ask(&fits), [NEAR]);
}

#[test]
fn what_may_be_fragmented_is_so_inside_of_the_tunnel() {
    let mut net = world(service());
    let payload: Vec<u8> = (0..=250).cycle().take(1472).collect();
    let full = build::udp(client(1), dns(), &payload);
    net.call(0, &full);
    net.finish();
    assert_eq!(net.out.len(), 2);
    let info = |at: usize| ParsedPacket::parse(&net.out[at].frame).unwrap().info;
    // 1480 bytes of payload in pieces of 1456, a multiple of 8 that leaves room for both headers.
    assert_eq!((info(0).ip_len, info(1).ip_len), (1476, 44));
    assert!(info(0).is_fragment && info(1).is_later_fragment);
    assert_eq!(net.engine.lane(up(4)).delivered_bytes, 1496 + 64);
    let joined = [&net.out[0].frame[34..], &net.out[1].frame[34..]].concat();
    assert_eq!(joined, full[34..]);
    net.check_conservation();
}

#[test]
fn segments_of_a_train_that_are_too_large_are_refused_together() {
    let mut net = world(service());
    let (frame, header) = build::tcp_train(client(1), www(), 0, tcp::ACK, &[1; 14_600], 1460);
    let frame = build::with_dont_fragment(frame);
    let (frame, header) = (frame, header);
    net.send(0, CLIENT, header, &frame);
    net.finish();
    let errors: Vec<_> = net.out.iter().map(|out| (out.port, error(&out.frame).3)).collect();
    assert_eq!(errors, [(CLIENT, 1480)], "one message for ten segments");
    assert_eq!(net.engine.lane(up(4)).dropped.total(), 10);
}

fn syn_ack(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut frame = build::tcp(from, to, 7, tcp::SYN | tcp::ACK, &[2, 4, 0x05, 0xb4]);
    let at = ParsedPacket::parse(&frame).unwrap().info.transport;
    frame[at + 12] = 0x60;
    let (mut frame, mut header) = build::partial(frame);
    assert!(checksum::complete(&mut frame, &mut header));
    frame
}

#[test]
fn a_replica_offers_segments_that_fit_its_tunnels() {
    let mut net = world(service());
    net.send(0, NEAR, PLAIN, &syn_ack(www(), client(1)));
    net.send(0, NEAR, PLAIN, &syn_ack((V6, 80).into(), client6(1)));
    net.finish();
    // 1500 less two IP headers and a TCP header; the offer of 1460 is that of a link by itself.
    let offers: Vec<_> = net.out.iter().map(|out| mss::offer(&out.frame)).collect();
    assert_eq!(offers, [Some(1440), Some(1400)]);
    assert!(net.out.iter().all(|out| checksum::verify(&out.frame)));
    assert_eq!(net.engine.services().counters(WWW).clamped, 2);
}

#[test]
fn the_offer_follows_the_narrowest_way_from_any_redirector() {
    let offer = |net: &mut Net| {
        let at = net.now.as_nanos();
        let before = net.out.len();
        net.send(at, NEAR, PLAIN, &syn_ack(www(), client(1)));
        net.run_until(at + 100 * MS);
        mss::offer(&net.out[before].frame).unwrap()
    };
    let mut net = world(service());
    assert_eq!(offer(&mut net), 1440);
    // Only r3's way to the near replica leads over link 5, down.
    let at = net.now.as_nanos();
    net.patch(at, down(5), narrow(1300));
    assert_eq!(offer(&mut net), 1240);
    let at = net.now.as_nanos();
    net.set_up(at, down(5), false);
    assert_eq!(offer(&mut net), 1440, "nothing comes over it now");
}

#[test]
fn nothing_is_clamped_without_a_header_and_for_what_is_no_service() {
    let mut none = world(Service { encapsulation: TunnelEncapsulation::None, ..service() });
    none.send(0, NEAR, PLAIN, &syn_ack(www(), client(1)));
    let mut net = world(service());
    net.send(0, NEAR, PLAIN, &syn_ack((V4, 81).into(), client(1)));
    net.send(0, ORIGIN, PLAIN, &syn_ack(www(), client(1)));
    net.finish();
    none.finish();
    let all = none.out.iter().chain(&net.out);
    assert!(all.map(|out| mss::offer(&out.frame)).all(|offer| offer == Some(1460)));
}

#[test]
fn a_connection_with_the_clamped_offer_meets_no_limit() {
    let mut net = world(service());
    // 1440 bytes of data, as the offer allows, without options.
    let segment = build::with_dont_fragment(data(1, &[9; 1440]));
    assert_eq!(net.ask(&segment), [NEAR]);
    assert_eq!(net.engine.lane(up(4)).delivered_bytes, 1500);
}
