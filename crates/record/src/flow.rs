//! Definitions of flows.

use std::net::{IpAddr, SocketAddr};

use windtunnel_model::record::{EventRecord, Kind, halves, words};

/// The number of TCP in IP headers.
pub(crate) const TCP: u8 = 6;

/// The number of UDP.
pub(crate) const UDP: u8 = 17;

/// The records that define the flow of a socket: its own side first.
pub(crate) fn definitions(
    time: u64,
    flow: u32,
    protocol: u8,
    own: SocketAddr,
    peer: SocketAddr,
) -> [EventRecord; 2] {
    let side = |kind: Kind, address: SocketAddr| EventRecord {
        time,
        kind: kind as u8,
        flags: protocol,
        extra: address.port(),
        flow,
        args: words(address_bytes(address.ip())),
    };
    [side(Kind::FlowFrom, own), side(Kind::FlowTo, peer)]
}

/// The record that names the socket of a flow; a process or a descriptor of 0 is not known.
pub(crate) fn socket(time: u64, flow: u32, cookie: u64, pid: u32, descriptor: u32) -> EventRecord {
    let [low, high] = halves(cookie);
    let args = [low, high, pid, descriptor];
    EventRecord { time, kind: Kind::FlowSocket as u8, flags: 0, extra: 0, flow, args }
}

fn address_bytes(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
