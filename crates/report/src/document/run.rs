//! A run.

use serde::Serialize;
use serde_json::Value;
use windtunnel_model::Resource;

use super::distribution::DurationHistogram;
use super::map::{MapDirectedLink, TopologyMap};
use super::mark::EventAnnotation;
use super::output::NodeOutputExcerpt;
use crate::flows::FlowSummary;
use crate::series::LinkTimeSeriesSet;

/// A run.
#[derive(Debug, Clone, Serialize)]
pub struct RunSection {
    /// The name of its folder, made unique in the document.
    pub id: String,
    /// What legends show.
    pub label: String,
    /// The position of its group in the comparison.
    pub group: usize,
    pub folder: String,
    /// `run.json` as it is; absent while the run goes on, or if it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Why there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    pub elapsed_ns: u64,
    pub map: TopologyMap,
    /// By lane index: of link `i` lane `2i` leads from its first end, `2i + 1` to it.
    pub lanes: Vec<MapDirectedLink>,
    pub series: LinkTimeSeriesSet,
    pub events: Vec<EventAnnotation>,
    /// Lateness: first of all packets that nodes got, then of each lane that had packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lateness: Vec<DurationHistogram>,
    /// Round-trip times of recorded TCP flows, and of windtunnel's own echo requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rtt: Vec<DurationHistogram>,
    pub outputs: Vec<NodeOutputExcerpt>,
    /// Recorded flows, those with most bytes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSummary>,
    #[serde(skip_serializing_if = "is_zero")]
    pub flows_in_all: usize,
    /// The slowest requests, as `windtunnel explain --json` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Value>,
    /// As `windtunnel explain --layers --json` has it, of the flows with most bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modulation: Vec<Value>,
    /// What is left out, or could not be read: sentences.
    pub notes: Vec<String>,
    /// Processors asked and delivered over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_series: Vec<CpuLimitSeries>,
}

/// What a node with a limit of processor time had of it, from second to second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuLimitSeries {
    pub node: String,
    /// The position among the node's programs, where it is the limit of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<usize>,
    /// [`Resource::Cpu`].
    pub what: Resource,
    pub at_ns: Vec<u64>,
    /// Processors.
    pub asked: Vec<f64>,
    /// Processors.
    pub delivered: Vec<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
