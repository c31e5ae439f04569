//! What is reached of the inside of a NAT, and what is not.

use windtunnel_model::RouterId;
use windtunnel_model::plan::EventAction;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, icmp, tcp};

use crate::support::{MS, Net};
use crate::{A, B, Home, PLAIN, S, T, load, seen};

/// Kind and code of the ICMP message in a frame.
fn message(frame: &[u8]) -> (u8, u8) {
    let packet = ParsedPacket::parse(frame).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    (view.kind(), view.code())
}

#[test]
fn an_address_inside_has_no_route_outside() {
    let mut home = Home::of_type("full-cone");
    let (a, s) = (home.end(A, 5000), home.end(S, 5000));
    let frames = home.send(S, &build::udp(s, a, b"hello"));
    assert_eq!((frames.len(), frames[0].0, message(&frames[0].1)), (1, S, (3, 0)));
    assert_eq!(home.net.engine.router(RouterId(1)).no_route, 1, "the first router knows");
    // The address of the NAT inside is one, too.
    let frames = home.send(S, &build::echo_request(s.ip(), home.router(0), 1, 1, b""));
    assert_eq!(message(&frames[0].1), (3, 0));
}

#[test]
fn nodes_on_one_side_talk_as_without_a_nat() {
    let mut home = Home::of_type("symmetric");
    let (a, b, s, t) = (home.end(A, 1), home.end(B, 2), home.end(S, 3), home.end(T, 4));
    assert_eq!(home.udp(A, a, b), Some((B, a, b)));
    assert_eq!(home.udp(S, s, t), Some((T, s, t)));
    assert_eq!(home.counters().translated, 0);
}

#[test]
fn a_route_is_traced_through_a_nat() {
    let mut home = Home::of_type("port-restricted");
    let (a, s) = (home.end(A, 40_000), home.end(S, 33_434));
    let probe = |ttl| build::with_ttl(build::udp(a, s, b"probe"), ttl);
    let near = home.send(A, &probe(1));
    let info = ParsedPacket::parse(&near[0].1).unwrap().info;
    assert_eq!((near[0].0, message(&near[0].1), info.source), (A, (11, 0), home.router(0)));
    let far = home.send(A, &probe(2));
    let info = ParsedPacket::parse(&far[0].1).unwrap().info;
    assert_eq!((far[0].0, message(&far[0].1)), (A, (11, 0)));
    assert_eq!(Some(info.source), home.net.plan.routers[1].interfaces[0].v4.map(Into::into));
    // What is quoted is what a has sent.
    let quoted = &far[0].1[info.transport + 8..];
    assert_eq!(quoted[12..16], crate::v4(a.ip()).octets());
    assert_eq!(quoted[20..22], 40_000u16.to_be_bytes());
    assert_eq!(home.send(A, &probe(3)).len(), 1);
}

#[test]
fn trains_are_translated_whole() {
    let mut home = Home::of_type("port-restricted");
    let (a, s) = (home.end(A, 5000), home.end(S, 80));
    let (frame, header) = build::tcp_train(a, s, 0, 0x10, &[1; 30_000], 1460);
    home.net.send(MS, A, header, &frame);
    home.net.run_until(2 * MS);
    let out = home.net.out[0].clone();
    assert_eq!((out.port, out.vnet), (S, header));
    let (expected, _) = build::tcp_train(home.external(5000), s, 0, 0x10, &[1; 30_000], 1460);
    // All but the time to live and the checksum over it.
    assert!(out.frame[26..] == expected[26..]);
    assert_eq!(home.counters().translated, 21);
    let mapping = home.nat().mappings(10)[0];
    assert_eq!((mapping.outbound, mapping.inbound), (21, 0));
    // On links with properties, too.
    let mut home = Home::with_links("{nat: port-restricted}", ", latency: 1ms, rate: 100mbit");
    home.net.send(MS, A, header, &frame);
    home.net.run_until(100 * MS);
    let came: usize = home.net.out.iter().map(|out| out.frame.len() - 54).sum();
    assert_eq!(came, 30_000);
    for out in &home.net.out {
        let (port, from, to) = seen(out.port, &out.frame);
        assert_eq!((port, from, to), (S, home.external(5000), s));
    }
}

#[test]
fn mappings_are_shown_and_those_that_are_over_are_given_once() {
    let mut home = Home::of_type("symmetric");
    let (s, t) = (home.end(S, 3478), home.end(T, 53));
    let first = home.mapped(5000, s);
    home.mapped(5000, t);
    let shown = home.nat().mappings(10);
    assert_eq!(shown.len(), 2);
    let of_first = shown.iter().find(|it| it.external.port == first.port()).unwrap();
    assert_eq!(of_first.internal.to_string(), home.end(A, 5000).to_string());
    assert_eq!(of_first.remote.unwrap().to_string(), s.to_string());
    assert_eq!(home.nat_held(), (2, 2));
    home.wait(300_000);
    assert_eq!(home.nat_held(), (0, 0));
    let (router, ended) = home.net.engine.poll_ended_mapping().unwrap();
    assert_eq!((router, ended.mapping.external.port), (RouterId(0), first.port()));
    assert_eq!(ended.ended, ended.mapping.made + windtunnel_model::Span::from_secs(300));
    assert!(home.net.engine.poll_ended_mapping().is_some());
    assert!(home.net.engine.poll_ended_mapping().is_none());
    let counters = home.nat().counters();
    assert_eq!((counters.mappings_made, counters.mappings_expired), (2, 2));
    assert!(home.net.engine.nat(RouterId(1)).is_none());
}

/// On LANs a router finds its neighbours: what waits for that is translated once.
#[test]
fn a_nat_between_two_lans_asks_for_its_neighbours() {
    let text = "ipv6: false\nnodes: {a: {}, s: {}}\nrouters: {gate: {nat: full-cone, inside: home}}\n\
                lans: [home, net]\nlinks:\n- {between: [a, home]}\n- {between: [gate, home]}\n\
                - {between: [gate, net]}\n- {between: [s, net]}\n";
    let plan = load(text);
    let gate: Vec<_> =
        plan.routers[0].interfaces.iter().map(|it| (it.mac(), it.v4.unwrap())).collect();
    let macs: Vec<[u8; 6]> = plan.ports().map(|(_, it)| it.mac()).collect();
    let mut net = Net::new(plan);
    let [a, s] = [0, 1].map(|node| std::net::SocketAddr::new(net.address(node), 5000));
    let mut frame = build::udp(a, s, b"hello");
    windtunnel_wire::ethernet::set_addresses(&mut frame, gate[0].0, macs[0]);
    net.send(MS, 0, PLAIN, &frame);
    // It asks for the address of s.
    let question = net.out.pop().unwrap();
    assert_eq!((question.port, &question.frame[38..42]), (1, &crate::v4(s.ip()).octets()[..]));
    let message = windtunnel_wire::arp::ArpPacket {
        operation: windtunnel_wire::arp::REPLY,
        sender: (macs[1], crate::v4(s.ip())),
        target: (gate[1].0, gate[1].1),
    };
    let mut answer = [0; 60];
    let len = message.write(gate[1].0, &mut answer).unwrap();
    net.send(2 * MS, 1, PLAIN, &answer[..len]);
    let out = net.out.pop().unwrap();
    let external = std::net::SocketAddr::new(gate[1].1.into(), 5000);
    assert_eq!(seen(out.port, &out.frame), (1, external, s));
    assert!(windtunnel_wire::checksum::verify(&out.frame));
    // Now it knows, and the next one passes at once.
    net.send(3 * MS, 0, PLAIN, &frame);
    assert_eq!(seen(1, &net.out.pop().unwrap().frame), (1, external, s));
    let mapping = net.engine.nat(RouterId(0)).unwrap().mappings(10)[0];
    assert_eq!(mapping.outbound, 2, "each packet is counted once");
}

#[test]
fn a_link_that_goes_down_leaves_mappings_as_they_are() {
    let mut home = Home::of_type("port-restricted");
    let s = home.end(S, 3478);
    let external = home.mapped(5000, s);
    home.net.set_up(home.at + MS, crate::support::up(2), false);
    home.at += 2 * MS;
    assert_eq!(home.udp(A, home.end(A, 5000), s), None);
    home.net.set_up(home.at + MS, crate::support::up(2), true);
    home.net.apply(home.at + MS, &EventAction::Reroute);
    home.at += 2 * MS;
    assert_eq!(home.mapped(5000, s), external);
    assert_eq!(home.tcp(A, home.end(A, 5000), home.end(S, 80), tcp::SYN).map(|it| it.0), Some(S));
}
