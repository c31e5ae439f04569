//! ICMP errors through NATs and of NATs (RFC 4787, REQ-12 and REQ-13; RFC 5382, REQ-9 and REQ-10;
//! RFC 5508, REQ-3 to REQ-7).

use std::net::SocketAddr;

use windtunnel_wire::icmp::{self, IcmpErrorKind, IcmpErrorReply, write_error};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, tcp};

use crate::{A, B, Home, S, T, TYPES};

/// An error about a frame, from an address.
fn error(kind: IcmpErrorKind, source: SocketAddr, about: &[u8]) -> Vec<u8> {
    let reply = IcmpErrorReply { kind, source: source.ip(), mac: [2; 6] };
    let mut out = [0; 1294];
    let length = write_error(&reply, about, &mut out).unwrap();
    out[..length].to_vec()
}

/// The IP packet of a frame with a time to live that is not looked at.
fn packet(frame: &[u8]) -> Vec<u8> {
    build::with_ttl(frame.to_vec(), 64)[14..].to_vec()
}

#[test]
fn icmp_req_4_an_error_from_outside_is_one_about_what_the_node_has_sent() {
    for name in TYPES {
        let mut home = Home::of_type(name);
        let (a, s, t) = (home.end(A, 5000), home.end(S, 3478), home.end(T, 0));
        for make in [
            |from, to| build::udp(from, to, b"hello"),
            |from, to| build::tcp(from, to, 1, tcp::SYN, b""),
        ] {
            let outside = home.send(A, &make(a, s))[0].1.clone();
            // Whichever router or host sends it (RFC 4787, REQ-12a).
            for (node, source) in [(S, s), (T, t)] {
                let back =
                    home.send(node, &error(IcmpErrorKind::PortUnreachable, source, &outside));
                assert_eq!(back.len(), 1, "{name}");
                let inside = build::with_ttl(make(a, s), 62);
                let expected = error(IcmpErrorKind::PortUnreachable, source, &inside);
                assert_eq!((back[0].0, packet(&back[0].1)), (A, packet(&expected)), "{name}");
            }
        }
    }
}

#[test]
fn req_12_an_error_ends_no_mapping_and_keeps_none_alive() {
    let mut home = Home::of_type("port-restricted");
    let (a, s) = (home.end(A, 5000), home.end(S, 3478));
    let outside = home.send(A, &build::udp(a, s, b"hello"))[0].1.clone();
    let message = error(IcmpErrorKind::PortUnreachable, s, &outside);
    assert_eq!(home.send(S, &message).len(), 1);
    assert_eq!(home.mapped(5000, s), home.external(5000));
    for _ in 0..3 {
        home.wait(99_000);
        assert_eq!(home.send(S, &message).len(), 1);
    }
    // 5 minutes after the last datagram.
    home.wait(3_000);
    assert_eq!(home.send(S, &message).len(), 0);
    assert_eq!(home.counters().no_mapping, 1);
}

#[test]
fn icmp_req_3_and_4_an_error_that_fits_nothing_is_dropped() {
    let mut home = Home::of_type("full-cone");
    let (a, s) = (home.end(A, 5000), home.end(S, 3478));
    let outside = home.send(A, &build::udp(a, s, b"hello"))[0].1.clone();
    let mut wrong = error(IcmpErrorKind::PortUnreachable, s, &outside);
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    assert!(home.send(S, &wrong).is_empty());
    assert_eq!(home.counters().untranslatable, 1);
    let unknown = build::udp(home.external(5001), s, b"hello");
    assert!(home.send(S, &error(IcmpErrorKind::PortUnreachable, s, &unknown)).is_empty());
    assert_eq!(home.counters().no_mapping, 1);
}

#[test]
fn icmp_req_5_an_error_from_inside_comes_from_the_nat_and_quotes_what_was_sent_to_it() {
    let mut home = Home::new("{nat: {type: full-cone, forward: [{port: 8080, to: \"a:80\"}]}}");
    let (a, b, s) = (home.end(A, 80), home.end(B, 0), home.end(S, 4000));
    let make = |to| build::tcp(s, to, 1, tcp::SYN, b"");
    let inside = home.send(S, &make(home.external(8080)))[0].1.clone();
    assert_eq!(crate::seen(A, &inside), (A, s, a));
    // Of the node itself, and of another host inside, as a router there would send it.
    for (node, source) in [(A, a), (B, b)] {
        let out = home.send(node, &error(IcmpErrorKind::HostUnreachable, source, &inside));
        assert_eq!((out.len(), out[0].0), (1, S));
        let about = build::with_ttl(make(home.external(8080)), 62);
        let expected = error(IcmpErrorKind::HostUnreachable, home.external(0), &about);
        assert_eq!(packet(&out[0].1), packet(&expected));
    }
    // Nothing is known of this one.
    let unknown = build::udp(s, a, b"hello");
    assert!(home.send(A, &error(IcmpErrorKind::PortUnreachable, a, &unknown)).is_empty());
    assert_eq!(home.counters().no_mapping, 1);
}

#[test]
fn icmp_req_7_an_error_about_a_hairpin_is_translated_twice() {
    let mut home = Home::of_type("full-cone");
    let (a, b, s) = (home.end(A, 5000), home.end(B, 6000), home.end(S, 3478));
    let external = home.mapped(5000, s);
    let sent = build::udp(b, external, b"hello");
    let at_a = home.send(B, &sent)[0].1.clone();
    let back = home.send(A, &error(IcmpErrorKind::PortUnreachable, a, &at_a));
    assert_eq!((back.len(), back[0].0), (1, B));
    // TTL 63: it has passed one router, once.
    let expected = error(IcmpErrorKind::PortUnreachable, external, &build::with_ttl(sent, 63));
    assert_eq!(packet(&back[0].1), packet(&expected));
}

#[test]
fn req_13_what_is_too_large_and_may_not_be_fragmented_is_reported_to_its_sender() {
    let mut home = Home::with_links("{nat: full-cone}", ", mtu: 1300");
    let (a, s) = (home.end(A, 5000), home.end(S, 3478));
    let frame = build::with_dont_fragment(build::udp(a, s, &[7; 1400]));
    let back = home.send(A, &frame);
    assert_eq!((back.len(), back[0].0), (1, A));
    let packet = ParsedPacket::parse(&back[0].1).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    assert_eq!((view.kind(), view.code(), view.rest()), (3, 4, [0, 0, 5, 20]));
    let info = packet.info;
    assert_eq!((info.source, info.destination), (home.router(0), a.ip()));
    assert_eq!(view.body()[12..16], crate::v4(a.ip()).octets());
    assert_eq!(view.body()[20..22], 5000u16.to_be_bytes());
    // The same of what comes, on the way in: its sender knows the NAT's address only.
    let mut home = Home::of_type("full-cone");
    let external = home.mapped(5000, s);
    let narrow = windtunnel_model::LinkPatch { mtu: Some(1300), ..Default::default() };
    home.net.patch(
        home.at + 1,
        windtunnel_model::Lane {
            link: windtunnel_model::LinkId(0),
            direction: windtunnel_model::LinkDirection::Down,
        },
        narrow,
    );
    let frame = build::with_dont_fragment(build::udp(s, external, &[7; 1400]));
    let back = home.send(S, &frame);
    assert_eq!((back.len(), back[0].0), (1, S));
    let packet = ParsedPacket::parse(&back[0].1).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    assert_eq!((view.kind(), view.code()), (3, 4));
    assert_eq!(view.body()[16..20], crate::v4(external.ip()).octets());
}
