//! What there is to see of services: tables, replicas, flows.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::{LoadBalancingPolicy, ServicePort};
use windtunnel_model::word::ServiceFlowState;
use windtunnel_model::{NodeId, RouterId, ServiceId, Time};

use super::call::{CallKind, ServicePacketHeader, unmapped};
use super::choice::FindWay;
use super::replica::ServiceReplica;
use super::{
    FailOverCounters, PinCounts, ServiceCounters, ServiceRedirector, ServiceReplicaStatus,
};

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
    pub state: ServiceFlowState,
    /// Milliseconds since its last packet, to about one.
    pub silent_ms: u64,
}

impl ServiceRedirector {
    /// The table.
    pub(crate) fn table(&self) -> impl Iterator<Item = ServiceRow> + '_ {
        self.services.rows.all().iter().map(|row| ServiceRow {
            service: ServiceId(row.service.into()),
            address: unmapped(row.address),
            port: row.port,
        })
    }

    /// How many rows there are.
    pub(crate) fn table_len(&self) -> usize {
        self.services.rows.all().len()
    }

    pub(crate) fn counters(&self, service: ServiceId) -> &ServiceCounters {
        &self.services.list[service.index()].counters
    }

    /// What was counted of the connections of a service; `None`: they end with their replica.
    pub(crate) fn fail_over(&self, service: ServiceId) -> Option<FailOverCounters> {
        self.transparent.counters(service)
    }

    pub(crate) fn replicas(&self, service: ServiceId) -> Vec<ServiceReplicaStatus> {
        let held = self.transparent.held_by_replica(service);
        let service = &self.services.list[service.index()];
        let status = |replica: &ServiceReplica| {
            let mut status = replica.status();
            status.counters.live_connections += held.get(&replica.state.node).copied().unwrap_or(0);
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
        let row = self.services.rows.get(number);
        let call = ServicePacketHeader {
            address: row.address,
            port: row.port.port,
            protocol: row.port.transport.number(),
            client: 0,
            client_port: 0,
            kind: CallKind::Plain,
        };
        let service = self.services.of(row);
        let depends_on_flow = matches!(
            service.planned.policy,
            LoadBalancingPolicy::Hash | LoadBalancingPolicy::Weighted
        );
        if depends_on_flow || !service.planned.redirects(router) {
            return None;
        }
        let chosen = self.services.choose(router, row, &call, way)?;
        Some(service.replicas[usize::from(chosen)].state.node)
    }

    pub(crate) fn counts(&self) -> PinCounts {
        let (held, capacity) = self.flows.occupancy();
        PinCounts {
            held: held as u64,
            capacity: capacity as u64,
            unknown_fragments: self.datagrams.unknown,
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
        let pinned = self.flows.of_service(&self.services, now, service);
        pinned.chain(self.transparent.held_flows(now, service)).take(most).collect()
    }
}
