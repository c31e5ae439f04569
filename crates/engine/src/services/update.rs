//! Changes of what is known of replicas.

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::plan::{ReplicaLossResponse, ServiceChange};
use windtunnel_model::{NodeId, RouterId, ServiceId, Time};

use super::ServiceRedirector;

/// A connection whose client is to be sent a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokenConnection {
    /// The router that redirected it last.
    pub(crate) router: RouterId,
    /// The service's end.
    pub(crate) service: SocketAddr,
    pub(crate) client: SocketAddr,
    /// What the client has acknowledged.
    pub(crate) acknowledged: u32,
}

impl ServiceRedirector {
    /// Takes a change over. Connections whose clients are to be reset: at most
    /// 4096 at once, others with their next packet.
    pub(crate) fn update(&mut self, now: Time, change: &ServiceChange) -> Vec<BrokenConnection> {
        let Some(lost) = self.services.apply(change) else { return Vec::new() };
        let id = change.service;
        let open = self.flows.open_to(&self.services, id, lost).count();
        let service = &mut self.services.list[id.index()];
        service.counters.lost_connections += u64::try_from(open).unwrap_or(u64::MAX);
        let resets = service.planned.on_loss == ReplicaLossResponse::Reset;
        self.transparent.lose(&mut self.services, now, id, change.update.replica());
        if resets { self.flows.broken(&self.services, id, lost) } else { Vec::new() }
    }

    /// Whether a node is a replica of a service, or was one.
    pub(crate) fn has_replica(&self, service: ServiceId, node: NodeId) -> bool {
        let service = self.services.list.get(service.index());
        service.is_some_and(|service| service.position(node).is_some())
    }
}
