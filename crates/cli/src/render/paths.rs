//! The path table of `check`.

use serde::Serialize;
use windtunnel_model::{NodeId, Plan, Probability, Rate, Span};
use windtunnel_routing::{PathSummary, Routes};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// A path between two nodes, one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EndToEndPath {
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
    /// The names between the two.
    pub(crate) via: Vec<String>,
    /// Which of the ways between the two this is, from 1.
    pub(crate) way: u64,
    /// How many ways there are: more than one only with equal-cost routing.
    pub(crate) ways: u64,
}

/// Which pairs are asked for: names of nodes or of groups, all without one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NodePairFilter<'a> {
    pub(crate) from: Option<&'a str>,
    pub(crate) to: Option<&'a str>,
}

/// The first `most` paths between ordered pairs of nodes, and how many more pairs there are. Pairs
/// that cannot reach each other (where the file allows that) are left out.
pub(crate) fn paths(
    plan: &Plan,
    routes: &Routes,
    filter: NodePairFilter<'_>,
    most: usize,
) -> (Vec<EndToEndPath>, usize) {
    let (from, to) = (chosen(plan, filter.from), chosen(plan, filter.to));
    let both = from.iter().filter(|id| to.contains(id)).count();
    let pairs = from.len().saturating_mul(to.len()) - both;
    let ordered = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
    let asked = ordered.filter(|(a, b)| a != b).take(most);
    let found = asked.flat_map(|(a, b)| ways(plan, routes, a, b)).collect();
    (found, pairs.saturating_sub(most))
}

/// Additional columns for a plan with several shortest ways between two nodes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathTableColumns {
    /// The number of each way.
    ways: bool,
    /// The names along the way.
    via: bool,
}

impl PathTableColumns {
    pub(crate) fn of(plan: &Plan) -> Self {
        PathTableColumns {
            ways: plan.routing.ecmp,
            via: plan.routing.ecmp || !plan.routes.is_empty(),
        }
    }
}

/// The table for people.
pub(crate) fn table(extras: PathTableColumns, paths: &[EndToEndPath]) -> TextTable {
    let mut columns = vec![
        ("from", ColumnAlignment::Left),
        ("to", ColumnAlignment::Left),
        ("latency", ColumnAlignment::Right),
        ("bottleneck", ColumnAlignment::Right),
        ("loss", ColumnAlignment::Right),
        ("hops", ColumnAlignment::Right),
    ];
    if extras.ways {
        columns.push(("way", ColumnAlignment::Left));
    }
    if extras.via {
        columns.push(("via", ColumnAlignment::Left));
    }
    let mut table = TextTable::new(&columns);
    for path in paths {
        let rate = path.bottleneck.map(|rate| asked_rate(rate, path.bottleneck_is_trace));
        let mut row = vec![
            path.from.clone(),
            path.to.clone(),
            quantity::span(path.latency),
            rate.unwrap_or_else(|| "-".to_owned()),
            quantity::loss(path.loss),
            path.hops.to_string(),
        ];
        if extras.ways {
            let more = if path.ways > WAYS_COUNTED { " or more" } else { "" };
            row.push(format!("{} of {}{more}", path.way, path.ways.min(WAYS_COUNTED)));
        }
        if extras.via {
            row.push(path.via.join(" "));
        }
        table.row(row);
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

/// The first ways between two nodes; none if they cannot reach each other.
fn ways(plan: &Plan, routes: &Routes, from: NodeId, to: NodeId) -> Vec<EndToEndPath> {
    let (found, ways) = routes.paths(plan, from, to, WAYS_SHOWN);
    let name = |id: NodeId| plan.nodes[id.index()].name.clone();
    let numbered = (1..).zip(found);
    numbered
        .map(|(way, lanes)| {
            let PathSummary { latency, bottleneck, loss, hops } = PathSummary::of(plan, &lanes);
            let profiles =
                lanes.iter().map(|l| &plan.links[l.link.index()].profiles[l.direction.index()]);
            let bottleneck_is_trace = profiles
                .filter(|profile| profile.rate == bottleneck)
                .any(|profile| profile.traces.rate.is_some());
            let inner = lanes.iter().skip(1).map(|lane| plan.lane_start(*lane));
            let via = inner.map(|vertex| plan.vertex_name(vertex).to_owned()).collect();
            let (from, to) = (name(from), name(to));
            EndToEndPath {
                from,
                to,
                latency,
                bottleneck,
                bottleneck_is_trace,
                loss,
                hops,
                via,
                way,
                ways,
            }
        })
        .collect()
}

/// Equal ways between two nodes that are shown.
const WAYS_SHOWN: usize = 8;
/// Above this, ways are no longer counted exactly.
const WAYS_COUNTED: u64 = 1000;
