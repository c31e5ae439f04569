//! What an engine knows of services.

use alloc::vec::Vec;

use windtunnel_model::{NodeId, RouterId, ServiceId, Time};

use super::Engine;
use crate::services::{
    FailOverCounters, PinCounts, PinnedFlow, ServiceCounters, ServiceRedirector,
    ServiceReplicaStatus, ServiceRow,
};

/// What an engine knows of services at a moment.
#[derive(Debug, Clone, Copy)]
pub struct ServiceOverview<'a> {
    redirector: &'a ServiceRedirector,
    now: Time,
}

impl Engine {
    /// What is known of services now.
    #[must_use]
    pub fn services(&self) -> ServiceOverview<'_> {
        let core = &self.network.core;
        ServiceOverview { redirector: &core.services, now: core.now }
    }

    /// Where a router would send a new flow to a row now: `None` if nowhere, if it does not redirect
    /// this service, or if that depends on the flow (policies `hash` and `weighted`).
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn choice(&mut self, row: usize, router: RouterId) -> Option<NodeId> {
        let core = &mut self.network.core;
        assert!(row < core.services.table_len(), "there is no row {row}");
        core.redirection().choice(u16::try_from(row).ok()?, router)
    }
}

impl<'a> ServiceOverview<'a> {
    /// The table of redirectors: service by service, by address and port within one.
    pub fn rows(self) -> impl Iterator<Item = ServiceRow> + 'a {
        self.redirector.table()
    }

    /// What is known of the replicas of a service, in its order; behind them those that were added.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn replicas(self, service: ServiceId) -> Vec<ServiceReplicaStatus> {
        self.redirector.replicas(service)
    }

    /// Whether a node is a replica of a service, or was one: others are not taken in changes but
    /// that which adds them.
    #[must_use]
    pub fn has_replica(self, service: ServiceId, node: NodeId) -> bool {
        self.redirector.has_replica(service, node)
    }

    /// What redirectors did for a service.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn counters(self, service: ServiceId) -> &'a ServiceCounters {
        self.redirector.counters(service)
    }

    /// What redirectors did to have the connections of a service outlive their servers; `None`: they do
    /// not (`fail-over: new`).
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn fail_over(self, service: ServiceId) -> Option<FailOverCounters> {
        self.redirector.fail_over(service)
    }

    /// How many flows are known, over all services.
    #[must_use]
    pub fn pins(self) -> PinCounts {
        self.redirector.counts()
    }

    /// Flows of a service with their replicas, at most so many. All flows of all services are looked
    /// at: about a millisecond for 10⁵.
    ///
    /// # Panics
    /// If the plan has no such service.
    #[must_use]
    pub fn pinned(self, service: ServiceId, most: usize) -> Vec<PinnedFlow> {
        self.redirector.pinned(self.now, service, most)
    }
}
