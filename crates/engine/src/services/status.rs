//! What there is to see of services: tables, replicas, flows.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::{LoadBalancingPolicy, ServicePort};
use windtunnel_model::{NodeId, RouterId, ServiceId, Time};

use super::call::{Call, CallKind, unmapped};
use super::pins::{CoarseTime, Pin, PinnedFlowPhase};
use super::replica::ServiceReplica;
use super::{FindWay, PinCounts, ServiceCounters, ServiceRedirector, ServiceReplicaStatus};

/// A row of the table that redirectors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// Its service.
    pub service: ServiceId,
    /// The address that is redirected.
    pub address: IpAddr,
    /// The port.
    pub port: ServicePort,
}

/// A flow with its replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFlow {
    /// The client's end.
    pub client: SocketAddr,
    /// The service's end.
    pub service: SocketAddr,
    /// The replica's node.
    pub replica: NodeId,
    /// What it is doing.
    pub state: PinnedState,
    /// Milliseconds since its last packet, to about one.
    pub silent_ms: u64,
}

/// What a flow is doing, as its client's packets show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinnedState {
    /// TCP: the client has sent SYNs only.
    Opening,
    /// TCP: it has acknowledged something.
    Open,
    /// TCP: an end has sent FIN or RST.
    Closing,
    /// UDP.
    Flow,
}

impl ServiceRedirector {
    /// The table.
    pub(crate) fn table(&self) -> impl Iterator<Item = ServiceRow> + '_ {
        self.rows.all().iter().map(|row| ServiceRow {
            service: ServiceId(row.service.into()),
            address: unmapped(row.address),
            port: row.port,
        })
    }

    /// How many rows there are.
    pub(crate) fn table_len(&self) -> usize {
        self.rows.all().len()
    }

    pub(crate) fn counters(&self, service: ServiceId) -> &ServiceCounters {
        &self.list[service.index()].counters
    }

    pub(crate) fn replicas(&self, service: ServiceId) -> Vec<ServiceReplicaStatus> {
        let held = self.held_by_replica(service);
        let service = &self.list[service.index()];
        let status = |replica: &ServiceReplica| {
            let mut status = replica.status(&service.planned.ports);
            status.counters.live_connections += held.get(&replica.node).copied().unwrap_or(0);
            status
        };
        service.replicas.iter().map(status).collect()
    }

    /// What a router would choose now for a new flow to a row, where that is the same for all.
    pub(crate) fn choice(
        &self,
        number: u16,
        router: RouterId,
        way: &mut FindWay<'_>,
    ) -> Option<NodeId> {
        let row = self.rows.get(number);
        let call = Call {
            address: row.address,
            port: row.port.port,
            protocol: row.port.transport.number(),
            client: 0,
            client_port: 0,
            kind: CallKind::Plain,
        };
        self.row_at(router, &call)?;
        let service = &self.list[usize::from(row.service)];
        if matches!(
            service.planned.policy,
            LoadBalancingPolicy::Hash | LoadBalancingPolicy::Weighted
        ) {
            return None;
        }
        let chosen = self.choose(router, row, &call, way)?;
        Some(service.replicas[usize::from(chosen)].node)
    }

    pub(crate) fn counts(&self) -> PinCounts {
        PinCounts {
            held: self.pins.len() as u64,
            capacity: self.pins.capacity() as u64,
            displaced_datagrams: self.datagrams.displaced,
            ..self.counts
        }
    }

    /// Packets in tunnels whose fragments did not all come.
    pub(crate) fn count_not_reassembled(&mut self, packets: u64) {
        self.counts.not_reassembled += packets;
    }

    /// The flows of a service whose time is not over, at most so many of them.
    pub(crate) fn pinned(&self, now: Time, service: ServiceId, most: usize) -> Vec<PinnedFlow> {
        let tick = CoarseTime::of(now);
        let of_service = self.pins.iter().filter(|pin| {
            let row = self.rows.get(pin.key().row);
            usize::from(row.service) == service.index() && !self.is_over(tick, pin)
        });
        let pinned = of_service.filter_map(|pin| self.flow(tick, pin));
        pinned.chain(self.held_flows(now, service)).take(most).collect()
    }

    fn flow(&self, now: CoarseTime, pin: &Pin) -> Option<PinnedFlow> {
        let key = pin.key();
        let row = self.rows.get(key.row);
        let replicas = &self.list[usize::from(row.service)].replicas;
        let state = match pin.state {
            PinnedFlowPhase::Free => return None,
            PinnedFlowPhase::Opening => PinnedState::Opening,
            PinnedFlowPhase::Open => PinnedState::Open,
            PinnedFlowPhase::Closing => PinnedState::Closing,
            PinnedFlowPhase::Flow => PinnedState::Flow,
        };
        Some(PinnedFlow {
            client: SocketAddr::new(unmapped(key.client), key.client_port),
            service: SocketAddr::new(unmapped(row.address), row.port.port),
            replica: replicas[usize::from(pin.replica)].node,
            state,
            silent_ms: now.since(pin.seen).millis(),
        })
    }
}
