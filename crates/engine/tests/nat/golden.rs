//! The requirements of RFC 4787, RFC 5382 and RFC 5508, one by one, as packets show them.
//!
//! Those about bytes are in `errors.rs` and `fragments.rs`.

use windtunnel_wire::{build, icmp, tcp};

use crate::{A, B, Home, S, T, TYPES};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;

/// RFC 4787, 4.1, and REQ-1: whether a second remote endpoint sees the same external one.
#[test]
fn req_1_cones_map_by_the_internal_endpoint_and_symmetric_nats_by_both() {
    for (name, is_same) in TYPES.iter().zip([true, true, true, false]) {
        let mut home = Home::of_type(name);
        let [first, second, third] = [(S, 3478), (S, 3479), (T, 3478)].map(|(node, port)| {
            let to = home.end(node, port);
            home.mapped(5000, to)
        });
        assert_eq!(first == second, is_same, "{name}: another port");
        assert_eq!(first == third, is_same, "{name}: another address");
        let to = home.end(S, 3478);
        assert_eq!(home.mapped(5000, to), first, "{name}: the same again");
        assert_ne!(home.mapped(5001, to), first, "{name}: another internal endpoint");
    }
}

/// RFC 4787, 5, and REQ-8: what passes of what is sent to the external endpoint of a, which has sent
/// to port 3478 of s only.
#[test]
fn req_8_filters_are_those_of_their_types() {
    // From the same endpoint, another port of it, another address.
    let table = [
        ("full-cone", [true, true, true]),
        ("address-restricted", [true, true, false]),
        ("port-restricted", [true, false, false]),
        ("symmetric", [true, false, false]),
    ];
    for (name, passes) in table {
        let mut home = Home::of_type(name);
        let to = home.end(S, 3478);
        let external = home.mapped(5000, to);
        for ((node, port), passes) in [(S, 3478), (S, 3479), (T, 3478)].into_iter().zip(passes) {
            let (from, inside) = (home.end(node, port), home.end(A, 5000));
            let came = home.udp(node, from, external);
            assert_eq!(came, passes.then_some((A, from, inside)), "{name} from {from}");
        }
        let dropped = passes.iter().filter(|it| !**it).count();
        assert_eq!(home.counters().filtered, u64::try_from(dropped).unwrap(), "{name}");
    }
}

/// RFC 4787, REQ-3 and 4.2.1: no port is given twice, and one that is free is preserved.
#[test]
fn req_3_ports_are_preserved_and_never_overloaded() {
    for name in &TYPES[..3] {
        let mut home = Home::of_type(name);
        let (to, other) = (home.end(S, 3478), home.end(B, 5000));
        assert_eq!(home.mapped(5000, to).port(), 5000, "{name}");
        let (_, second, _) = home.udp(B, other, to).unwrap();
        assert_ne!(second.port(), 5000, "{name}");
        assert!(second.port() >= 1024 && second.port() % 2 == 0, "{name}: REQ-3a, REQ-4");
        let low = home.end(B, 123);
        let (_, low, _) = home.udp(B, low, to).unwrap();
        assert_eq!(low.port(), 123, "{name}");
    }
}

/// RFC 4787, REQ-4: an odd port gets an odd one.
#[test]
fn req_4_the_parity_of_a_port_is_kept() {
    let mut home = Home::new("{nat: {type: full-cone, ports: 40000-40099}}");
    let to = home.end(S, 3478);
    for port in 5000..5050 {
        let external = home.mapped(port, to).port();
        assert!((40_000..=40_099).contains(&external));
        assert_eq!(external % 2, port % 2);
    }
}

/// RFC 4787, REQ-5 and REQ-5c: a mapping lives for 5 minutes, to the nanosecond.
#[test]
fn req_5_a_udp_mapping_lives_for_its_time() {
    for (details, lives) in [("", 5 * MINUTE), (", udp-timeout: 30s", 30 * SECOND)] {
        for late in [false, true] {
            let mut home = Home::new(&format!("{{nat: {{type: full-cone{details}}}}}"));
            let to = home.end(S, 3478);
            let external = home.mapped(5000, to);
            // It was sent 1 ms ago, and this is sent in 1 ms.
            home.wait(lives - 2 - u64::from(!late));
            let came = home.udp(S, to, external);
            assert_eq!(came.is_none(), late);
            let counters = home.counters();
            assert_eq!(counters.no_mapping, u64::from(late), "nothing is known of it any more");
        }
    }
}

/// RFC 4787, REQ-6: what leaves keeps a mapping alive; REQ-6a: what comes may.
#[test]
fn req_6_what_leaves_keeps_a_mapping_alive() {
    for (refresh, by_inbound) in [("outbound", false), ("both", true)] {
        for from_inside in [true, false] {
            let mut home = Home::new(&format!("{{nat: {{type: full-cone, refresh: {refresh}}}}}"));
            let to = home.end(S, 3478);
            let external = home.mapped(5000, to);
            for _ in 0..3 {
                home.wait(3 * MINUTE);
                if from_inside {
                    assert_eq!(home.mapped(5000, to), external);
                } else {
                    home.udp(S, to, external);
                }
            }
            // A stranger too would keep it alive, if it could.
            let stranger = home.end(T, 9);
            let lives = home.udp(T, stranger, external).is_some();
            assert_eq!(lives, from_inside || by_inbound, "{refresh}, {from_inside}");
        }
    }
}

/// RFC 4787, REQ-9 and REQ-9a; RFC 5382, REQ-8: two nodes inside, by their external endpoints.
#[test]
fn req_9_a_hairpin_has_the_external_source() {
    let mut home = Home::of_type("full-cone");
    let (to, a, b) = (home.end(S, 3478), home.end(A, 5000), home.end(B, 6000));
    let external = home.mapped(5000, to);
    let came = home.udp(B, b, external);
    assert_eq!(came, Some((A, home.external(6000), a)));
    assert_eq!(home.udp(A, a, home.external(6000)), Some((B, external, b)));
    let syn = home.tcp(A, a, to, tcp::SYN).unwrap().1;
    assert_eq!(home.tcp(B, b, syn, tcp::SYN), Some((A, home.external(6000), a)));
    // Each is a filter for the other, too.
    let mut home = Home::of_type("port-restricted");
    let external = home.mapped(5000, to);
    assert_eq!(home.udp(B, b, external), None);
    assert_eq!(home.udp(A, a, home.external(6000)), Some((B, external, b)));
    assert_eq!(home.udp(B, b, external), Some((A, home.external(6000), a)));
}

/// Without it such a packet is the router's own, which has no such port.
#[test]
fn a_nat_without_hairpin_refuses_what_comes_from_inside() {
    let mut home = Home::new("{nat: {type: full-cone, hairpin: false}}");
    let (to, b) = (home.end(S, 3478), home.end(B, 6000));
    let external = home.mapped(5000, to);
    let frames = home.send(B, &build::udp(b, external, b"hello"));
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].0, frames[0].1[34]), (B, 3), "destination unreachable");
}

/// RFC 4787, REQ-11: the same packets get the same answers, also under pressure.
#[test]
fn req_11_behaviour_is_deterministic() {
    let play = || {
        let mut home = Home::new("{nat: {type: symmetric, ports: 40000-40009}}");
        let to = home.end(S, 3478);
        let ports: Vec<u16> = (5000..5010).map(|port| home.mapped(port, to).port()).collect();
        (ports, home.udp(A, home.end(A, 6000), to))
    };
    let (ports, beyond) = play();
    assert_eq!((ports, beyond), play());
}

/// RFC 5508, REQ-8: where no port is left, the sender gets to know.
#[test]
fn a_range_that_is_used_up_is_reported_and_counted() {
    let mut home = Home::new("{nat: {type: port-restricted, ports: 40000-40001}}");
    let to = home.end(S, 3478);
    let first = home.mapped(5000, to);
    home.mapped(5001, to);
    let frames = home.send(B, &build::udp(home.end(B, 5002), to, b"hello"));
    assert_eq!(frames.len(), 1);
    let packet = windtunnel_wire::packet::ParsedPacket::parse(&frames[0].1).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    assert_eq!((frames[0].0, view.kind(), view.code()), (B, 3, 13));
    assert_eq!(home.counters().exhausted, 1);
    // The others stay as they are (RFC 4787, REQ-11).
    assert_eq!(home.mapped(5000, to), first);
}

/// RFC 5382, REQ-1 and REQ-3: connections are mapped and filtered as datagrams are.
#[test]
fn tcp_req_1_and_3_connections_are_mapped_and_filtered_by_type() {
    for (name, is_same) in TYPES.iter().zip([true, true, true, false]) {
        let mut home = Home::of_type(name);
        let (a, s, t) = (home.end(A, 5000), home.end(S, 80), home.end(T, 80));
        let first = home.tcp(A, a, s, tcp::SYN).unwrap().1;
        let second = home.tcp(A, a, t, tcp::SYN).unwrap().1;
        assert_eq!(first == second, is_same, "{name}");
        assert_eq!(home.tcp(S, s, first, tcp::SYN | tcp::ACK), Some((S - 2, s, a)), "{name}");
    }
}

/// RFC 5382, REQ-2: each end sends a SYN before it gets one.
#[test]
fn tcp_req_2_a_simultaneous_open_passes() {
    let mut home = Home::of_type("port-restricted");
    let (a, s) = (home.end(A, 5000), home.end(S, 80));
    let external = home.tcp(A, a, s, tcp::SYN).unwrap().1;
    assert_eq!(home.tcp(S, s, external, tcp::SYN), Some((A, s, a)));
    assert_eq!(home.tcp(A, a, s, tcp::SYN | tcp::ACK), Some((S, external, s)));
    assert_eq!(home.tcp(S, s, external, tcp::SYN | tcp::ACK), Some((A, s, a)));
}

/// RFC 5382, REQ-4 and REQ-4a: a SYN that nothing has asked for gets no answer.
#[test]
fn tcp_req_4_an_unsolicited_syn_is_dropped_in_silence() {
    let mut home = Home::of_type("full-cone");
    let (s, external) = (home.end(S, 80), home.external(5000));
    assert_eq!(home.tcp(S, s, external, tcp::SYN), None);
    home.wait(10 * SECOND);
    assert!(home.new_frames().is_empty());
    assert_eq!(home.counters().no_mapping, 1);
}

/// RFC 5382, REQ-5: 2 h 4 min once established, 4 min before and after.
#[test]
fn tcp_req_5_connections_have_the_times_of_their_states() {
    const SYN_ACK: u8 = tcp::SYN | tcp::ACK;
    const FIN_ACK: u8 = tcp::FIN | tcp::ACK;
    let open = [(true, tcp::SYN), (false, SYN_ACK), (true, tcp::ACK)];
    let closed = [&open[..], &[(true, FIN_ACK), (false, FIN_ACK), (true, tcp::ACK)]].concat();
    let reset = [&open[..], &[(false, tcp::RST)]].concat();
    let cases = [
        (&open[..2], 4 * MINUTE),
        (&open[..], 124 * MINUTE),
        (&closed[..], 4 * MINUTE),
        (&reset[..], 4 * MINUTE),
    ];
    for (segments, lives) in cases {
        for late in [false, true] {
            let mut home = Home::of_type("port-restricted");
            let (a, s) = (home.end(A, 5000), home.end(S, 80));
            let external = home.external(5000);
            for (out, flags) in segments {
                let came =
                    if *out { home.tcp(A, a, s, *flags) } else { home.tcp(S, s, external, *flags) };
                assert!(came.is_some());
            }
            home.wait(lives - 2 - u64::from(!late));
            assert_eq!(home.tcp(S, s, external, tcp::ACK).is_none(), late, "{segments:?}");
        }
    }
}

/// RFC 5508, REQ-1 and REQ-1a: a query and its answer pass, with one identifier for all receivers.
#[test]
fn icmp_req_1_queries_pass_and_their_answers_do() {
    for name in TYPES {
        let mut home = Home::of_type(name);
        let [a, s, t] = [A, S, T].map(|node| home.end(node, 0).ip());
        let out = home.send(A, &build::echo_request(a, s, 77, 3, b"ping"));
        let outside = u16::from_be_bytes([out[0].1[38], out[0].1[39]]);
        assert_eq!(outside == 77, name != "symmetric", "{name}");
        let expected = build::echo_request(home.router(2), s, outside, 3, b"ping");
        assert_eq!((out[0].0, &out[0].1[26..]), (S, &expected[26..]), "{name}");
        let mut reply = expected;
        let mut header = crate::PLAIN;
        assert!(icmp::echo_reply_in_place(&mut reply, &mut header));
        let back = home.send(S, &reply);
        assert_eq!(back.len(), 1, "{name}");
        let packet = windtunnel_wire::packet::ParsedPacket::parse(&back[0].1).unwrap();
        let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
        assert_eq!((back[0].0, packet.info.destination, view.identifier()), (A, a, 77), "{name}");
        let other = home.send(A, &build::echo_request(a, t, 77, 4, b"ping"));
        let identifier = u16::from_be_bytes([other[0].1[38], other[0].1[39]]);
        assert_eq!(identifier == 77, name != "symmetric", "{name}");
        // Of two nodes with one identifier each has its own outside.
        let b = home.end(B, 0).ip();
        let other = home.send(B, &build::echo_request(b, s, 77, 3, b"ping"));
        assert_ne!(u16::from_be_bytes([other[0].1[38], other[0].1[39]]), 77, "{name}");
    }
}

/// RFC 5508, REQ-2: a query is known for 60 s.
#[test]
fn icmp_req_2_a_query_is_known_for_a_minute() {
    for late in [false, true] {
        let mut home = Home::of_type("port-restricted");
        let [a, s] = [A, S].map(|node| home.end(node, 0).ip());
        let mut frame = home.send(A, &build::echo_request(a, s, 77, 3, b"ping"))[0].1.clone();
        let mut header = crate::PLAIN;
        assert!(icmp::echo_reply_in_place(&mut frame, &mut header));
        home.wait(MINUTE - 2 - u64::from(!late));
        assert_eq!(home.send(S, &frame).is_empty(), late);
    }
}

/// An answer that nothing has asked for; a query to the NAT itself it answers.
#[test]
fn what_is_for_no_node_inside_is_the_routers_own_or_dropped() {
    let mut home = Home::of_type("full-cone");
    let s = home.end(S, 0).ip();
    let asked = home.send(S, &build::echo_request(s, home.router(2), 9, 1, b""));
    assert_eq!((asked.len(), asked[0].0), (1, S));
    let mut answer = build::echo_request(home.router(2), s, 9, 1, b"");
    let mut header = crate::PLAIN;
    assert!(icmp::echo_reply_in_place(&mut answer, &mut header));
    assert!(home.send(S, &answer).is_empty());
    let other = home.send(S, &build::ip(s, home.router(2), 47, &[0; 20]));
    assert!(other.is_empty());
    assert_eq!(home.counters().no_mapping, 2);
    let gre = home.send(A, &build::ip(home.end(A, 0).ip(), s, 47, &[0; 20]));
    assert!(gre.is_empty());
    assert_eq!(home.counters().untranslatable, 1);
}

/// Forwarded ports lead inside from anywhere, and their answers come from them.
#[test]
fn a_forwarded_port_leads_inside_whatever_the_type() {
    for name in TYPES {
        let mut home = Home::new(&format!(
            "{{nat: {{type: {name}, forward: [{{port: 8080, to: \"a:80\"}}, \
             {{port: 53, to: b, protocol: udp}}]}}}}"
        ));
        let (a, b, s) = (home.end(A, 80), home.end(B, 53), home.end(S, 4000));
        let (web, dns) = (home.external(8080), home.external(53));
        assert_eq!(home.tcp(S, s, web, tcp::SYN), Some((A, s, a)), "{name}");
        assert_eq!(home.tcp(A, a, s, tcp::SYN | tcp::ACK), Some((S, web, s)), "{name}");
        assert_eq!(home.udp(S, s, dns), Some((B, s, b)), "{name}");
        assert_eq!(home.udp(B, b, s), Some((S, dns, s)), "{name}");
        // Its hour is not over while nothing comes.
        home.wait(300 * MINUTE);
        assert_eq!(home.tcp(S, s, web, tcp::SYN), Some((A, s, a)), "{name}");
        // From inside, too, where the source is external then.
        let client = home.end(B, 4000);
        let came = home.tcp(B, client, web, tcp::SYN).unwrap();
        assert_eq!((came.0, came.1.ip(), came.2), (A, home.router(2), a), "{name}");
    }
}

/// Sequential allocation: the next mapping has the next port.
#[test]
fn a_sequential_symmetric_nat_can_be_predicted() {
    let mut home = Home::new("{nat: {type: symmetric, port-allocation: sequential}}");
    let (s, t) = (home.end(S, 3478), home.end(T, 3478));
    let first = home.mapped(5000, s).port();
    assert_eq!(home.mapped(5000, t).port(), first + 1);
    assert_eq!(home.mapped(7001, t).port(), first + 2);
}
