//! Flows as machines announce them to each other, and as they take part in the sharing of links.

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::quantity::Bytes;
use crate::rate::Rate;
use crate::time::{Span, Time};

/// The name of a flow that another machine can read: with the plan it gives the path of the flow.
///
/// With the model of paths, `number` is, in mixed radix, ((*serial* · *classes* + *class*) ·
/// *places* + *place*) · *interfaces* + *interface*:
///
/// - *interface*: by which of its `interfaces` the source sends;
/// - *place*: which of the destination's interfaces the flow is aimed at, of so many as it has.
///   Where `destination` is the source itself: which of its own interfaces, then which router,
///   counted behind them;
/// - *class*: what chooses among paths of equal cost (12 bits of the hash of the flow's addresses
///   and ports), of 4096 with `routing.ecmp`, else of one;
/// - *serial*: distinguishes flows that have all of this in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowKey {
    /// The node that sends.
    pub source: NodeId,
    /// The node that receives; the source itself where a router does.
    pub destination: NodeId,
    /// Which of the flows between the two; the source's machine numbers them.
    pub number: u32,
}

/// The terms on which a flow takes part: they may change while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTerms {
    /// The round-trip time of the path, without queues.
    pub rtt: Span,
    /// The bytes that the flow may have in flight (for TCP, the window): it never goes faster than
    /// a window a round trip. `None`: no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// What the flow wants, in bits a second of the wire; what is left of its share goes to
    /// others. `None`: all that it can get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<Rate>,
}

/// A flow that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveFlow {
    /// Its terms.
    pub terms: FlowTerms,
    /// When it began, on the monotonic clock of its source's machine.
    pub since: Time,
}

/// A flow that began or changed, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowChange {
    /// Which flow.
    pub key: FlowKey,
    /// What holds now; `None`: it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<ActiveFlow>,
}

impl FlowTerms {
    /// A flow with this round-trip time that wants all that it can get.
    #[must_use]
    pub const fn new(rtt: Span) -> Self {
        FlowTerms { rtt, window: None, demand: None }
    }

    /// The same with a window.
    #[must_use]
    pub const fn with_window(self, window: Bytes) -> Self {
        FlowTerms { window: Some(window), ..self }
    }

    /// The same with a demand.
    #[must_use]
    pub const fn with_demand(self, demand: Rate) -> Self {
        FlowTerms { demand: Some(demand), ..self }
    }

    /// What the window allows: a window a round trip (SplayNet, section 3.2: ρ ≤ W/RTT), rounded
    /// down to a bit a second, but never to nothing. `None` without a window, or when the round
    /// trip takes no time.
    #[must_use]
    pub(crate) fn window_rate(&self) -> Option<Rate> {
        const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;
        let bits = u128::from(self.window?.0) * BIT_NANOS_PER_BYTE;
        let rate = bits.checked_div(u128::from(self.rtt.as_nanos()))?;
        Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
    }

    /// The lesser of the demand and of what the window allows: the *ceiling* of the flow.
    #[must_use]
    pub fn ceiling(&self) -> Option<Rate> {
        match (self.demand, self.window_rate()) {
            (Some(demand), Some(window)) => Some(demand.min(window)),
            (demand, window) => demand.or(window),
        }
    }

    /// Whether all that is other than `before` is that it wants less.
    #[must_use]
    pub fn wants_less(&self, before: &FlowTerms) -> bool {
        let less = match (self.demand, before.demand) {
            (Some(now), Some(before)) => now < before,
            (Some(_), None) => true,
            (None, _) => false,
        };
        less && FlowTerms { demand: before.demand, ..*self } == *before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(terms: &FlowTerms) -> Option<u64> {
        terms.ceiling().map(Rate::bits_per_second)
    }

    #[test]
    fn a_window_a_round_trip_is_the_most() {
        let terms = FlowTerms::new(Span::from_millis(100)).with_window(Bytes(65_536));
        assert_eq!(rate(&terms), Some(5_242_880));
        let third = FlowTerms { rtt: Span::from_millis(300), ..terms };
        assert_eq!(rate(&third), Some(1_747_626), "1 747 626.67, rounded down");
    }

    #[test]
    fn the_lesser_of_window_and_demand_is_the_ceiling() {
        let terms = FlowTerms::new(Span::from_millis(100));
        assert_eq!(rate(&terms), None);
        let demand: Rate = "1mbit".parse().unwrap();
        assert_eq!(rate(&terms.with_demand(demand)), Some(1_000_000));
        assert_eq!(rate(&terms.with_demand(demand).with_window(Bytes(65_536))), Some(1_000_000));
        assert_eq!(rate(&terms.with_demand(demand).with_window(Bytes(1_250))), Some(100_000));
    }

    #[test]
    fn odd_windows_and_round_trips_have_a_rate() {
        assert_eq!(rate(&FlowTerms::new(Span::ZERO).with_window(Bytes(1))), None);
        assert_eq!(rate(&FlowTerms::new(Span::from_secs(9)).with_window(Bytes(0))), Some(1));
        let huge = FlowTerms::new(Span::from_nanos(1)).with_window(Bytes(u64::MAX));
        assert_eq!(rate(&huge), Some(u64::MAX));
    }
}
