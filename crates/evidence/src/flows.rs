//! One flow for what each layer, node and machine numbers for itself.
//!
//! A *local* flow is a number of one (member, layer, node), from its definition on. Local flows are
//! one global flow where
//!
//! 1. their ends are the same two, in either order. An end of a socket whose own address is not
//!    known (`0.0.0.0`) is completed from its cookie's other definitions, and from what another
//!    layer saw with the same peer and port. Loopback addresses are those of their node;
//! 2. nothing says that they are two connections with the same ends, one after the other: the same
//!    end has two cookies, or the same direction two initial sequence numbers. Where several remain
//!    possible, the one is taken whose time overlaps most, then the nearest.
//!
//! An unconnected UDP socket has a flow for each peer. Its number of a datagram counts from its
//! first one; where several sockets used the same two ends one after the other and the engine
//! saw that as one flow, the engine's records belong to the first ([`GlobalFlow::reused`]).
//!
//! The *direction* of a global flow is from the side that opened it: what called `connect`; else
//! whose SYN it was; else what sent first.

mod local;
#[cfg(test)]
mod tests;
mod unify;

pub(crate) use local::FlowCorrelator;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// What all layers and machines know as one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalFlow {
    /// The IP protocol: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// The side that opened it, or sent first. `None`: no source has defined it.
    pub from: Option<FlowEndpoint>,
    /// The other side.
    pub to: Option<FlowEndpoint>,
    /// First definition or record.
    pub begin_ns: u64,
    /// Last record.
    pub end_ns: u64,
    /// Its local flows.
    pub parts: Vec<LocalFlow>,
    /// A later flow has the same ends, and for the engine both are one: its records are all of this
    /// one, and their offsets do not join with those of the later one's sockets.
    pub reused: bool,
}

/// A side of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowEndpoint {
    /// IPv4 addresses are `::ffff:a.b.c.d`; unspecified where it is not known.
    pub address: Ipv6Addr,
    pub port: u16,
    /// The number of its node, where it is known.
    pub node: Option<u32>,
}

/// A local flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalFlow {
    /// The first source that had it: a position in [`RecordedRun::origins`](crate::RecordedRun::origins).
    pub origin: u32,
    /// Its number there.
    pub number: u32,
    /// Whether its `from` is the global `to`.
    pub flipped: bool,
    /// Its socket's cookie.
    pub cookie: Option<u64>,
    /// The process that made the socket, and the descriptor.
    pub process: Option<(u32, u32)>,
    /// Initial sequence numbers: of the global direction, and of the reverse.
    pub sequence: [Option<u32>; 2],
    /// Records that belong to it.
    pub records: u64,
}

/// TCP's number.
pub const TCP: u8 = 6;
/// UDP's number.
pub const UDP: u8 = 17;

impl GlobalFlow {
    /// The name of the protocol: `tcp`, `udp`, else its number.
    #[must_use]
    pub fn protocol_name(&self) -> String {
        match self.protocol {
            1 => "icmp".to_owned(),
            TCP => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            58 => "icmp6".to_owned(),
            number => format!("ip{number}"),
        }
    }

    /// Whether this is a socket without a peer, as one that listens: nothing can be sent on it.
    #[must_use]
    pub fn is_unconnected(&self) -> bool {
        self.to.is_none_or(|to| to.address.to_canonical().is_unspecified() && to.port == 0)
    }
}

impl FlowEndpoint {
    /// IPv4 where it is one.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.address.to_canonical()
    }
}

impl fmt::Display for FlowEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}
