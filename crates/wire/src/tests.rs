//! Laws over whole frames.

mod corpus;
mod edits;
mod fragments;
mod messages;
mod trains;

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

/// A pair of addresses with ports, of one family.
fn endpoints() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = (any::<[u8; 3]>(), any::<[u8; 3]>()).prop_map(|(a, b)| -> (IpAddr, IpAddr) {
        ([10, a[0], a[1], a[2]].into(), [10, b[0], b[1], b[2]].into())
    });
    let v6 = (any::<[u16; 7]>(), any::<[u16; 7]>()).prop_map(|(a, b)| -> (IpAddr, IpAddr) {
        let full = |x: [u16; 7]| [0xfd00, x[0], x[1], x[2], x[3], x[4], x[5], x[6]].into();
        (full(a), full(b))
    });
    (prop_oneof![v4, v6], any::<u16>(), any::<u16>())
        .prop_map(|((a, b), from, to)| (SocketAddr::new(a, from), SocketAddr::new(b, to)))
}

/// One endpoint pair of each family, for tests with literal values.
fn pairs() -> [(SocketAddr, SocketAddr); 2] {
    let pair = |a: &str, b: &str| (a.parse().unwrap(), b.parse().unwrap());
    [pair("10.0.0.1:1000", "10.0.0.2:2000"), pair("[fd00::1]:1000", "[fd00::2]:2000")]
}

/// A payload that differs everywhere.
fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 256).to_le_bytes()[0]).collect()
}

/// A whole packet of some kind.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let data = proptest::collection::vec(any::<u8>(), 0..600);
    (endpoints(), data, 0..3u8).prop_map(|((from, to), data, kind)| match kind {
        0 => crate::build::tcp(from, to, 77, 0x19, &data),
        1 => crate::build::udp(from, to, &data),
        _ => crate::build::echo_request(from.ip(), to.ip(), 5, 6, &data),
    })
}
