//! How routers find their ways.

use schemars::JsonSchema;

use super::text::TimeOrNever;

/// How routers find their ways.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Routing {
    /// What a shortest route minimises.
    Metric(Metric),
    /// All of it.
    Form(RoutingForm),
}

/// What a shortest route minimises.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// The sum of latencies; ties go to fewer hops, then to the link named first.
    Latency,
    /// The number of links; a LAN counts as one.
    Hops,
}

/// How routers find their ways.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RoutingForm {
    /// What a shortest route minimises; default latency.
    metric: Option<Metric>,
    /// Whether a router spreads flows over all its shortest ways, each flow on one of them,
    /// instead of using the first; default false. Nodes, also those that forward, use one.
    ecmp: Option<bool>,
    /// Computes the shortest routes again so long after a link went down or up, a partition or its
    /// end; default `never`. Fixed routes stay.
    reroute: Option<TimeOrNever>,
}
