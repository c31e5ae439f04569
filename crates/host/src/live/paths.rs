//! Round-trip times that windtunnel measures itself: echo requests through the nodes' own kernels
//! and the real packet loop. Before the programs start, the engine is reset afterwards, so that
//! they cost no luck; in a window of the run they are packets like any other.

use serde::{Deserialize, Serialize};
use windtunnel_model::expect::{Claim, Expectation, PathFact, Window};
use windtunnel_model::{NodeId, Plan, Span, Time};
use windtunnel_node::Request;

use super::Live;
use crate::dataplane::now;
use crate::observer::Notice;

/// Echo requests on one path, shared by all expectations that ask for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// When, and how often; before the run begins if `None`.
    pub(crate) during: Option<(Window, Span)>,
}

/// What the echo requests on one path saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EchoesSeen {
    /// For each request, when it was sent after the run began (zero for those before), and its
    /// round trip.
    pub(crate) echoes: Vec<(Span, Option<Span>)>,
    /// Why requests could not be sent.
    pub(crate) error: Option<String>,
}

impl Probe {
    /// The probe that an expectation needs, if it needs one.
    pub(crate) fn of(expectation: &Expectation) -> Option<Probe> {
        let Claim::Path { from, to, fact, every } = expectation.claim else { return None };
        match fact {
            PathFact::Rtt(..) | PathFact::Loss(_) => {}
            PathFact::Throughput(..) | PathFact::Deviation(_) => return None,
        }
        Some(Probe { from, to, during: expectation.window.zip(every) })
    }

    /// All that a plan needs, each once.
    pub(crate) fn all(plan: &Plan) -> Vec<Probe> {
        let mut probes = Vec::new();
        for probe in plan.expectations.iter().filter_map(Probe::of) {
            if !probes.contains(&probe) {
                probes.push(probe);
            }
        }
        probes
    }

    /// How many requests, and how often. The end of an open window is the end of the run.
    fn requests(&self, duration: Option<Span>) -> (u16, Span) {
        let Some((window, every)) = self.during else { return (ECHO_COUNT, ECHO_INTERVAL) };
        let end = window.to.or(duration).unwrap_or(window.from);
        let count = end.saturating_sub(window.from).as_nanos() / every.as_nanos().max(1);
        (u16::try_from(count).unwrap_or(ECHOES_MOST).clamp(1, ECHOES_MOST), every)
    }
}

impl Probe {
    /// What a node has measured: for each request, when it was sent after the run began, and its
    /// round trip.
    pub(super) fn seen(
        &self,
        origin: Time,
        began_ns: u64,
        echoes: &[(u64, Option<u64>)],
    ) -> Vec<(Span, Option<Span>)> {
        let began = Time::from_nanos(began_ns).since(origin);
        let sent = |micros| match self.during {
            Some(_) => began + Span::from_micros(micros),
            None => Span::ZERO,
        };
        let echo = |&(micros, rtt): &(u64, Option<u64>)| (sent(micros), rtt.map(Span::from_nanos));
        echoes.iter().map(echo).collect()
    }
}

impl EchoesSeen {
    /// Round trips, sorted.
    pub(crate) fn sorted(&self) -> Vec<Span> {
        let mut rtts: Vec<Span> = self.echoes.iter().filter_map(|(_, rtt)| *rtt).collect();
        rtts.sort_unstable();
        rtts
    }

    /// The median; the mean of the middle two for an even number.
    pub(crate) fn median(&self) -> Option<Span> {
        let sorted = self.sorted();
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Span::from_nanos(lower.as_nanos().midpoint(upper.as_nanos())))
    }

    pub(crate) fn mean(&self) -> Option<Span> {
        let sorted = self.sorted();
        let sum: u128 = sorted.iter().map(|rtt| u128::from(rtt.as_nanos())).sum();
        let mean = sum.checked_div(sorted.len() as u128)?;
        u64::try_from(mean).ok().map(Span::from_nanos)
    }

    /// Requests without reply.
    pub(crate) fn lost(&self) -> usize {
        self.echoes.iter().filter(|(_, rtt)| rtt.is_none()).count()
    }
}

impl Live {
    /// Measures every path that is to be measured before the run, all at once, and waits for the
    /// results.
    pub(crate) fn measure_paths(&mut self) {
        let before: Vec<usize> = self.probes_where(|probe| probe.during.is_none()).collect();
        if before.is_empty() {
            return;
        }
        self.observer.notice(&Notice::Measuring { paths: before.len() });
        for &index in &before {
            self.start_probe(index);
        }
        while self.echoes.len() < before.len() && self.end.reason().is_none() {
            self.wait(Some(Span::from_millis(100)));
        }
    }

    /// Starts the measurements whose window has begun.
    pub(super) fn start_probes(&mut self, elapsed: Span) {
        let due = |probe: &Probe| probe.during.is_some_and(|(window, _)| window.from <= elapsed);
        let due: Vec<usize> =
            self.probes_where(due).filter(|index| !self.probes_started.contains(index)).collect();
        for index in due {
            self.start_probe(index);
        }
    }

    /// When the next measurement starts.
    pub(super) fn next_probe(&self) -> Option<Span> {
        let waiting = self.probes.iter().enumerate();
        let waiting = waiting.filter(|(index, probe)| {
            self.is_here(probe.from) && !self.probes_started.contains(index)
        });
        waiting.filter_map(|(_, probe)| Some(probe.during?.0.from)).min()
    }

    /// The run ends: no more requests, but replies on their way are waited for.
    pub(super) fn end_probes(&mut self) {
        let open = |live: &Live| -> Vec<usize> {
            let done = |index: &usize| live.echoes.iter().any(|(known, _)| known == index);
            let lives = |index: &usize| !live.dead.contains(&live.probes[*index].from.index());
            let started = live.probes_started.iter().copied();
            started.filter(|index| !done(index) && lives(index)).collect()
        };
        for index in open(self) {
            let request = Request::EndEcho { token: index as u64 };
            // A node that has failed says so itself.
            let _ = self.send(self.probes[index].from.index(), &request, &[]);
        }
        let deadline = now() + ECHO_GRACE;
        while !open(self).is_empty() && now() < deadline && !self.end.is_hurried() {
            self.wait(Some(deadline.since(now())));
        }
    }

    /// Those of probes from nodes here that are wanted.
    fn probes_where(&self, wanted: impl Fn(&Probe) -> bool) -> impl Iterator<Item = usize> {
        let probes = self.probes.iter().enumerate();
        probes
            .filter(move |(_, probe)| wanted(probe) && self.is_here(probe.from))
            .map(|(index, _)| index)
    }

    fn start_probe(&mut self, index: usize) {
        self.probes_started.insert(index);
        if let Err(error) = self.ask(index) {
            self.echoes.push((index, EchoesSeen { error: Some(error), ..EchoesSeen::default() }));
        }
    }

    fn ask(&self, index: usize) -> Result<(), String> {
        let probe = &self.probes[index];
        let target = self.plan.nodes[probe.to.index()].interfaces.first();
        let address = target.and_then(|interface| interface.addresses().next());
        let address = address.ok_or_else(|| "the node has no address".to_owned())?;
        let (count, interval) = probe.requests(self.plan.duration);
        let request =
            Request::Echo { token: index as u64, address, count, interval_ns: interval.as_nanos() };
        self.send(probe.from.index(), &request, &[])
    }

    pub(super) fn echo_done(
        &mut self,
        token: u64,
        began_ns: u64,
        echoes: &[(u64, Option<u64>)],
        error: Option<String>,
    ) {
        let Ok(index) = usize::try_from(token) else { return };
        let Some(probe) = self.probes.get(index) else { return };
        let echoes = probe.seen(self.origin, began_ns, echoes);
        self.echoes.push((index, EchoesSeen { echoes, error }));
    }
}

const ECHO_COUNT: u16 = 20;
const ECHO_INTERVAL: Span = Span::from_millis(20);
/// The most that a node measures at once.
pub(super) const ECHOES_MOST: u16 = 5000;
/// A little more than nodes wait for replies themselves.
const ECHO_GRACE: Span = Span::from_millis(3500);

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(millis: &[Option<u64>]) -> EchoesSeen {
        let echoes = millis.iter().map(|ms| (Span::ZERO, ms.map(Span::from_millis)));
        EchoesSeen { echoes: echoes.collect(), error: None }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_middle_of_the_middle_two() {
        assert_eq!(seen(&[]).median(), None);
        assert_eq!(seen(&[Some(3), Some(1), Some(2)]).median(), Some(Span::from_millis(2)));
        let four = seen(&[Some(10), None, Some(1), Some(4), Some(2)]);
        assert_eq!(four.median(), Some(Span::from_millis(3)));
        assert_eq!(four.mean(), Some(Span::from_micros(4250)));
        assert_eq!(four.lost(), 1);
    }

    #[test]
    fn an_open_window_lasts_to_the_end_of_the_run() {
        let window = Window { from: Span::from_secs(2), to: None };
        let during = Some((window, Span::from_millis(100)));
        let probe = Probe { from: NodeId(0), to: NodeId(1), during };
        assert_eq!(probe.requests(Some(Span::from_secs(5))), (30, Span::from_millis(100)));
    }
}
