//! Fragments at NATs (RFC 4787, REQ-13a and REQ-14).

use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::{build, fragment};

use crate::support::MS;
use crate::{A, Home, S};

/// A datagram in fragments that fit 1000 bytes.
fn fragments(whole: &[u8]) -> Vec<Vec<u8>> {
    let count = fragment::count(whole, 1000).unwrap();
    let one = |index| {
        let mut out = vec![0; 1014];
        let length = fragment::write(whole, 1000, index, &mut out).unwrap();
        out.truncate(length);
        out
    };
    (0..count).map(one).collect()
}

#[test]
fn req_14_fragments_are_translated_in_whatever_order_they_come() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let mut home = Home::of_type("port-restricted");
        let (a, s) = (home.end(A, 5000), home.end(S, 3478));
        let parts = fragments(&build::udp(a, s, &[7; 2500]));
        assert_eq!(parts.len(), 3);
        let mut came = Vec::new();
        for index in order {
            assert!(came.is_empty(), "{order:?}");
            came = home.send(A, &parts[index]);
        }
        // Its next link has an MTU of 1500 bytes.
        assert_eq!(came.len(), 2, "{order:?}");
        let infos: Vec<IpPacketSummary> =
            came.iter().map(|(_, frame)| ParsedPacket::parse(frame).unwrap().info).collect();
        assert!(infos.iter().all(|info| info.source == home.router(2) && info.is_fragment));
        let counters = home.counters();
        assert_eq!((counters.fragments, counters.reassembled, counters.forwarded), (3, 1, 1));
        let answer = fragments(&build::udp(s, home.external(5000), &[8; 2500]));
        let back = [2, 0, 1].iter().flat_map(|at| home.send(S, &answer[*at])).collect::<Vec<_>>();
        assert_eq!(back.len(), 2, "{order:?}");
        assert!(back.iter().all(|(port, _)| *port == A));
        home.net.check_conservation();
    }
}

#[test]
fn a_datagram_that_is_never_whole_is_counted_and_its_bytes_come_back() {
    let mut home = Home::of_type("port-restricted");
    let (a, s) = (home.end(A, 5000), home.end(S, 3478));
    let parts = fragments(&build::udp(a, s, &[7; 2500]));
    assert!(home.send(A, &parts[0]).is_empty());
    assert!(home.send(A, &parts[2]).is_empty());
    home.net.run_until(home.at + 31_000 * MS);
    let counters = home.counters();
    assert_eq!((counters.fragments, counters.reassembled, counters.not_reassembled), (2, 0, 1));
    assert_eq!(home.net.engine.in_flight_bytes(), 0);
}
