//! Firewalls.

use std::net::SocketAddr;

use windtunnel_model::RouterId;
use windtunnel_wire::icmp::{self, IcmpErrorKind, IcmpErrorReply, write_error};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, tcp};

use crate::support::{MS, Net};
use crate::{A, B, Home, PLAIN, S, T, load, seen};

#[test]
fn a_stateful_firewall_lets_answers_in_and_nothing_else() {
    let mut home = Home::new("{firewall: {}}");
    let (a, s, t) = (home.end(A, 5000), home.end(S, 80), home.end(T, 80));
    assert_eq!(home.udp(S, s, a), None);
    assert_eq!(home.udp(A, a, s), Some((S, a, s)));
    assert_eq!(home.udp(S, s, a), Some((A, s, a)));
    assert_eq!(home.udp(T, t, a), None);
    assert_eq!(home.tcp(S, s, a, tcp::SYN), None, "another protocol");
    assert_eq!(home.counters().filtered, 3);
    // 5 minutes later it is no answer any more.
    home.wait(300_000);
    assert_eq!(home.udp(S, s, a), None);
}

#[test]
fn errors_about_what_has_passed_do() {
    let mut home = Home::new("{firewall: {}}");
    let (a, s, t) = (home.end(A, 5000), home.end(S, 80), home.end(T, 0));
    let at_s = home.send(A, &build::udp(a, s, b"hello"))[0].1.clone();
    let about = |frame: &[u8], source: SocketAddr| {
        let kind = IcmpErrorKind::PortUnreachable;
        let reply = IcmpErrorReply { kind, source: source.ip(), mac: [2; 6] };
        let mut out = [0; 1294];
        let length = write_error(&reply, frame, &mut out).unwrap();
        out[..length].to_vec()
    };
    assert_eq!(home.send(S, &about(&at_s, s)).len(), 1);
    assert_eq!(home.send(T, &about(&at_s, t)).len(), 1);
    let other = build::udp(a, t, b"never sent");
    assert_eq!(home.send(T, &about(&other, t)).len(), 0);
}

#[test]
fn without_state_each_packet_is_judged_by_itself() {
    let mut home = Home::new(
        "{firewall: {stateful: false, rules: [{allow: [1024-65535/tcp, icmp], from: outside}]}}",
    );
    let (a, s) = (home.end(A, 5000), home.end(S, 80));
    assert_eq!(home.udp(A, a, s), Some((S, a, s)));
    assert_eq!(home.udp(S, s, a), None);
    assert_eq!(home.tcp(S, s, a, tcp::SYN), Some((A, s, a)));
    assert_eq!(home.tcp(S, s, home.end(A, 80), tcp::SYN), None);
    let ping = build::echo_request(s.ip(), a.ip(), 1, 1, b"");
    assert_eq!(home.send(S, &ping).len(), 1);
}

#[test]
fn the_first_rule_that_fits_holds() {
    let rules = "{firewall: {rules: [{deny: any, from: t}, {allow: 80/tcp, to: a}, \
                 {reject: any, to: b}, {deny: 25/tcp, from: inside, to: outside}]}}";
    let mut home = Home::new(rules);
    let (a, b, s, t) = (home.end(A, 80), home.end(B, 80), home.end(S, 9), home.end(T, 9));
    assert_eq!(home.tcp(S, s, a, tcp::SYN), Some((A, s, a)));
    assert_eq!(home.tcp(T, t, a, tcp::SYN), None);
    assert_eq!(home.tcp(S, s, home.end(A, 81), tcp::SYN), None);
    let rejected = home.send(S, &build::tcp(s, b, 1, tcp::SYN, b""));
    let packet = ParsedPacket::parse(&rejected[0].1).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    assert_eq!((rejected[0].0, view.kind(), view.code()), (S, 3, 13));
    assert_eq!(home.tcp(B, b, home.end(S, 25), tcp::SYN), None);
    assert_eq!(home.tcp(B, b, home.end(S, 26), tcp::SYN), Some((S, b, home.end(S, 26))));
    assert_eq!(home.counters().filtered, 4);
}

/// The order is that of netfilter: a firewall sees the endpoints that packets have inside.
#[test]
fn behind_a_nat_a_firewall_sees_what_is_inside() {
    let router = "{nat: {type: full-cone, forward: [{port: 8080, to: \"a:80\"}]}, \
                  firewall: {rules: [{allow: 80/tcp, to: a}]}}";
    let mut home = Home::new(router);
    let (a, s, t) = (home.end(A, 80), home.end(S, 9), home.end(T, 9));
    let web = home.external(8080);
    assert_eq!(home.tcp(S, s, web, tcp::SYN), Some((A, s, a)));
    assert_eq!(home.tcp(A, a, s, tcp::SYN | tcp::ACK), Some((S, web, s)));
    // A full cone lets all in, and the firewall does not.
    let external = home.mapped(5000, s);
    assert_eq!(home.udp(S, s, external), Some((A, s, home.end(A, 5000))));
    assert_eq!(home.udp(T, t, external), None);
    assert_eq!(home.counters().filtered, 1);
}

#[test]
fn ipv6_is_filtered_and_not_translated() {
    let text = "nodes: {a: {}, s: {}}\nrouters:\n  home: {nat: symmetric, firewall: {}}\n  r:\n\
                links:\n- {between: [a, home]}\n- {between: [home, r]}\n- {between: [s, r]}\n";
    let mut net = Net::new(load(text));
    let six = |net: &Net, port: usize| net.plan.ports().nth(port).unwrap().1.v6.unwrap().into();
    let [a, s] = [0, 1].map(|node| SocketAddr::new(six(&net, node), 5000));
    net.send(MS, 1, PLAIN, &build::udp(s, a, b"hello"));
    assert!(net.out.is_empty());
    net.send(2 * MS, 0, PLAIN, &build::udp(a, s, b"hello"));
    assert_eq!(seen(1, &net.out.pop().unwrap().frame), (1, a, s));
    net.send(3 * MS, 1, PLAIN, &build::udp(s, a, b"hello"));
    assert_eq!(seen(0, &net.out.pop().unwrap().frame), (0, s, a));
    let ping = build::echo_request(a.ip(), s.ip(), 7, 1, b"x");
    net.send(4 * MS, 0, PLAIN, &ping);
    let mut reply = net.out.pop().unwrap().frame;
    assert!(icmp::echo_reply_in_place(&mut reply, &mut PLAIN.clone()));
    net.send(5 * MS, 1, PLAIN, &reply);
    assert_eq!(net.out.pop().unwrap().port, 0);
    let counters = net.engine.router(RouterId(0));
    assert_eq!((counters.filtered, counters.translated), (1, 0));
}

/// Traffic between links of one side passes unless a rule says otherwise.
#[test]
fn one_side_is_not_a_boundary() {
    let mut home = Home::new("{firewall: {rules: [{deny: udp, from: a, to: b}]}}");
    let (a, b) = (home.end(A, 1), home.end(B, 2));
    assert_eq!(home.tcp(A, a, b, tcp::SYN), Some((B, a, b)));
    assert_eq!(home.udp(A, a, b), None);
}
