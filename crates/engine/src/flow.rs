//! What machines tell each other of their flows.

use windtunnel_model::{Bytes, NodeId, Rate, Span};
use windtunnel_sharing::Terms;

/// The name of a flow that another machine can read: with the plan it says which way the flow goes.
///
/// `number` is, in mixed radix, ((*serial* · *classes* + *class*) · *places* + *place*) ·
/// *interfaces* + *interface*:
///
/// - *interface*: by which of its `interfaces` the source sends;
/// - *place*: which of the destination's interfaces the flow is aimed at, of so many as it has.
///   Where `destination` is the source itself: which of its own interfaces, then which router,
///   counted behind them;
/// - *class*: what chooses among ways of equal cost (12 bits of the hash of the flow's addresses
///   and ports; with the model of paths nothing else does), of 4096 with `routing.ecmp`, else of
///   one;
/// - *serial*: what tells flows apart that all this is the same of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteKey {
    /// The node that sends.
    pub source: NodeId,
    /// The node that receives; the source itself where a router does.
    pub destination: NodeId,
    /// Which of the flows between the two.
    pub number: u32,
}

/// The terms on which a flow takes part in the sharing of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowTerms {
    /// The round-trip time of its path, without queues.
    pub rtt: Span,
    /// Bit/s of the wire that it wants at the most; `None`: as much as it gets.
    pub demand: Option<u64>,
    /// Bytes that it keeps on the way at the most; 0: no bound.
    pub window: u64,
}

/// A flow that began or changed, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowNews {
    /// The node that sends.
    pub source: NodeId,
    /// The node that receives; see [`RemoteKey`].
    pub destination: NodeId,
    /// Which of the flows between the two; see [`RemoteKey`].
    pub number: u32,
    /// What holds now; `None`: it has ended.
    pub flow: Option<FlowTerms>,
}

impl FlowNews {
    /// What holds of a flow now.
    #[must_use]
    pub fn new(key: RemoteKey, flow: Option<FlowTerms>) -> Self {
        let RemoteKey { source, destination, number } = key;
        FlowNews { source, destination, number, flow }
    }

    /// Which flow.
    #[must_use]
    pub fn key(&self) -> RemoteKey {
        let FlowNews { source, destination, number, .. } = *self;
        RemoteKey { source, destination, number }
    }
}

impl FlowTerms {
    /// Whether all that is other than `before` is that it wants less.
    pub(crate) fn wants_less(&self, before: &FlowTerms) -> bool {
        let less = match (self.demand, before.demand) {
            (Some(now), Some(before)) => now < before,
            (Some(_), None) => true,
            (None, _) => false,
        };
        less && FlowTerms { demand: before.demand, ..*self } == *before
    }

    pub(crate) fn of(terms: &Terms) -> Self {
        FlowTerms {
            rtt: terms.rtt,
            demand: terms.demand.map(Rate::bits_per_second),
            window: terms.window.map_or(0, |window| window.0),
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        Terms {
            rtt: self.rtt,
            window: (self.window > 0).then_some(Bytes(self.window)),
            demand: self.demand.and_then(|demand| Rate::from_bits_per_second(demand.max(1))),
        }
    }
}
