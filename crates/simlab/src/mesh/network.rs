//! The network between machines: delays, loss, and datagrams under way.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_model::{Span, Time};

use crate::SimulationRng;

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

/// A datagram on its way.
#[derive(Debug, Clone)]
pub(super) struct DatagramInFlight {
    /// The machine that it goes to.
    pub(super) to: usize,
    /// The address of the machine that it came from.
    pub(super) source: SocketAddr,
    pub(super) payload: Vec<u8>,
}

/// The network of a world: its effects, how it is cut, and the datagrams on their way.
#[derive(Debug)]
pub struct DatagramNetwork {
    /// Its effects on each datagram that leaves from now on.
    pub conditions: LinkConditions,
    /// Which part of a cut network each machine is in.
    sides: Vec<u32>,
    /// By the time of arrival, and a number of each.
    way: BTreeMap<(Time, u64), DatagramInFlight>,
    sent: u64,
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

impl DatagramNetwork {
    pub(super) fn new(conditions: LinkConditions) -> Self {
        DatagramNetwork { conditions, sides: Vec::new(), way: BTreeMap::new(), sent: 0 }
    }

    /// Another machine is connected.
    pub(super) fn add_machine(&mut self) {
        self.sides.push(0);
    }

    /// Cuts the network: machines receive from those of the same number only.
    pub fn cut(&mut self, sides: &[u32]) {
        self.sides.copy_from_slice(sides);
    }

    /// Mends the network.
    pub fn heal(&mut self) {
        self.sides.fill(0);
    }

    /// Whether no cut is between two machines.
    pub(super) fn connects(&self, one: usize, other: usize) -> bool {
        self.sides[one] == self.sides[other]
    }

    /// A datagram leaves a machine: it is lost, or arrives later, perhaps twice.
    pub(super) fn carry(
        &mut self,
        rng: &mut SimulationRng,
        now: Time,
        from: usize,
        datagram: DatagramInFlight,
    ) {
        if !self.connects(from, datagram.to) || rng.below(1_000_000) < self.conditions.loss {
            return;
        }
        if rng.below(1_000_000) < self.conditions.twice {
            self.send(rng, now, datagram.clone());
        }
        self.send(rng, now, datagram);
    }

    fn send(&mut self, rng: &mut SimulationRng, now: Time, datagram: DatagramInFlight) {
        self.sent += 1;
        let more = Span::from_nanos(rng.below(self.conditions.jitter.as_nanos()));
        let at = now + self.conditions.delay + more;
        self.way.insert((at, self.sent), datagram);
    }

    /// When the next datagram arrives.
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.way.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next datagram that arrives, with its number.
    pub(super) fn take_next(&mut self) -> Option<(u64, DatagramInFlight)> {
        self.way.pop_first().map(|((_, number), datagram)| (number, datagram))
    }

    /// A datagram waits at a machine that stalls until then.
    pub(super) fn hold(&mut self, number: u64, datagram: DatagramInFlight, until: Time) {
        self.way.insert((until + READING, number), datagram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1000);

    fn network(conditions: LinkConditions) -> (DatagramNetwork, SimulationRng) {
        let mut network = DatagramNetwork::new(conditions);
        network.add_machine();
        network.add_machine();
        (network, SimulationRng::new(1))
    }

    fn datagram() -> DatagramInFlight {
        DatagramInFlight { to: 1, source: ([10, 0, 0, 1], 9000).into(), payload: vec![7] }
    }

    #[test]
    fn a_datagram_arrives_after_the_delay_and_twice_if_it_is_doubled() {
        let delay = Span::from_micros(5);
        let conditions = LinkConditions { delay, jitter: Span::ZERO, loss: 0, twice: 1_000_000 };
        let (mut network, mut rng) = network(conditions);
        network.carry(&mut rng, NOW, 0, datagram());
        assert_eq!(network.next_arrival(), Some(NOW + delay));
        let numbers: Vec<u64> =
            std::iter::from_fn(|| network.take_next()).map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn nothing_crosses_a_cut_and_nothing_arrives_where_all_is_lost() {
        let (mut network, mut rng) = network(LinkConditions::LAN);
        network.cut(&[0, 1]);
        network.carry(&mut rng, NOW, 0, datagram());
        network.heal();
        network.conditions = LinkConditions::LAN.losing(1_000_000);
        network.carry(&mut rng, NOW, 0, datagram());
        assert_eq!(network.next_arrival(), None);
    }

    #[test]
    fn a_datagram_waits_until_after_a_stall() {
        let (mut network, mut rng) = network(LinkConditions::LAN);
        network.carry(&mut rng, NOW, 0, datagram());
        let (number, first) = network.take_next().expect("one is on its way");
        let until = NOW + Span::from_secs(1);
        network.hold(number, first, until);
        assert_eq!(network.next_arrival(), Some(until + READING));
    }
}
