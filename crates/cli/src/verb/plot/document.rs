//! What a figure needs of the document of runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use windtunnel_model::Resource;
use windtunnel_model::word::StateWord;
use windtunnel_report::document::EventAnnotationKind;
use windtunnel_report::{ReportSizeLimits, groups};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::verb::report;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotDocument {
    pub(super) runs: Vec<PlotRun>,
    /// Where there are several runs.
    pub(super) comparison: Option<PlotComparison>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotComparison {
    pub(super) groups: Vec<PlotRunGroup>,
}

/// A run, or repetitions of one.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotRunGroup {
    pub(super) name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotRun {
    pub(super) id: String,
    pub(super) label: String,
    /// The position of its group.
    #[serde(default)]
    pub(super) group: usize,
    pub(super) elapsed_ns: u64,
    pub(super) lanes: Vec<PlotDirectedLink>,
    pub(super) series: PlotLinkSeriesSet,
    #[serde(default)]
    pub(super) events: Vec<PlotEventMarker>,
    #[serde(default)]
    pub(super) lateness: Vec<PlotHistogram>,
    #[serde(default)]
    pub(super) rtt: Vec<PlotHistogram>,
    #[serde(default)]
    pub(super) limits_series: Vec<PlotLimitSeries>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotDirectedLink {
    pub(super) link: String,
    pub(super) direction: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotLinkSeriesSet {
    pub(super) step_ns: u64,
    pub(super) bins: usize,
    /// `None`: idle all the time.
    pub(super) lanes: Vec<Option<PlotLinkSeries>>,
}

/// Columns; an empty one is 0 everywhere.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlotLinkSeries {
    pub(super) offered_bytes: Vec<f64>,
    pub(super) delivered_bytes: Vec<f64>,
    pub(super) queue_max_packets: Vec<f64>,
    pub(super) queue_max_bytes: Vec<f64>,
    pub(super) lateness_max_ns: Vec<f64>,
    pub(super) marked_packets: Vec<f64>,
    pub(super) dropped: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotEventMarker {
    pub(super) at_ns: u64,
    pub(super) kind: StateWord<EventAnnotationKind>,
    pub(super) text: String,
    #[serde(default)]
    pub(super) links: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotHistogram {
    pub(super) name: String,
    pub(super) lane: Option<usize>,
    /// Values with their counts, ascending.
    pub(super) bins: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct PlotLimitSeries {
    pub(super) node: String,
    pub(super) what: StateWord<Resource>,
    pub(super) asked: Vec<f64>,
    pub(super) delivered: Vec<f64>,
    pub(super) at_ns: Vec<f64>,
}

impl PlotDocument {
    /// Of these runs with all their samples; records, which take longest, only where round-trip times
    /// are asked for.
    pub(super) fn of(runs: &[PathBuf], with_records: bool) -> Result<Self, VerbFailure> {
        let records_bytes_max = if with_records { u64::MAX } else { 0 };
        // No page has to hold it.
        let options = ReportSizeLimits { page_bytes_max: usize::MAX, records_bytes_max };
        let made = groups(runs)
            .and_then(|groups| windtunnel_report::ReportDocument::of(&groups, &options));
        let document = made.map_err(|error| report::failure(&error))?;
        let value = serde_json::to_value(document).and_then(serde_json::from_value);
        value.map_err(|error| VerbFailure::caused(ExitCategory::Internal, error))
    }
}

impl PlotLinkSeries {
    /// Packets that were dropped, for any reason.
    pub(super) fn dropped(&self) -> Vec<f64> {
        let mut sum = Vec::new();
        for column in self.dropped.values() {
            sum.resize(sum.len().max(column.len()), 0.0);
            sum.iter_mut().zip(column).for_each(|(sum, packets)| *sum += packets);
        }
        sum
    }

    pub(super) fn delivered(&self) -> f64 {
        self.delivered_bytes.iter().sum()
    }
}
