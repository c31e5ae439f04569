//! The machine of each node, and the resulting load of each machine.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use windtunnel_model::{Bytes, NodeId, Span};

/// A machine for every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlacement {
    /// The position of each node's machine, by node.
    pub hosts: Vec<usize>,
    /// The load of each machine, by machine.
    pub loads: Vec<PlacedRunLoad>,
    /// Doubts: the placement is possible, but may not be intended.
    pub warnings: Vec<PlacementWarning>,
}

impl NodePlacement {
    /// The nodes on a machine.
    pub fn nodes_on(&self, host: usize) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.hosts.iter().enumerate().filter(move |(_, at)| **at == host);
        nodes.map(|(node, _)| NodeId::from_index(node))
    }
}

/// A machine's load from this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRunLoad {
    /// Nodes.
    pub nodes: u32,
    /// Processors that its nodes are expected to use, in thousandths; nodes that say nothing count
    /// nothing.
    pub cpu_millis: u64,
    /// Memory that its nodes are expected to use, with the network's own for each node.
    pub memory: Bytes,
    /// The most that its nodes can send to other machines.
    pub up: UplinkTrafficBound,
    /// The most that nodes elsewhere can send to its own.
    pub down: UplinkTrafficBound,
}

/// The most that can cross an uplink one way, with the tunnel's headers on full packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UplinkTrafficBound {
    /// So many bits a second.
    Bounded(u64),
    /// No link on some way has a rate.
    Unbounded {
        /// How many nodes of the machine have such a way.
        nodes: u32,
    },
}

/// Something that is not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementWarning {
    /// The round-trip time between two machines is not measured, so no path was compared with it.
    UnknownRtt {
        /// A machine.
        a: String,
        /// Another.
        b: String,
    },
    /// Two nodes on different machines have a path without any latency: the network between the
    /// machines adds to it.
    NoLatency {
        /// Where the path starts.
        from: String,
        /// Where it ends.
        to: String,
        /// The machine of the first.
        from_host: String,
        /// The machine of the second.
        to_host: String,
        /// Between the machines.
        rtt: Span,
    },
}

impl fmt::Display for PlacementWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementWarning::UnknownRtt { a, b } => {
                write!(
                    f,
                    "the round-trip time between {a} and {b} is not known: no path was compared with it"
                )
            }
            PlacementWarning::NoLatency { from, to, from_host, to_host, rtt } => write!(
                f,
                "paths such as {from} to {to} ask for no latency, and lead from {from_host} to {to_host}, a \
                 round trip of {rtt} apart: that much is added"
            ),
        }
    }
}
