//! Round-trip times that windtunnel measures itself, before the programs start: echo requests through the
//! nodes' own kernels and the real packet loop. The engine is reset afterwards, so that they cost no luck.

use windtunnel_model::plan::Expectation;
use windtunnel_model::{NodeId, Span};
use windtunnel_node::Request;

use super::Live;
use crate::observer::Notice;

/// What the echo requests on one path saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RttSeen {
    /// Round trips, in the order of the requests.
    pub(crate) rtts: Vec<Span>,
    /// Why requests could not be sent.
    pub(crate) error: Option<String>,
}

impl RttSeen {
    /// The median; the mean of the middle two for an even number.
    pub(crate) fn median(&self) -> Option<Span> {
        let mut sorted = self.rtts.clone();
        sorted.sort_unstable();
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Span::from_nanos(lower.as_nanos().midpoint(upper.as_nanos())))
    }
}

impl Live {
    /// Measures every path that an expectation names, all at once, and waits for the results.
    pub(crate) fn measure_paths(&mut self) {
        let wanted = self.paths_wanted();
        if wanted.is_empty() {
            return;
        }
        self.observer.notice(&Notice::Measuring { paths: wanted.len() });
        let mut asked = 0;
        for (index, from, to) in wanted {
            match self.ask(index, from, to) {
                Ok(()) => asked += 1,
                Err(error) => {
                    self.rtts.push((index, RttSeen { error: Some(error), ..RttSeen::default() }));
                    asked += 1;
                }
            }
        }
        while self.rtts.len() < asked && self.ending.is_none() {
            self.wait(Some(Span::from_millis(100)));
        }
    }

    fn paths_wanted(&self) -> Vec<(usize, NodeId, NodeId)> {
        let expectations = self.plan.expectations.iter().enumerate();
        expectations
            .filter_map(|(index, expectation)| match expectation {
                Expectation::PathRtt { from, to, .. } => Some((index, *from, *to)),
                _ => None,
            })
            .collect()
    }

    fn ask(&self, index: usize, from: NodeId, to: NodeId) -> Result<(), String> {
        let target = self.plan.nodes[to.index()].interfaces.first();
        let address = target.and_then(|interface| interface.addresses().next());
        let address = address.ok_or_else(|| "the node has no address".to_owned())?;
        let request = Request::Echo {
            token: index as u64,
            address,
            count: ECHO_COUNT,
            interval_ns: ECHO_INTERVAL.as_nanos(),
        };
        self.village.node(from).send(&request, &[]).map_err(|error| error.to_string())
    }

    pub(super) fn echo_done(&mut self, token: u64, rtts_ns: &[u64], error: Option<String>) {
        let rtts = rtts_ns.iter().map(|&ns| Span::from_nanos(ns)).collect();
        if let Ok(index) = usize::try_from(token) {
            self.rtts.push((index, RttSeen { rtts, error }));
        }
    }
}

const ECHO_COUNT: u16 = 20;
const ECHO_INTERVAL: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_middle_of_the_middle_two() {
        let seen = |millis: &[u64]| RttSeen {
            rtts: millis.iter().map(|&ms| Span::from_millis(ms)).collect(),
            error: None,
        };
        assert_eq!(seen(&[]).median(), None);
        assert_eq!(seen(&[3, 1, 2]).median(), Some(Span::from_millis(2)));
        assert_eq!(seen(&[10, 1, 4, 2]).median(), Some(Span::from_millis(3)));
    }
}
