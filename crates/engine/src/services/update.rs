//! Changes of what is known of replicas.

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::plan::{ReplicaLossResponse, ServiceChange, ServicePort, ServiceUpdate};
use windtunnel_model::{NodeId, RouterId, ServiceId, Time};

use super::call::unmapped;
use super::pins::{Pin, PinnedFlowPhase};
use super::replica::ServiceReplica;
use super::{RedirectedService, ServiceRedirector};

/// A connection whose client is to be sent a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
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
    pub(crate) fn update(&mut self, now: Time, change: &ServiceChange) -> Vec<Broken> {
        let ServiceChange { service: id, update } = *change;
        let Some(service) = self.list.get_mut(id.index()) else { return Vec::new() };
        let node = update.replica();
        if matches!(update, ServiceUpdate::Add { .. }) {
            self.add(id, node);
            return Vec::new();
        }
        let Some(number) = service.replicas.iter().position(|replica| replica.node == node) else {
            service.counters.refused += 1;
            return Vec::new();
        };
        let was_lost = service.replicas[number].lost;
        service.apply(number, update);
        let is_lost = service.replicas[number].lost;
        self.lost_replicas += usize::from(is_lost);
        self.lost_replicas -= usize::from(was_lost);
        if is_lost && !was_lost {
            let open = self.open_to(id, number).count();
            let counters = &mut self.list[id.index()].counters;
            counters.lost_connections += u64::try_from(open).unwrap_or(u64::MAX);
            self.lose(now, id, node);
        }
        let service = &self.list[id.index()];
        let resets = is_lost && !was_lost && service.planned.on_loss == ReplicaLossResponse::Reset;
        if resets { self.break_off(id, number) } else { Vec::new() }
    }

    /// Whether a node is a replica of a service, or was one.
    pub(crate) fn has_replica(&self, service: ServiceId, node: NodeId) -> bool {
        let service = self.list.get(service.index());
        service.is_some_and(|service| service.replicas.iter().any(|it| it.node == node))
    }

    fn add(&mut self, id: ServiceId, node: NodeId) {
        let (port, salt) = self.nodes.get(node.index()).copied().unwrap_or_default();
        let service = &mut self.list[id.index()];
        if let Some(known) = service.replicas.iter_mut().find(|replica| replica.node == node) {
            known.removed = false;
            return;
        }
        let has_room = service.replicas.len() < windtunnel_model::plan::Service::REPLICAS_MAX;
        let (Some(port), true) = (port, has_room) else {
            service.counters.refused += 1;
            return;
        };
        service.replicas.push(ServiceReplica::new(node, port, salt, 1));
        for (ends, owner) in self.ends.iter_mut().zip(&self.owners) {
            *ends |= *owner == node;
        }
    }

    /// The connections to a replica that are open: of what is opening nothing has been acknowledged,
    /// and what closes ends by itself.
    fn open_to(&self, id: ServiceId, replica: usize) -> impl Iterator<Item = &Pin> {
        self.pins.iter().filter(move |pin| {
            let row = self.rows.get(pin.key().row);
            let of_replica =
                usize::from(row.service) == id.index() && usize::from(pin.replica) == replica;
            of_replica && pin.state == PinnedFlowPhase::Open
        })
    }

    fn break_off(&self, id: ServiceId, replica: usize) -> Vec<Broken> {
        let broken = self.open_to(id, replica).map(|pin| {
            let key = pin.key();
            let row = self.rows.get(key.row);
            Broken {
                router: pin.router,
                service: SocketAddr::new(unmapped(row.address), row.port.port),
                client: SocketAddr::new(unmapped(key.client), key.client_port),
                acknowledged: pin.acknowledged,
            }
        });
        broken.take(RESETS_MAX).collect()
    }
}

impl RedirectedService {
    fn apply(&mut self, number: usize, update: ServiceUpdate) {
        let bit = |port: ServicePort| {
            let at = self.planned.ports.iter().position(|own| *own == port);
            at.map(|at| 1u64 << at)
        };
        let replica = &mut self.replicas[number];
        match update {
            ServiceUpdate::Registered { port, .. } => match bit(port) {
                Some(bit) => {
                    replica.registered |= bit;
                    replica.lost = false;
                }
                None => self.counters.refused += 1,
            },
            ServiceUpdate::Withdrawn { port, .. } => match bit(port) {
                Some(bit) => replica.registered &= !bit,
                None => self.counters.refused += 1,
            },
            ServiceUpdate::Lost { .. } => (replica.registered, replica.lost) = (0, true),
            ServiceUpdate::Health { healthy, .. } => replica.healthy = healthy,
            ServiceUpdate::Drain { drain, .. } => replica.draining = drain,
            ServiceUpdate::Weight { weight, .. } => replica.weight = weight,
            ServiceUpdate::Remove { .. } => replica.removed = true,
            ServiceUpdate::Add { .. } => replica.removed = false,
        }
    }
}

/// Resets that are sent at once.
const RESETS_MAX: usize = 4096;
