//! A replica, as routers know it.

use serde::{Deserialize, Serialize};
use windtunnel_model::PortId;
use windtunnel_model::plan::{ServicePort, ServiceUpdate};
use windtunnel_model::state::ReplicaState;

/// A replica of a service: what is known of it, and what it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReplicaStatus {
    /// What is known of it.
    pub state: ReplicaState,
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
    pub(super) state: ReplicaState,
    /// The registered ports of the state by position among the service's ports, as bits.
    pub(super) listens: u64,
    /// Where tunnels to it end: its first interface.
    pub(super) port: PortId,
    /// A number of its own, of its name: what it draws against other replicas.
    pub(super) salt: u64,
    /// The largest MSS that fits its tunnels, of IPv4 and IPv6, and of which generation of ways
    /// that is known.
    pub(super) clamps: [Option<(u64, u16)>; 2],
    pub(super) counters: ReplicaCounters,
}

impl ServiceReplica {
    pub(super) fn new(state: ReplicaState, port: PortId, salt: u64) -> ServiceReplica {
        let counters = ReplicaCounters::default();
        ServiceReplica { state, listens: 0, port, salt, clamps: [None; 2], counters }
    }

    /// Takes a change over; the service has these `ports`.
    pub(super) fn apply(&mut self, update: &ServiceUpdate, ports: &[ServicePort]) {
        self.state.apply(update);
        let listens =
            ports.iter().zip(0u32..).filter(|(port, _)| self.state.registered.contains(port));
        self.listens = listens.fold(0, |bits, (_, at)| bits | 1 << at);
    }

    /// Whether a program serves a port there.
    pub(super) fn serves(&self, position: u8) -> bool {
        self.state.is_there() && self.listens >> position & 1 != 0
    }

    /// Whether it gets what is new at a port.
    pub(super) fn takes(&self, position: u8) -> bool {
        self.serves(position) && !self.state.is_draining
    }

    pub(super) fn status(&self) -> ServiceReplicaStatus {
        ServiceReplicaStatus { state: self.state.clone(), counters: self.counters }
    }
}
