//! Errors reach the end that they are about.

use windtunnel_model::plan::EventAction;
use windtunnel_model::{LinkPatch, RouterId};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, icmp, tcp};

use super::redirect::down;
use super::*;
use crate::support::{MS, up};

fn message(frame: &[u8]) -> (IpAddr, u8, u8) {
    assert!(checksum::verify(frame));
    let packet = ParsedPacket::parse(frame).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    (packet.info.source, view.kind(), view.code())
}

#[test]
fn traceroute_sees_every_router_of_the_way_inside_of_the_tunnel_too() {
    let mut net = world(service());
    for ttl in 1..=3 {
        let at = u64::from(ttl) * 100 * MS;
        net.call(at, &build::with_ttl(syn(u16::from(ttl)), ttl));
    }
    net.finish();
    assert_eq!(
        (net.out[0].port, message(&net.out[0].frame)),
        (CLIENT, (address("10.0.0.2"), 11, 0))
    );
    assert_eq!(
        (net.out[1].port, message(&net.out[1].frame)),
        (CLIENT, (address("10.0.4.2"), 11, 0))
    );
    assert_eq!((net.out[2].port, net.out[2].frame[22]), (NEAR, 1));
    // The quoted packet is the client's own.
    let quoted = &net.out[1].frame[42..];
    assert_eq!(quoted[12..20], [10, 0, 0, 1, 10, 1, 0, 80]);
    assert_eq!(net.counters(0).connections, 2, "what ends at the redirector begins nothing");
}

#[test]
fn an_error_about_an_answer_comes_to_the_replica_that_sent_it() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    let at = net.now.as_nanos();
    // The near replica is not the nearest any more, and the answer meets a narrow link at r2.
    net.patch(
        at,
        down(1),
        LinkPatch { latency: Some(Span::from_millis(50)), ..LinkPatch::default() },
    );
    net.patch(at, down(4), LinkPatch { mtu: Some(1400), ..LinkPatch::default() });
    let before = net.out.len();
    let answer = build::with_dont_fragment(build::tcp(www(), client(1), 1, tcp::ACK, &[0; 1460]));
    net.send(at, NEAR, PLAIN, &answer);
    net.run_until(at + 1_000 * MS);
    assert_eq!(net.out.len(), before + 1);
    let out = &net.out[before];
    assert_eq!(out.port, NEAR);
    assert_eq!(message(&out.frame), (address("10.0.1.2"), 3, 4));
    assert_eq!(out.frame[30..34], V4.octets(), "to the service's address");
    assert_eq!(net.engine.router(RouterId(1)).redirected, 1);
}

#[test]
fn an_error_about_an_answer_finds_its_sender_though_no_flow_is_known() {
    let mut net = world(service());
    net.patch(0, down(4), LinkPatch { mtu: Some(1400), ..LinkPatch::default() });
    let answer = build::with_dont_fragment(build::tcp(www(), client(1), 1, tcp::ACK, &[0; 1460]));
    net.send(0, NEAR, PLAIN, &answer);
    net.run_until(1_000 * MS);
    // 3 ms there and back: its pin may be on the machine of its client.
    assert_eq!((net.out.len(), net.out[0].port, net.out[0].at), (1, NEAR, 6 * MS));
}

#[test]
fn an_error_about_an_answer_that_no_redirector_can_pass_on_is_counted() {
    // r2 does not redirect; without an origin it has no way for the service's address.
    let mut net = world(Service { at: vec![RouterId(0)], ..service() });
    net.patch(0, down(4), LinkPatch { mtu: Some(1400), ..LinkPatch::default() });
    let answer = build::with_dont_fragment(build::tcp(www(), client(1), 1, tcp::ACK, &[0; 1460]));
    net.send(0, NEAR, PLAIN, &answer);
    net.run_until(1_000 * MS);
    assert_eq!((net.out.len(), net.engine.services().pins().lost_errors), (0, 1));
    assert_eq!(net.engine.router(RouterId(1)).icmp_sent, 1);
}

#[test]
fn an_error_of_the_client_comes_to_its_replica() {
    let mut net = world(service());
    net.ask(&query(1));
    let about = build::udp(dns(), client(1), b"answer");
    let mut quoted = vec![3, 3, 0, 0, 0, 0, 0, 0];
    quoted.extend(&about[14..42]);
    let error = build::ip(client(1).ip(), V4.into(), 1, &quoted);
    assert_eq!(net.ask(&error), [NEAR]);
    let flow = net.engine.services().pinned(WWW, 9)[0];
    assert!(flow.silent_ms >= 1990, "an error prolongs nothing: {}", flow.silent_ms);
}

#[test]
fn an_error_about_an_unknown_flow_is_not_redirected() {
    let mut net = world(service());
    let about = build::udp(dns(), client(1), b"answer");
    let mut quoted = vec![3, 3, 0, 0, 0, 0, 0, 0];
    quoted.extend(&about[14..42]);
    assert_eq!(net.ask(&build::ip(client(1).ip(), V4.into(), 1, &quoted)), [] as [u32; 0]);
    assert_eq!(net.engine.services().pins().held, 0);
}

#[test]
fn a_tunnel_without_a_way_on_is_reported_to_the_client() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    let at = net.now.as_nanos();
    // Routes forget the near replica, which established connections keep.
    net.set_up(at, down(1), false);
    net.apply(at, &EventAction::Reroute);
    let before = net.out.len();
    assert_eq!(net.ask(&data(1, b"y")), [CLIENT]);
    assert_eq!(message(&net.out[before].frame), (address("10.0.0.2"), 3, 0), "network unreachable");
    assert_eq!(net.engine.lane(up(4)).offered_packets, 2);
}
