//! What an engine knows of services.

use alloc::vec::Vec;

use windtunnel_model::{NodeId, RouterId, ServiceId};

use super::Engine;
use crate::services::{
    FailOverCounters, PinCounts, PinnedFlow, ServiceCounters, ServiceReplicaStatus, ServiceRow,
};

impl Engine {
    /// The table of redirectors: service by service, by address and port within one.
    pub fn rows(&self) -> impl Iterator<Item = ServiceRow> + '_ {
        self.core.services.table()
    }

    /// Where a router would send a new flow to a row now: `None` if nowhere, if it does not redirect
    /// this service, or if that depends on the flow (policies `hash` and `weighted`).
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn choice(&mut self, row: usize, router: RouterId) -> Option<NodeId> {
        assert!(row < self.core.services.table_len(), "there is no row {row}");
        self.core.choice(u16::try_from(row).ok()?, router)
    }

    /// What is known of the replicas of a service, in its order; behind them those that were added.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn replicas(&self, service: ServiceId) -> Vec<ServiceReplicaStatus> {
        self.core.services.replicas(service)
    }

    /// Whether a node is a replica of a service, or was one: others are not taken in changes but
    /// that which adds them.
    #[must_use]
    pub fn has_replica(&self, service: ServiceId, node: NodeId) -> bool {
        self.core.services.has_replica(service, node)
    }

    /// What redirectors did for a service.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn service(&self, service: ServiceId) -> &ServiceCounters {
        self.core.services.counters(service)
    }

    /// What redirectors did to have the connections of a service outlive their servers; `None`: they do
    /// not (`fail-over: new`).
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn fail_over(&self, service: ServiceId) -> Option<FailOverCounters> {
        self.core.services.fail_over(service)
    }

    /// How many flows are known, over all services.
    #[must_use]
    pub fn pins(&self) -> PinCounts {
        self.core.services.counts()
    }

    /// Flows of a service with their replicas, at most so many. All flows of all services are looked
    /// at: about a millisecond for 10⁵.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn pinned(&self, service: ServiceId, most: usize) -> Vec<PinnedFlow> {
        self.core.services.pinned(self.core.now, service, most)
    }
}
