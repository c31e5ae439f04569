//! Pins that end: by their time, by others, by what their flow says.

use windtunnel_model::Time;

use super::PinnedFlowTable;
use crate::services::directory::ServiceDirectory;
use crate::services::pins::{CoarseTime, PinnedFlowPhase, ReplicaPin};
use crate::services::service::RedirectedService;

impl PinnedFlowTable {
    /// When pins are to be looked at.
    pub(in crate::services) fn next_sweep(&self) -> Option<Time> {
        self.next_sweep
    }

    /// Looks at some pins, whether their time is over.
    pub(in crate::services) fn sweep(&mut self, services: &mut ServiceDirectory, now: Time) {
        let tick = CoarseTime::of(now);
        for number in self.pins.sweep() {
            let pin = self.pins.get(number);
            if pin.state != PinnedFlowPhase::Free && services.is_over(tick, pin) {
                self.expire(services, number);
            }
        }
        self.next_sweep = (self.pins.len() > 0).then(|| now + self.pins.sweep_period());
    }

    /// Takes a pin away whose time is over.
    pub(super) fn expire(&mut self, services: &mut ServiceDirectory, number: u32) {
        self.forget(services, number).counters.expired += 1;
    }

    /// Makes room for one pin.
    pub(super) fn evict(&mut self, services: &mut ServiceDirectory, now: CoarseTime) {
        let is_over = |pin: &ReplicaPin| services.is_over(now, pin);
        let Some(victim) = self.pins.victim(now, is_over) else { return };
        let over = is_over(self.pins.get(victim));
        let service = self.forget(services, victim);
        if over {
            service.counters.expired += 1;
        } else {
            service.counters.evicted += 1;
        }
    }

    /// Takes a pin away; the service that its flow was to.
    pub(in crate::services) fn forget<'a>(
        &mut self,
        services: &'a mut ServiceDirectory,
        number: u32,
    ) -> &'a mut RedirectedService {
        let pin = self.pins.remove(number);
        let row = *services.rows.get(pin.key().row);
        let service = services.of_mut(&row);
        let counters = &mut service.replicas[usize::from(pin.replica)].counters;
        match pin.state {
            PinnedFlowPhase::Flow => counters.live_flows -= 1,
            state => counters.live_connections -= u64::from(state.is_connection()),
        }
        service
    }
}
