//! How routers find their ways.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// How routers find their ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Routing {
    /// What a shortest route minimises.
    pub metric: RoutingMetric,
    /// Whether a router spreads flows over all its ways of equal cost (RFC 2991), or uses the
    /// first.
    pub ecmp: bool,
    /// Shortest routes are computed again so long after a lane went down or up (a change of its
    /// own, a partition, its end); `None`: never.
    pub reroute: Option<Span>,
}

impl From<RoutingMetric> for Routing {
    fn from(metric: RoutingMetric) -> Self {
        Routing { metric, ..Routing::default() }
    }
}

/// What a shortest route minimises; ties go to fewer hops, then to the link named first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMetric {
    /// The sum of latencies.
    #[default]
    Latency,
    /// The number of links.
    Hops,
}
