//! The wire between machines that have parts of one network.

use std::collections::BTreeMap;

use windtunnel_model::flow::FlowChange;
use windtunnel_model::{PortId, Span, Time};

use crate::SimulationRng;

/// Carries packets and news from machine to machine. News of one machine come to another one in
/// their order.
#[derive(Debug)]
pub struct Wire {
    /// How long a packet takes.
    pub packets: Span,
    /// How long news take: from the first to less than the second, randomly.
    pub news: [Span; 2],
    rng: SimulationRng,
    in_flight: BTreeMap<(Time, u64), InFlight>,
    sent: u64,
    late: u64,
    reported: u64,
    /// By sender and receiver: no news arrive earlier.
    floors: BTreeMap<(usize, usize), Time>,
}

/// A packet under way.
#[derive(Debug)]
pub(crate) enum InFlight {
    /// A frame for a port.
    Frame { port: PortId, frame: Vec<u8> },
    /// News of a part for a machine.
    News { from: u32, to: usize, news: Vec<FlowChange> },
}

impl Default for Wire {
    fn default() -> Self {
        Wire::new(Span::from_micros(100), [Span::from_micros(100), Span::from_micros(100)], 1)
    }
}

impl Wire {
    /// A wire with these delays.
    #[must_use]
    pub fn new(packets: Span, news: [Span; 2], seed: u64) -> Self {
        Wire {
            packets,
            news,
            rng: SimulationRng::new(seed),
            in_flight: BTreeMap::new(),
            sent: 0,
            late: 0,
            reported: 0,
            floors: BTreeMap::new(),
        }
    }

    /// Packets that came after the time at which they were to be there.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// News carried, each counted once for each receiver.
    #[must_use]
    pub fn announced(&self) -> u64 {
        self.reported
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.in_flight.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn take(&mut self, now: Time) -> Option<InFlight> {
        let first = self.in_flight.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// A frame that is to be at a port at `intended`, and waits there until then.
    pub(crate) fn carry(&mut self, now: Time, intended: Time, port: PortId, frame: Vec<u8>) {
        let arrival = now + self.packets;
        self.late += u64::from(arrival > intended);
        self.post(arrival.max(intended), InFlight::Frame { port, frame });
    }

    pub(crate) fn announce(
        &mut self,
        now: Time,
        from: usize,
        others: impl Iterator<Item = usize>,
        news: &[FlowChange],
    ) {
        if news.is_empty() {
            return;
        }
        for to in others {
            let [least, most] = self.news.map(Span::as_nanos);
            let delay = least + self.rng.below(most.saturating_sub(least));
            let floor = self.floors.entry((from, to)).or_default();
            let at = (now + Span::from_nanos(delay)).max(*floor);
            *floor = at;
            self.reported += u64::try_from(news.len()).unwrap_or(u64::MAX);
            let from = u32::try_from(from).unwrap_or(u32::MAX);
            self.post(at, InFlight::News { from, to, news: news.to_vec() });
        }
    }

    fn post(&mut self, at: Time, packet: InFlight) {
        self.in_flight.insert((at, self.sent), packet);
        self.sent += 1;
    }
}
