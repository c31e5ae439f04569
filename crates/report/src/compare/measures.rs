//! What is measured in each run: of each link direction, of flows, of requests, and the verdict.

use std::collections::BTreeMap;

use serde_json::Value;

use super::inputs::RunComparisonInputs;
use crate::document::distribution::DurationHistogram;
use crate::document::run::RunSection;

/// A measure, with a value for each run that has it.
#[derive(Debug)]
pub(super) struct CrossRunMeasure {
    pub what: String,
    pub unit: &'static str,
    pub about: String,
    pub link: Option<String>,
    pub direction: Option<String>,
    pub values: Vec<Option<f64>>,
}

/// A figure of one run.
struct RunMeasurement {
    /// What orders measures, and is the same for the same measure of other runs.
    key: (usize, String, String),
    unit: &'static str,
    lane: Option<(String, String)>,
    value: f64,
}

/// All measures that any run has.
pub(super) fn all(runs: &[RunSection], facts: &[RunComparisonInputs]) -> Vec<CrossRunMeasure> {
    let mut measures: BTreeMap<(usize, String, String), CrossRunMeasure> = BTreeMap::new();
    for (index, (run, facts)) in runs.iter().zip(facts).enumerate() {
        for figure in figures(run, facts) {
            let (_, about, what) = figure.key.clone();
            let (link, direction) = figure.lane.unzip();
            let found = measures.entry(figure.key).or_insert_with(|| CrossRunMeasure {
                what,
                unit: figure.unit,
                about,
                link,
                direction,
                values: vec![None; runs.len()],
            });
            found.values[index] = Some(figure.value);
        }
    }
    measures.into_values().collect()
}

fn figures(run: &RunSection, facts: &RunComparisonInputs) -> Vec<RunMeasurement> {
    let mut all = verdict(run);
    all.extend(times(run, facts));
    for lane in 0..run.lanes.len() {
        all.extend(of_lane(run, facts, lane));
    }
    all
}

fn verdict(run: &RunSection) -> Vec<RunMeasurement> {
    let verdict = run.summary.as_ref().and_then(|summary| summary.get("verdict"));
    let says = |key: &str| verdict.and_then(|verdict| verdict.get(key)).and_then(Value::as_bool);
    let figure = |what: &str, key: &str| {
        let value = if says(key)? { 1.0 } else { 0.0 };
        let key = (0, "runs".to_owned(), what.to_owned());
        Some(RunMeasurement { key, unit: "1", lane: None, value })
    };
    [figure("passed", "passed"), figure("faithful", "faithful")].into_iter().flatten().collect()
}

/// Quantiles of times: of requests, round trips and lateness.
fn times(run: &RunSection, facts: &RunComparisonInputs) -> Vec<RunMeasurement> {
    let requests = DurationHistogram::rounded(String::new(), facts.request_ns.iter().copied());
    let mut all = quantiles(1, "recorded requests", "request", &requests);
    let of_flows = run.rtt.iter().filter(|rtt| rtt.flow.is_some());
    let mut together: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in of_flows.flat_map(|rtt| &rtt.bins) {
        *together.entry(*value).or_insert(0) += count;
    }
    let together = DurationHistogram::of(String::new(), &together);
    all.extend(quantiles(2, "recorded TCP flows", "rtt", &together));
    for path in run.rtt.iter().filter(|rtt| rtt.flow.is_none()) {
        all.extend(quantiles(3, &path.name, "rtt", path));
    }
    if let Some(lateness) = run.lateness.iter().find(|it| it.lane.is_none()) {
        all.extend(quantiles(4, "all packets", "lateness", lateness));
    }
    all
}

fn quantiles(order: usize, about: &str, what: &str, of: &DurationHistogram) -> Vec<RunMeasurement> {
    let figure = |(name, permille): (&str, u64)| {
        let key = (order, about.to_owned(), format!("{what} {name}"));
        Some(RunMeasurement { key, unit: "ns", lane: None, value: float(of.quantile(permille)?) })
    };
    [("p50", 500), ("p99", 990)].into_iter().filter_map(figure).collect()
}

fn of_lane(run: &RunSection, facts: &RunComparisonInputs, lane: usize) -> Vec<RunMeasurement> {
    let names = &run.lanes[lane];
    let about = format!("{} {}", names.link, names.direction);
    let figure = |what: &str, unit: &'static str, value: f64| RunMeasurement {
        key: (5 + lane, about.clone(), what.to_owned()),
        unit,
        lane: Some((names.link.clone(), names.direction.clone())),
        value,
    };
    let mut all = Vec::new();
    let Some(series) = &run.series.lanes[lane] else { return all };
    let delivered: u64 = series.delivered_bytes.iter().sum();
    if run.elapsed_ns > 0 {
        let rate = float(delivered) * 8e9 / float(run.elapsed_ns);
        all.push(figure("goodput", "bit/s", rate));
    }
    if let Some((dropped, offered)) = facts.packets.get(lane).filter(|(_, offered)| *offered > 0) {
        all.push(figure("dropped", "1", float(*dropped) / float(*offered)));
    }
    if let (Some(most), Some(mean)) =
        (series.queue_max_packets.iter().max(), mean(&series.queue_max_packets))
    {
        all.push(figure("queue max", "packets", float(*most)));
        all.push(figure("queue mean peak", "packets", mean));
    }
    let late = run.lateness.iter().find(|it| it.lane == Some(lane));
    if let Some(p99) = late.and_then(|late| late.quantile(990)) {
        all.push(figure("lateness p99", "ns", float(p99)));
    }
    all
}

fn mean(values: &[u64]) -> Option<f64> {
    let sum: u64 = values.iter().sum();
    (!values.is_empty()).then(|| float(sum) / float(u64::try_from(values.len()).unwrap_or(1)))
}

#[expect(clippy::cast_precision_loss, reason = "figures to be compared, not counted")]
fn float(value: u64) -> f64 {
    value as f64
}
