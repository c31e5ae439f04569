//! The link table of `check`: the values of presets and traces.

use std::collections::BTreeMap;

use serde::Serialize;
use windtunnel_model::{Lane, LinkDirection, LinkId, Plan, Probability, Rate, Span, TraceUse};

use crate::render::paths::asked_rate;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// The values of one direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LinkValueRow {
    link: String,
    direction: String,
    /// Preset or trace.
    from: String,
    latency: Span,
    /// The spread.
    jitter: Span,
    loss: Probability,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    /// Trace files by the property that follows them; the values above are their means.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    traces: BTreeMap<&'static str, String>,
}

/// Both directions of the links that `described` names.
pub(crate) fn values(plan: &Plan, described: &[(LinkId, String)]) -> Vec<LinkValueRow> {
    let lanes = described.iter().flat_map(|(link, from)| {
        LinkDirection::BOTH.map(|direction| (Lane { link: *link, direction }, from))
    });
    lanes.map(|(lane, from)| values_of(plan, lane, from)).collect()
}

fn values_of(plan: &Plan, lane: Lane, from: &str) -> LinkValueRow {
    let link = &plan.links[lane.link.index()];
    let profile = &link.profiles[lane.direction.index()];
    let named = [
        ("rate", profile.traces.rate),
        ("latency", profile.traces.latency),
        ("loss", profile.traces.loss),
    ];
    let file = |following: TraceUse| {
        let index = usize::try_from(following.trace).ok()?;
        plan.traces.get(index).map(|trace| trace.file.clone())
    };
    let traces = named.into_iter().filter_map(|(key, it)| Some((key, it.and_then(file)?)));
    LinkValueRow {
        link: link.name.clone(),
        direction: plan.lane_name(lane),
        from: from.to_owned(),
        latency: profile.latency,
        jitter: profile.jitter.spread,
        loss: profile.loss.long_run(),
        rate: profile.rate,
        queue: profile.effective_queue().map(|limit| limit.to_string()),
        traces: traces.collect(),
    }
}

/// The table for people, at most 40 rows of it unless `all`.
pub(crate) fn values_table(values: &[LinkValueRow], all: bool) -> String {
    let mut table = TextTable::new(&[
        ("link", ColumnAlignment::Left),
        ("direction", ColumnAlignment::Left),
        ("from", ColumnAlignment::Left),
        ("latency", ColumnAlignment::Right),
        ("jitter", ColumnAlignment::Right),
        ("loss", ColumnAlignment::Right),
        ("rate", ColumnAlignment::Right),
        ("queue", ColumnAlignment::Right),
    ]);
    let shown = if all { values.len() } else { values.len().min(ROWS_SHOWN) };
    for row in &values[..shown] {
        let dash = || "-".to_owned();
        let is_trace = |key| row.traces.contains_key(key);
        let mean = |key, text: String| match is_trace(key) {
            true => format!("trace (mean {text})"),
            false => text,
        };
        table.row([
            row.link.clone(),
            row.direction.clone(),
            row.from.clone(),
            mean("latency", quantity::span(row.latency)),
            quantity::span(row.jitter),
            mean("loss", quantity::loss(row.loss)),
            row.rate.map_or_else(dash, |rate| asked_rate(rate, is_trace("rate"))),
            row.queue.clone().unwrap_or_else(dash),
        ]);
    }
    let mut text = table.render("");
    if shown < values.len() {
        let more = quantity::count(values.len() - shown, "more link direction");
        text.push_str(&format!("… and {more}: --all shows them\n"));
    }
    text
}

const ROWS_SHOWN: usize = 40;
