//! What there is to see of flows: how many there are, those of a service, those of a lost replica.

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::word::ServiceFlowState;
use windtunnel_model::{ServiceId, Time};

use super::PinnedFlowTable;
use crate::services::PinnedFlow;
use crate::services::call::unmapped;
use crate::services::directory::ServiceDirectory;
use crate::services::pins::{CoarseTime, PinnedFlowPhase, ReplicaPin};
use crate::services::update::BrokenConnection;

impl PinnedFlowTable {
    /// How many there are, and how many there may be.
    pub(in crate::services) fn occupancy(&self) -> (usize, usize) {
        (self.pins.len(), self.pins.capacity())
    }

    /// The flows of a service whose time is not over.
    pub(in crate::services) fn of_service<'a>(
        &'a self,
        services: &'a ServiceDirectory,
        now: Time,
        service: ServiceId,
    ) -> impl Iterator<Item = PinnedFlow> + 'a {
        let tick = CoarseTime::of(now);
        let pins = self.pins.iter().filter(move |pin| {
            let row = services.rows.get(pin.key().row);
            usize::from(row.service) == service.index() && !services.is_over(tick, pin)
        });
        pins.filter_map(move |pin| flow(services, tick, pin))
    }

    /// The connections to a replica that are open: of what is opening nothing has been acknowledged,
    /// and what closes ends by itself.
    pub(in crate::services) fn open_to<'a>(
        &'a self,
        services: &'a ServiceDirectory,
        service: ServiceId,
        replica: usize,
    ) -> impl Iterator<Item = &'a ReplicaPin> {
        self.pins.iter().filter(move |pin| {
            let row = services.rows.get(pin.key().row);
            let of_replica =
                usize::from(row.service) == service.index() && usize::from(pin.replica) == replica;
            of_replica && pin.state == PinnedFlowPhase::Open
        })
    }

    /// The same, for their clients to be reset.
    pub(in crate::services) fn broken(
        &self,
        services: &ServiceDirectory,
        service: ServiceId,
        replica: usize,
    ) -> Vec<BrokenConnection> {
        let broken = self.open_to(services, service, replica).map(|pin| {
            let key = pin.key();
            let row = services.rows.get(key.row);
            BrokenConnection {
                router: pin.router,
                service: SocketAddr::new(unmapped(row.address), row.port.port),
                client: SocketAddr::new(unmapped(key.client), key.client_port),
                acknowledged: pin.acknowledged,
            }
        });
        broken.take(RESETS_MAX).collect()
    }
}

fn flow(services: &ServiceDirectory, now: CoarseTime, pin: &ReplicaPin) -> Option<PinnedFlow> {
    let key = pin.key();
    let row = services.rows.get(key.row);
    let state = match pin.state {
        PinnedFlowPhase::Free => return None,
        PinnedFlowPhase::Opening => ServiceFlowState::Opening,
        PinnedFlowPhase::Open => ServiceFlowState::Open,
        PinnedFlowPhase::Closing => ServiceFlowState::Closing,
        PinnedFlowPhase::Flow => ServiceFlowState::Flow,
    };
    Some(PinnedFlow {
        client: SocketAddr::new(unmapped(key.client), key.client_port),
        service: SocketAddr::new(unmapped(row.address), row.port.port),
        replica: services.of(row).replicas[usize::from(pin.replica)].state.node,
        state,
        silent_ms: now.since(pin.seen).millis(),
    })
}

/// Resets that are sent at once.
const RESETS_MAX: usize = 4096;
