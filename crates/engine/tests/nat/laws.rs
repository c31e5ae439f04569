//! Laws of NATs over random packets.

use proptest::prelude::*;
use std::net::SocketAddr;
use windtunnel_model::RouterId;
use windtunnel_wire::{build, tcp};

use crate::support::MS;
use crate::{Home, TYPES};

/// A packet: from a node, its port, the receiver, the port there, of which protocol, how long after the last.
type Step = (u32, u16, u32, u16, u8, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4u32, 0..3u16, 0..6u32, 0..3u16, 0..4u8, 0..200_000u64);
    prop::collection::vec(step, 1..120)
}

fn play(router: &str, steps: &[Step], outer: &str) -> Home {
    let mut home = Home::with_links(router, outer);
    for (from, port, to, there, kind, wait) in steps {
        home.at += wait * MS / 10;
        let source = home.end(*from, 5000 + port);
        let to = match to {
            0..4 => home.end(*to, 5000 + there),
            4 => home.external(5000 + there),
            _ => SocketAddr::new([10, 9, 9, 9].into(), 5000 + there),
        };
        let frame = match kind {
            0 | 1 => build::udp(source, to, b"hello"),
            2 => build::tcp(source, to, 1, if *there == 0 { tcp::SYN } else { tcp::ACK }, b"x"),
            _ => build::echo_request(source.ip(), to.ip(), 5000 + port, 1, b"ping"),
        };
        home.net.send(home.at, *from, crate::PLAIN, &frame);
    }
    home
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What comes to a router is forwarded, refused for a reason, or answered.
    #[test]
    fn packets_are_conserved_at_every_router(
        steps in steps(),
        kind in 0..TYPES.len(),
        firewall in any::<bool>(),
        slow in any::<bool>(),
    ) {
        let filter = if firewall { ", firewall: {rules: [{reject: 5001/udp}]}" } else { "" };
        let ports = "ports: 5000-5003, udp-timeout: 3s";
        let router = format!("{{nat: {{type: {}, {ports}}}{filter}}}", TYPES[kind]);
        let outer = if slow { ", latency: 30ms, rate: 1mbit" } else { "" };
        let mut home = play(&router, &steps, outer);
        home.net.finish();
        home.net.check_conservation();
        for router in [0, 1] {
            let counters = *home.net.engine.router(RouterId(router));
            let links = &home.net.plan.routers[router as usize].interfaces;
            let came: u64 = links.iter().map(|it| {
                let lane = windtunnel_model::Lane { link: it.link, direction: it.outward.reverse() };
                home.net.engine.lane(lane).delivered_packets
            }).sum();
            let refused = counters.ttl_expired + counters.no_route + counters.not_forwarded
                + counters.malformed + counters.filtered + counters.no_mapping
                + counters.exhausted + counters.untranslatable;
            prop_assert_eq!(came, counters.forwarded + refused + counters.echo_answered);
            prop_assert!(counters.translated <= counters.forwarded);
        }
        let counters = home.nat().counters();
        let (made, expired) = (counters.mappings_made, counters.mappings_expired);
        prop_assert_eq!(made, expired, "all are over at the end");
        prop_assert_eq!(home.nat_held(), (0, 0));
        prop_assert!(home.net.out.iter().all(|out| windtunnel_wire::checksum::verify(&out.frame)));
    }

    /// Nothing outside ever sees an address inside, and nothing inside one that it did not send to
    /// or that its filter does not let in.
    #[test]
    fn no_address_of_inside_is_seen_outside(steps in steps(), kind in 0..TYPES.len()) {
        let home = play(&format!("{{nat: {}}}", TYPES[kind]), &steps, "");
        let inside = [home.end(0, 0).ip(), home.end(1, 0).ip()];
        for out in home.net.out.iter().filter(|out| out.port >= 2) {
            let info = windtunnel_wire::packet::ParsedPacket::parse(&out.frame).unwrap().info;
            prop_assert!(!inside.contains(&info.source));
            // Quotes of what is outside itself were sent there.
            let is_own = info.is_icmp_error;
            prop_assert!(is_own || !inside.contains(&info.destination));
        }
    }

    /// Links that hold packets change nothing of what becomes of them.
    #[test]
    fn a_packet_that_passes_at_once_is_translated_as_one_that_waits(
        steps in steps(),
        kind in 0..TYPES.len(),
    ) {
        let router = format!("{{nat: {}}}", TYPES[kind]);
        let at_once = play(&router, &steps, "");
        let mut held = play(&router, &steps, ", queue: 9999p, rate: 100gbit");
        held.net.run_until(held.at + MS / 100);
        let frames = |home: &Home| {
            let mut frames: Vec<(u32, Vec<u8>)> =
                home.net.out.iter().map(|out| (out.port, out.frame.clone())).collect();
            frames.sort();
            frames
        };
        prop_assert_eq!(frames(&at_once), frames(&held));
        prop_assert_eq!(
            at_once.nat().mappings(999).len(),
            held.nat().mappings(999).len()
        );
        prop_assert_eq!(at_once.counters(), held.counters());
    }
}
