//! The network between machines: delays, loss, and datagrams under way.

use std::net::SocketAddr;

use windtunnel_model::{Span, Time};

use super::MeshWorld;

/// After a stall, an agent's timers come before the datagrams that it has to read.
const READING: Span = Span::from_micros(10);

/// Effects of the network on a datagram. Probabilities are in a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkConditions {
    /// From one machine to another, at least.
    pub delay: Span,
    /// A random addition, up to this: datagrams that overtake are reordered.
    pub jitter: Span,
    /// Lost.
    pub loss: u64,
    /// Delivered twice.
    pub twice: u64,
}

impl LinkConditions {
    /// A local network: 40 to 60 µs each way, nothing lost.
    pub const LAN: LinkConditions = LinkConditions {
        delay: Span::from_micros(40),
        jitter: Span::from_micros(20),
        loss: 0,
        twice: 0,
    };

    /// The same with that many in a million lost.
    #[must_use]
    pub const fn losing(self, loss: u64) -> LinkConditions {
        LinkConditions { loss, ..self }
    }
}

impl MeshWorld {
    /// The next datagram on its way arrives.
    pub(super) fn deliver(&mut self) {
        let Some(((_, number), (to, from, bytes))) = self.way.pop_first() else { return };
        let stalled = self.machines[to].stalled;
        if stalled > self.now {
            self.way.insert((stalled + READING, number), (to, from, bytes));
            return;
        }
        self.machines[to].count_received(bytes.len());
        self.act(to, |mesh, now| mesh.handle_datagram(now, from, &bytes));
    }

    pub(super) fn carry(&mut self, from: usize, to: SocketAddr, payload: Vec<u8>) {
        self.machines[from].say(payload.len());
        self.machines[from].receivers.insert(to);
        self.note(from, &payload);
        let Some(target) = self.machine_at(to) else { return };
        self.note(target, &[]);
        if self.sides[from] != self.sides[target]
            || self.rng.below(1_000_000) < self.conditions.loss
        {
            return;
        }
        let source = self.machines[from].address;
        if self.rng.below(1_000_000) < self.conditions.twice {
            let at = self.arrival();
            self.way.insert((at, self.sent), (target, source, payload.clone()));
        }
        let at = self.arrival();
        self.way.insert((at, self.sent), (target, source, payload));
    }

    fn arrival(&mut self) -> Time {
        self.sent += 1;
        let more = self.rng.below(self.conditions.jitter.as_nanos());
        self.now + self.conditions.delay + Span::from_nanos(more)
    }
}
