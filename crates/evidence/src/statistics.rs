//! Sums of records by layer, flow and lane; gaps; and what was not seen.

mod sums;
#[cfg(test)]
mod tests;
mod unseen;

use std::collections::BTreeMap;

use serde::Serialize;
use windtunnel_model::record::Kind;
use windtunnel_model::record::kind::RecordSource;

use crate::{AttributedRecord, RecordedRun};
use sums::EvidenceTotals;

/// What records say in sum. Times are nanoseconds since the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statistics {
    pub run: String,
    /// The first record and the last.
    pub first_ns: i64,
    pub last_ns: i64,
    /// Records, definitions and lost events of all sources.
    pub events: u64,
    pub layers: Vec<LayerSum>,
    pub flows: Vec<FlowSum>,
    pub lanes: Vec<LaneSum>,
    pub gaps: Vec<RecordingGap>,
    /// What these records cannot say, as sentences.
    pub unseen: Vec<String>,
}

/// The sources of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerSum {
    pub layer: &'static str,
    pub sources: usize,
    pub records: u64,
    pub lost: u64,
}

/// A flow in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowSum {
    pub flow: usize,
    pub protocol: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub first_ns: i64,
    pub last_ns: i64,
    pub records: u64,
    pub forward: FlowDirectionCounters,
    pub reverse: FlowDirectionCounters,
}

/// A direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FlowDirectionCounters {
    /// Calls that sent, and what they sent.
    pub writes: u64,
    pub written_bytes: u64,
    /// Calls that received, and what they received.
    pub reads: u64,
    pub read_bytes: u64,
    /// At the first lane.
    pub packets: u64,
    pub payload_bytes: u64,
    /// Bytes that were at the first lane before.
    pub resent_bytes: u64,
    /// At any lane.
    pub dropped_packets: u64,
    pub marked_packets: u64,
}

/// A direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneSum {
    pub link: String,
    pub from: String,
    pub to: String,
    pub offered_packets: u64,
    pub offered_bytes: u64,
    pub sent_packets: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub marked_packets: u64,
    /// By reason.
    pub dropped_packets: BTreeMap<String, u64>,
}

/// Events that were not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingGap {
    pub layer: String,
    pub node: Option<String>,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub events: u64,
}

impl Statistics {
    /// Sums `entries` up.
    #[must_use]
    pub fn of<'a>(
        evidence: &RecordedRun,
        entries: impl Iterator<Item = &'a AttributedRecord>,
    ) -> Statistics {
        let mut sums = EvidenceTotals::new(evidence);
        let (mut first, mut last) = (None, 0);
        for entry in entries {
            first = first.or(Some(entry.record.time));
            last = last.max(entry.record.time);
            sums.add(entry);
        }
        let since = |time: u64| {
            let apart = i128::from(time) - i128::from(evidence.origin_ns());
            i64::try_from(apart).unwrap_or(i64::MAX)
        };
        let run = evidence.members().first().map_or("", |member| member.header.run.as_str());
        let unseen = unseen::sentences(evidence, &sums);
        Statistics {
            run: run.to_owned(),
            first_ns: first.map_or(0, since),
            last_ns: if first.is_some() { since(last) } else { 0 },
            events: (0..evidence.origins().len()).map(|origin| evidence.events(origin)).sum(),
            layers: layers(evidence, &sums),
            flows: sums.flows(since),
            lanes: sums.lanes(),
            gaps: sums.gaps(since),
            unseen,
        }
    }
}

fn layers(evidence: &RecordedRun, sums: &EvidenceTotals<'_>) -> Vec<LayerSum> {
    let of = |layer: RecordSource| {
        let origins = evidence.origins().iter().enumerate();
        let origins = origins.filter(|(_, origin)| origin.layer() == Some(layer));
        let mut sum = LayerSum { layer: layer.name(), sources: 0, records: 0, lost: 0 };
        for (at, _) in origins {
            sum.sources += 1;
            sum.records += sums.records[at];
            sum.lost += sums.lost[at];
        }
        sum
    };
    RecordSource::ALL.map(of).into_iter().filter(|sum| sum.sources > 0).collect()
}

/// Events that a record of lost ones stands for.
fn lost_events(entry: &AttributedRecord) -> Option<u64> {
    (entry.kind() == Some(Kind::Lost)).then(|| entry.record.wide(2))
}
