//! Round-trip times that windtunnel measures itself, by echo requests of the nodes.

use serde::{Deserialize, Serialize};
use windtunnel_model::expect::{Expectation, ExpectationClaim, ExpectationWindow, PathFact};
use windtunnel_model::{NodeId, Plan, Span, Time};

/// Echo requests on one path, shared by all expectations that ask for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoProbe {
    pub from: NodeId,
    pub to: NodeId,
    /// When, and how often; before the run begins if `None`.
    pub during: Option<(ExpectationWindow, Span)>,
}

/// What the echo requests on one path saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoResults {
    /// For each request, when it was sent after the run began (zero for those before), and its
    /// round trip.
    pub echoes: Vec<(Span, Option<Span>)>,
    /// Why requests could not be sent.
    pub error: Option<String>,
}

impl EchoProbe {
    /// The probe that an expectation needs, if it needs one.
    pub fn of(expectation: &Expectation) -> Option<EchoProbe> {
        let ExpectationClaim::Path { from, to, fact, every } = expectation.claim else {
            return None;
        };
        match fact {
            PathFact::Rtt(..) | PathFact::Loss(_) => {}
            PathFact::Throughput(..) | PathFact::Deviation(_) => return None,
        }
        Some(EchoProbe { from, to, during: expectation.window.zip(every) })
    }

    /// All that a plan needs, each once.
    pub fn all(plan: &Plan) -> Vec<EchoProbe> {
        let mut probes = Vec::new();
        for probe in plan.expectations.iter().filter_map(EchoProbe::of) {
            if !probes.contains(&probe) {
                probes.push(probe);
            }
        }
        probes
    }

    /// How many requests, and how often. The end of an open window is the end of the run.
    pub fn requests(&self, duration: Option<Span>) -> (u16, Span) {
        let Some((window, every)) = self.during else { return (ECHO_COUNT, ECHO_INTERVAL) };
        let end = window.to.or(duration).unwrap_or(window.from);
        let count = end.saturating_sub(window.from).as_nanos() / every.as_nanos().max(1);
        (u16::try_from(count).unwrap_or(ECHOES_MOST).clamp(1, ECHOES_MOST), every)
    }
}

impl EchoProbe {
    /// What a node has measured: for each request, when it was sent after the run began, and its
    /// round trip.
    pub fn seen(
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

impl EchoResults {
    /// Round trips, sorted.
    pub fn sorted(&self) -> Vec<Span> {
        let mut rtts: Vec<Span> = self.echoes.iter().filter_map(|(_, rtt)| *rtt).collect();
        rtts.sort_unstable();
        rtts
    }

    /// The median; the mean of the middle two for an even number.
    pub fn median(&self) -> Option<Span> {
        let sorted = self.sorted();
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Span::from_nanos(lower.as_nanos().midpoint(upper.as_nanos())))
    }

    /// The mean of all round trips.
    pub fn mean(&self) -> Option<Span> {
        let sorted = self.sorted();
        let sum: u128 = sorted.iter().map(|rtt| u128::from(rtt.as_nanos())).sum();
        let mean = sum.checked_div(sorted.len() as u128)?;
        u64::try_from(mean).ok().map(Span::from_nanos)
    }

    /// Requests without reply.
    pub fn lost(&self) -> usize {
        self.echoes.iter().filter(|(_, rtt)| rtt.is_none()).count()
    }
}

const ECHO_COUNT: u16 = 20;

const ECHO_INTERVAL: Span = Span::from_millis(20);

/// The most that a node measures at once.
pub const ECHOES_MOST: u16 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(millis: &[Option<u64>]) -> EchoResults {
        let echoes = millis.iter().map(|ms| (Span::ZERO, ms.map(Span::from_millis)));
        EchoResults { echoes: echoes.collect(), error: None }
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
        let window = ExpectationWindow { from: Span::from_secs(2), to: None };
        let during = Some((window, Span::from_millis(100)));
        let probe = EchoProbe { from: NodeId(0), to: NodeId(1), during };
        assert_eq!(probe.requests(Some(Span::from_secs(5))), (30, Span::from_millis(100)));
    }
}
