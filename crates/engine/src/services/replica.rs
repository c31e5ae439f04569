//! A replica, as routers know it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::ServicePort;
use windtunnel_model::{NodeId, PortId};

/// A replica of a service: what is known of it, and what it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceReplicaStatus {
    /// The node.
    pub node: NodeId,
    /// The ports on which a program listens.
    pub listens: Vec<ServicePort>,
    /// Whether its probes go well; without probes, too.
    pub healthy: bool,
    /// Whether it gets nothing new, as somebody wishes.
    pub draining: bool,
    /// Whether its node is gone.
    pub lost: bool,
    /// Whether it is a replica no longer.
    pub removed: bool,
    /// Its share of what is new, with weights.
    pub weight: u32,
    /// What it got.
    pub counters: ReplicaCounters,
}

/// What a replica got from redirectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicaCounters {
    /// TCP connections that were given to it, those *picked up* among them.
    pub connections: u64,
    /// UDP flows.
    pub flows: u64,
    /// Of the connections, those that live: no FIN or RST of the client has come, and the idle time
    /// has not passed. Whether it has is looked at each second, in a table of 10⁶ flows each 8 s.
    pub live_connections: u64,
    /// Of the flows, those whose idle time had not passed when that was last looked at.
    pub live_flows: u64,
    /// Packets (MTU segments).
    pub packets: u64,
    /// Bytes of these, as IP packets without the tunnel's header.
    pub bytes: u64,
}

impl ReplicaCounters {
    /// Adds what another part of the network counted of the same replica.
    pub fn add(&mut self, other: &ReplicaCounters) {
        let pairs = [
            (&mut self.connections, other.connections),
            (&mut self.flows, other.flows),
            (&mut self.live_connections, other.live_connections),
            (&mut self.live_flows, other.live_flows),
            (&mut self.packets, other.packets),
            (&mut self.bytes, other.bytes),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

#[derive(Debug)]
pub(super) struct ServiceReplica {
    pub(super) node: NodeId,
    /// Where tunnels to it end: its first interface.
    pub(super) port: PortId,
    /// A number of its own, of its name: what it draws against other replicas.
    pub(super) salt: u64,
    pub(super) weight: u32,
    /// By position of the service's ports, as bits.
    pub(super) registered: u64,
    pub(super) healthy: bool,
    pub(super) draining: bool,
    pub(super) lost: bool,
    pub(super) removed: bool,
    /// The largest MSS that fits its tunnels, of IPv4 and IPv6, and of which generation of ways
    /// that is known.
    pub(super) clamps: [Option<(u64, u16)>; 2],
    pub(super) counters: ReplicaCounters,
}

impl ServiceReplica {
    pub(super) fn new(node: NodeId, port: PortId, salt: u64, weight: u32) -> ServiceReplica {
        ServiceReplica {
            node,
            port,
            salt,
            weight,
            registered: 0,
            healthy: true,
            draining: false,
            lost: false,
            removed: false,
            clamps: [None; 2],
            counters: ReplicaCounters::default(),
        }
    }

    /// Whether a program serves a port there.
    pub(super) fn serves(&self, position: u8) -> bool {
        let is_there = !self.lost && !self.removed && self.healthy;
        is_there && self.registered >> position & 1 != 0
    }

    /// Whether it gets what is new at a port.
    pub(super) fn takes(&self, position: u8) -> bool {
        self.serves(position) && !self.draining
    }

    pub(super) fn status(&self, ports: &[ServicePort]) -> ServiceReplicaStatus {
        let listens = |(at, _): &(usize, &ServicePort)| self.registered >> at & 1 != 0;
        ServiceReplicaStatus {
            node: self.node,
            listens: ports.iter().enumerate().filter(listens).map(|(_, port)| *port).collect(),
            healthy: self.healthy,
            draining: self.draining,
            lost: self.lost,
            removed: self.removed,
            weight: self.weight,
            counters: self.counters,
        }
    }
}
