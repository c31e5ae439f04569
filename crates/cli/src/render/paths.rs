//! The path table of `check`.

use serde::Serialize;
use windtunnel_model::routing::PathSummary;
use windtunnel_model::{NodeId, Plan, Probability, Rate, Routes, Span};

use crate::render::quantity;
use crate::render::table::{Align, Table};

/// What lies between two nodes, one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Path {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) latency: Span,
    /// The smallest rate on the way, if any link has one.
    pub(crate) bottleneck: Option<Rate>,
    /// Whether that is the mean of a trace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) bottleneck_is_trace: bool,
    pub(crate) loss: Probability,
    pub(crate) hops: usize,
}

/// Which pairs are asked for: names of nodes or of groups, all without one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filter<'a> {
    pub(crate) from: Option<&'a str>,
    pub(crate) to: Option<&'a str>,
}

/// The first `most` paths between ordered pairs of nodes, and how many more pairs there are. Pairs that
/// cannot reach each other (where the file allows that) are left out.
pub(crate) fn paths(
    plan: &Plan,
    routes: &Routes,
    filter: Filter<'_>,
    most: usize,
) -> (Vec<Path>, usize) {
    let (from, to) = (chosen(plan, filter.from), chosen(plan, filter.to));
    let both = from.iter().filter(|id| to.contains(id)).count();
    let pairs = from.len().saturating_mul(to.len()) - both;
    let ordered = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
    let asked = ordered.filter(|(a, b)| a != b).take(most);
    let found = asked.filter_map(|(a, b)| path(plan, routes, a, b)).collect();
    (found, pairs.saturating_sub(most))
}

/// The table for people.
pub(crate) fn table(paths: &[Path]) -> Table {
    let mut table = Table::new(&[
        ("from", Align::Left),
        ("to", Align::Left),
        ("latency", Align::Right),
        ("bottleneck", Align::Right),
        ("loss", Align::Right),
        ("hops", Align::Right),
    ]);
    for path in paths {
        let rate = path.bottleneck.map(|rate| asked_rate(rate, path.bottleneck_is_trace));
        table.row([
            path.from.clone(),
            path.to.clone(),
            quantity::span(path.latency),
            rate.unwrap_or_else(|| "-".to_owned()),
            quantity::loss(path.loss),
            path.hops.to_string(),
        ]);
    }
    table
}

/// A rate, or the mean of a trace.
pub(crate) fn asked_rate(rate: Rate, is_trace: bool) -> String {
    let rate = quantity::rate(rate.bits_per_second());
    if is_trace { format!("trace (mean {rate})") } else { rate }
}

fn chosen(plan: &Plan, name: Option<&str>) -> Vec<NodeId> {
    let nodes = plan.nodes.iter().enumerate();
    let named =
        nodes.filter(|(_, node)| name.is_none_or(|name| node.name == name || node.group == name));
    named.map(|(id, _)| NodeId::from_index(id)).collect()
}

fn path(plan: &Plan, routes: &Routes, from: NodeId, to: NodeId) -> Option<Path> {
    let lanes = routes.path(plan, from, to)?;
    let PathSummary { latency, bottleneck, loss, hops } = PathSummary::of(plan, &lanes);
    let profiles = lanes.iter().map(|l| &plan.links[l.link.index()].profiles[l.direction.index()]);
    let bottleneck_is_trace = profiles
        .filter(|profile| profile.rate == bottleneck)
        .any(|profile| profile.traces.rate.is_some());
    let name = |id: NodeId| plan.nodes[id.index()].name.clone();
    let (from, to) = (name(from), name(to));
    Some(Path { from, to, latency, bottleneck, bottleneck_is_trace, loss, hops })
}
