//! What there is to see of connections that outlive their server.

use alloc::collections::BTreeMap;

use windtunnel_failover::ReplicaId;
use windtunnel_model::word::ServiceFlowState;
use windtunnel_model::{NodeId, ServiceId, Time};

use super::{FailOverConnections, FailOverCounters, TransparentFailOver};
use crate::services::PinnedFlow;

impl TransparentFailOver {
    fn held_of(&self, service: ServiceId) -> Option<&FailOverConnections> {
        self.of(u16::try_from(service.0).ok()?)
    }

    /// What was counted of a service; `None`: its connections end with their replica.
    pub(in crate::services) fn counters(&self, service: ServiceId) -> Option<FailOverCounters> {
        let held = self.held_of(service)?;
        let counted = held.connections.counters();
        let output = [counted.output_too_far, counted.output_gaps, counted.output_full];
        Some(FailOverCounters {
            opened: counted.opened,
            held: held.connections.len() as u64,
            // Each of these began as one that goes to one replica.
            plain: held.counters.plain.saturating_sub(counted.refused.table_full),
            unkept: counted.refused.table_full,
            half_open_forgotten: counted.half_open_forgotten,
            delivered_bytes: counted.delivered,
            probes: counted.probes,
            output_dropped: output.into_iter().sum(),
            no_memory: held.counters.no_memory + counted.packets_lost,
            news_lost: held.counters.news_lost + counted.events_lost,
            ..held.counters
        })
    }

    /// The connections of a service that are kept and not over, each with its primary.
    pub(in crate::services) fn held_flows(
        &self,
        now: Time,
        service: ServiceId,
    ) -> impl Iterator<Item = PinnedFlow> + '_ {
        let connections = self.held_of(service).into_iter().flat_map(|held| {
            held.connections.keys().filter_map(|key| Some((*key, held.connections.view(*key)?)))
        });
        connections.filter(|(_, view)| !view.is_over).filter_map(move |(key, view)| {
            let ReplicaId(node) = view.primary?;
            Some(PinnedFlow {
                client: key.client,
                service: key.service,
                replica: NodeId(node),
                state: ServiceFlowState::Open,
                silent_ms: now.since(view.active).as_nanos() / 1_000_000,
            })
        })
    }

    /// How many of these connections each replica takes part in.
    pub(in crate::services) fn held_by_replica(&self, service: ServiceId) -> BTreeMap<NodeId, u64> {
        let mut counts = BTreeMap::new();
        let Some(held) = self.held_of(service) else { return counts };
        let views = held.connections.keys().filter_map(|key| held.connections.view(*key));
        for view in views.filter(|view| !view.is_over) {
            for ReplicaId(node) in view.replicas {
                *counts.entry(NodeId(node)).or_default() += 1;
            }
        }
        counts
    }
}
