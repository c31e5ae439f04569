//! What recorded evidence says of flows: sums, round-trip times, requests, modulation.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use windtunnel_evidence::explain::report::{LatencyBreakdown, RequestSelection};
use windtunnel_evidence::modulation::ModulationReport;
use windtunnel_evidence::statistics::{FlowDirectionCounters as Sum, FlowSum, Statistics};
use windtunnel_evidence::{AttributedRecord, RecordedRun};
use windtunnel_model::record::Kind;

use crate::document::distribution::DurationHistogram;

/// A recorded flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowSummary {
    pub flow: usize,
    pub protocol: String,
    pub from: String,
    pub to: String,
    pub first_ns: i64,
    pub last_ns: i64,
    pub forward: FlowDirectionSummary,
    pub reverse: FlowDirectionSummary,
    /// The smoothed round-trip time of the kernel of its first end, as it was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ns: Option<Rtt>,
}

/// Figures of a distribution of round-trip times, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rtt {
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// A direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlowDirectionSummary {
    /// At the first lane.
    pub payload_bytes: u64,
    pub packets: u64,
    /// Bytes that were at the first lane before.
    pub resent_bytes: u64,
    /// At any lane.
    pub dropped_packets: u64,
    pub marked_packets: u64,
    /// Bytes that came first, over the time of the flow.
    pub goodput_bit_per_s: u64,
}

/// All that evidence says of flows.
#[derive(Debug, Default)]
pub(crate) struct FlowEvidenceSummary {
    /// Those with most bytes.
    pub most: Vec<FlowSummary>,
    pub in_all: usize,
    pub rtt: Vec<DurationHistogram>,
    pub requests: Option<Value>,
    /// Time of each request, in nanoseconds.
    pub request_ns: Vec<u64>,
    pub modulation: Vec<Value>,
}

impl FlowEvidenceSummary {
    pub(crate) fn of(evidence: &RecordedRun) -> FlowEvidenceSummary {
        let statistics = Statistics::of(evidence, evidence.records().iter());
        let rtts = round_trips(evidence);
        let mut sums = statistics.flows;
        let in_all = sums.len();
        sums.sort_by_key(|sum| (std::cmp::Reverse(bytes(sum)), sum.flow));
        sums.truncate(FLOWS_MAX);
        let most: Vec<FlowSummary> = sums.into_iter().map(|sum| flow(sum, &rtts)).collect();
        let name = |flow: &FlowSummary| format!("{} → {}", flow.from, flow.to);
        let rtt = most.iter().filter_map(|flow| {
            let seen = rtts.get(&flow.flow)?;
            let named = DurationHistogram { name: name(flow), ..seen.clone() };
            Some(DurationHistogram { flow: Some(flow.flow), ..named })
        });
        let rtt = rtt.take(RTTS_MAX).collect();
        let all = LatencyBreakdown::of(evidence, RequestSelection::All, None);
        let request_ns = all.requests.iter().map(|request| request.duration_ns).collect();
        let slowest = LatencyBreakdown::of(evidence, RequestSelection::Slowest(REQUESTS_MAX), None);
        let requests = (!slowest.requests.is_empty() || !slowest.problems.is_empty())
            .then(|| serde_json::to_value(&slowest).ok());
        let modulation = most_written(ModulationReport::all(evidence));
        FlowEvidenceSummary {
            most,
            in_all,
            rtt,
            requests: requests.flatten(),
            request_ns,
            modulation,
        }
    }
}

/// The directions with most writes, then with most packets.
fn most_written(mut all: Vec<ModulationReport>) -> Vec<Value> {
    let count = |one: &ModulationReport| {
        let of = |series: &Option<windtunnel_evidence::modulation::SizeSpacingStatistics>| {
            series.as_ref().map_or(0, |series| series.count)
        };
        (of(&one.modulation.writes), of(&one.modulation.packets))
    };
    all.sort_by_key(|one| std::cmp::Reverse(count(one)));
    all.truncate(MODULATION_MAX);
    all.iter().filter_map(|one| serde_json::to_value(one).ok()).collect()
}

fn bytes(sum: &FlowSum) -> u64 {
    sum.forward.payload_bytes.saturating_add(sum.reverse.payload_bytes)
}

fn flow(sum: FlowSum, rtts: &BTreeMap<usize, DurationHistogram>) -> FlowSummary {
    let lasted = u64::try_from(sum.last_ns.saturating_sub(sum.first_ns)).unwrap_or(0);
    let rtt = rtts.get(&sum.flow).and_then(|seen| {
        let (p50, p99) = (seen.quantile(500)?, seen.quantile(990)?);
        Some(Rtt { p50, p99, max: seen.max_ns })
    });
    let end = |end: Option<String>| end.unwrap_or_else(|| "?".to_owned());
    FlowSummary {
        flow: sum.flow,
        protocol: sum.protocol,
        from: end(sum.from),
        to: end(sum.to),
        first_ns: sum.first_ns,
        last_ns: sum.last_ns,
        forward: way(&sum.forward, lasted),
        reverse: way(&sum.reverse, lasted),
        rtt_ns: rtt,
    }
}

fn way(sum: &Sum, lasted_ns: u64) -> FlowDirectionSummary {
    let first = u128::from(sum.payload_bytes.saturating_sub(sum.resent_bytes));
    let rate = (first * 8_000_000_000).checked_div(u128::from(lasted_ns)).unwrap_or(0);
    FlowDirectionSummary {
        payload_bytes: sum.payload_bytes,
        packets: sum.packets,
        resent_bytes: sum.resent_bytes,
        dropped_packets: sum.dropped_packets,
        marked_packets: sum.marked_packets,
        goodput_bit_per_s: u64::try_from(rate).unwrap_or(u64::MAX),
    }
}

/// By flow: the smoothed round-trip times that the kernel of its first end had.
fn round_trips(evidence: &RecordedRun) -> BTreeMap<usize, DurationHistogram> {
    let mut values: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let of_first_end =
        |entry: &&AttributedRecord| entry.kind() == Some(Kind::TcpWindows) && !entry.flipped();
    for entry in evidence.records().iter().filter(of_first_end) {
        let micros = u64::from(entry.record.args[2]);
        if let Some(flow) = entry.flow().filter(|_| micros > 0) {
            values.entry(flow).or_default().push(micros * 1000);
        }
    }
    let rounded = |(flow, values)| (flow, DurationHistogram::rounded(String::new(), values));
    values.into_iter().map(rounded).collect()
}

const FLOWS_MAX: usize = 500;
const RTTS_MAX: usize = 50;
const REQUESTS_MAX: usize = 20;
const MODULATION_MAX: usize = 20;
