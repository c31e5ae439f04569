//! Pins that end: by their time, by others, by what their flow says.

use windtunnel_model::Time;
use windtunnel_model::plan::TransportProtocol;

use super::pins::{CoarseDuration, CoarseTime, Pin, PinnedFlowPhase};
use super::rows::RedirectionTable;
use super::{RedirectedService, ServiceRedirector};

impl ServiceRedirector {
    /// When pins are to be looked at.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next_sweep
    }

    /// Looks at some pins, whether their time is over.
    pub(crate) fn sweep(&mut self, now: Time) {
        let tick = CoarseTime::of(now);
        for number in self.pins.sweep() {
            let pin = self.pins.get(number);
            if pin.state != PinnedFlowPhase::Free && self.is_over(tick, pin) {
                self.expire(number);
            }
        }
        self.next_sweep = (self.pins.len() > 0).then(|| now + self.pins.sweep_period());
    }

    /// Whether a flow has been silent for its time.
    pub(super) fn is_over(&self, now: CoarseTime, pin: &Pin) -> bool {
        now.since(pin.seen) >= patience(&self.rows, &self.list, pin)
    }

    /// Takes a pin away whose time is over.
    pub(super) fn expire(&mut self, number: u32) {
        let service = self.forget(number);
        service.counters.expired += 1;
    }

    /// Makes room for one pin.
    pub(super) fn evict(&mut self, now: CoarseTime) {
        let ServiceRedirector { pins, rows, list, .. } = self;
        let is_over = |pin: &Pin| now.since(pin.seen) >= patience(rows, list, pin);
        let Some(victim) = pins.victim(now, is_over) else { return };
        let over = is_over(pins.get(victim));
        let service = self.forget(victim);
        if over {
            service.counters.expired += 1;
        } else {
            service.counters.evicted += 1;
        }
    }

    /// Takes a pin away; the service that its flow was to.
    pub(super) fn forget(&mut self, number: u32) -> &mut RedirectedService {
        let pin = self.pins.remove(number);
        let row = self.rows.get(pin.key().row);
        let service = &mut self.list[usize::from(row.service)];
        let counters = &mut service.replicas[usize::from(pin.replica)].counters;
        match pin.state {
            PinnedFlowPhase::Flow => counters.live_flows -= 1,
            state => counters.live_connections -= u64::from(state.is_connection()),
        }
        service
    }
}

/// How long a flow may be silent.
fn patience(rows: &RedirectionTable, list: &[RedirectedService], pin: &Pin) -> CoarseDuration {
    let row = rows.get(pin.key().row);
    let planned = &list[usize::from(row.service)].planned;
    match (pin.state, row.port.transport) {
        (PinnedFlowPhase::Closing, _) => CoarseTime::CLOSING.min(planned.tcp_idle),
        (_, TransportProtocol::Tcp) => planned.tcp_idle,
        (_, TransportProtocol::Udp) => planned.udp_idle,
    }
}
