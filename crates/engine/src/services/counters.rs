//! What redirectors counted.

use serde::{Deserialize, Serialize};

/// What all redirectors together did for one service. Packets are MTU segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceCounters {
    /// Packets that no replica got: they went to the origin, or nowhere.
    pub unserved: u64,
    /// Connections that were seen first in their middle, because their pin was gone or never there.
    pub picked_up: u64,
    /// Flows that a router gave another replica than the router before it, with pins of their own.
    #[serde(default)]
    pub moved_flows: u64,
    /// Connections that were open when their replica's node was lost.
    #[serde(default)]
    pub lost_connections: u64,
    /// Packets of connections whose replica is lost; they were dropped.
    pub lost: u64,
    /// Resets that clients were sent because of that.
    pub resets: u64,
    /// Packets that a lost replica still sent in the service's name; they were dropped.
    #[serde(default)]
    pub silenced: u64,
    /// SYN-ACKs of replicas whose MSS was lowered.
    pub clamped: u64,
    /// Flows that lost their pin to another one, because the table was full.
    pub evicted: u64,
    /// Flows that were forgotten after their time.
    pub expired: u64,
    /// Changes that named no replica of the service.
    pub refused: u64,
}

impl ServiceCounters {
    /// Adds what another part of the network counted of the same service.
    pub fn add(&mut self, other: &ServiceCounters) {
        let pairs = [
            (&mut self.unserved, other.unserved),
            (&mut self.picked_up, other.picked_up),
            (&mut self.moved_flows, other.moved_flows),
            (&mut self.lost_connections, other.lost_connections),
            (&mut self.lost, other.lost),
            (&mut self.resets, other.resets),
            (&mut self.silenced, other.silenced),
            (&mut self.clamped, other.clamped),
            (&mut self.evicted, other.evicted),
            (&mut self.expired, other.expired),
            (&mut self.refused, other.refused),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// What is known of flows, over all services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PinCounts {
    /// Pins that there are, those among them whose time is over and which were not looked at yet.
    pub held: u64,
    /// How many there may be.
    pub capacity: u64,
    /// Later fragments whose first fragment had not come: they were not redirected.
    pub unknown_fragments: u64,
    /// Datagrams in fragments that were forgotten because of others.
    pub displaced_datagrams: u64,
    /// Packets in tunnels whose fragments did not all come, or for which there was no room.
    pub not_reassembled: u64,
    /// ICMP errors about what replicas sent, of routers that do not redirect and have no way to the
    /// service's address: the replicas did not get them.
    #[serde(default)]
    pub lost_errors: u64,
}
