//! What a part has seen, for the verdict on the whole run.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use windtunnel_dataplane::receive_queue::ReceiveQueueCounters;
use windtunnel_dataplane::{NodePairThroughput, Tally};
use windtunnel_folder::{FolderError, RunOutputFolder, report_bytes};
use windtunnel_limit::LimitAccount;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::CpuTickCounters;
use windtunnel_trace::report::RecordingReport;
use windtunnel_trace::series::LinkSampleSeries;

use crate::evidence::{
    DeviceDrops, EchoProbe, EchoResults, FreezeTotals, LogMatches, MemberClockBounds,
    OutputCollectionSummary, ProgramKey, PunctualitySummary, RunEndReason, RunRecorderSummary,
    ServicesEnded, SupervisedProgram, WhenLate,
};
use crate::gather::numbers;

/// What a machine has seen of a run, or of its part of one; that is `part.json` in its folder.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartResults {
    pub member: u16,
    pub host: String,
    pub kernel: String,
    pub cpus: usize,
    pub began_unix_s: u64,
    pub setup: Span,
    pub elapsed: Span,
    pub ending: RunEndReason,
    pub tally: Tally,
    pub recorded: RunRecorderSummary,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordingReport>,
    pub carried: OutputCollectionSummary,
    /// The programs of this machine.
    #[serde(with = "crate::pairs")]
    pub programs: BTreeMap<ProgramKey, SupervisedProgram>,
    pub echoes: Vec<(EchoProbe, EchoResults)>,
    /// When the run began, on this machine's monotonic clock.
    pub origin: Time,
    pub freezes: FreezeTotals,
    /// When what was planned for a time happened here.
    #[serde(default)]
    pub planned: PunctualitySummary,
    /// What the machine's processors did when packets were late here.
    #[serde(default)]
    pub load: WhenLate,
    /// What its limited nodes had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitAccount>,
    /// Their limits of other things than processor time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<LimitAccount>,
    /// What was seen of the replicas of services.
    #[serde(default)]
    pub services: ServicesEnded,
    pub device_drops: DeviceDrops,
    pub busy: u64,
    pub idle: u64,
    pub stolen: u64,
    pub notes: Vec<String>,
    /// How well the clocks of the other members were known here.
    #[serde(default)]
    pub clocks: MemberClockBounds,
    /// Other members that were lost to this one, and when.
    #[serde(with = "crate::pairs")]
    pub lost: BTreeMap<u16, Span>,
    /// Whether the network was cut between them, and the run is what the other side did.
    pub apart: bool,
    /// How long after its time the run began on this machine.
    pub began_late: Span,
}

impl PartResults {
    /// What all processors of the machine did during the run.
    pub fn processors(&self) -> CpuTickCounters {
        CpuTickCounters { busy: self.busy, idle: self.idle, stolen: self.stolen }
    }

    /// Keeps room for the results of a part of a run of `plan`.
    ///
    /// # Errors
    /// If there is none.
    pub fn reserve(folder: &RunOutputFolder, plan: &Plan) -> Result<(), FolderError> {
        // It has the figures of the report, and histograms and samples of which it is not known how
        // many there will be.
        folder.reserve(FILE, 2 * report_bytes(plan))
    }

    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, folder: &RunOutputFolder) -> Result<(), FolderError> {
        let text = serde_json::to_vec(self).map_err(|error| FolderError {
            verb: "write",
            path: folder.file(FILE),
            source: error.into(),
        })?;
        folder.write(FILE, &text)
    }

    /// Reads those of the part of `member` in `folder`, which may have come from another machine.
    ///
    /// # Errors
    /// If they are not there, of another version, or not those of that part of a run of this plan.
    pub fn read(folder: &Path, member: u16, plan: &Plan) -> io::Result<Self> {
        let mut text = Vec::new();
        let file = windtunnel_sys::below::regular_file(&folder.join(FILE))?;
        file.take(BYTES_MAX + 1).read_to_end(&mut text)?;
        let strange = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        if text.len() as u64 > BYTES_MAX || !numbers::are_sane(&text) {
            return Err(strange("it has counted more than there can be".to_owned()));
        }
        let results: PartResults = serde_json::from_slice(&text)?;
        results.validate(member, plan).map_err(|error| strange(error.to_string()))?;
        Ok(results)
    }

    /// Whether they can be those of a member's part of a run of the plan.
    fn validate(&self, member: u16, plan: &Plan) -> Result<(), PlanValidationError> {
        ensure(self.member == member, || format!("it is the part of member {}", self.member))?;
        self.ending.validate()?;
        self.planned.validate()?;
        let known = self.clocks.members().all(|member| usize::from(member) < plan.nodes.len());
        ensure(known, || "it knows clocks of members that there are not".to_owned())?;
        let lanes = self.tally.lanes.len() == plan.links.len() * 2;
        let peaks = self.recorded.peak_bytes_per_s.len() <= plan.links.len() * 2;
        ensure(lanes && peaks && self.tally.routers.len() == plan.routers.len(), || {
            "it has counted on other links than the plan has".to_owned()
        })?;
        let sane = |samples: &LinkSampleSeries| {
            let in_order = samples.0.is_sorted_by_key(|sample| sample.at);
            in_order && samples.0.last().is_none_or(|last| last.at <= Time::ZERO + ELAPSED_MAX)
        };
        let mut series = self.tally.lanes.iter().filter_map(|lane| lane.series.as_ref());
        ensure(self.elapsed <= ELAPSED_MAX && series.all(sane), || {
            "it has lasted longer than a run does".to_owned()
        })?;
        let lasts = |flow: &NodePairThroughput| {
            let in_order = flow.payload.counts.is_sorted_by_key(|(at, _)| *at);
            let end = flow.payload.counts.last().map_or(flow.payload.start, |(at, _)| *at);
            in_order && end <= Time::ZERO + ELAPSED_MAX
        };
        let flows = &self.tally.flows;
        let known = |flow: &NodePairThroughput| {
            plan.has_node(flow.from) && plan.has_node(flow.to) && lasts(flow)
        };
        let late = self.tally.late_intervals.iter().all(|interval| plan.has_lane(interval.lane));
        ensure(late && flows.len() <= plan.expectations.len() && flows.iter().all(known), || {
            "it has seen flows that the plan does not have".to_owned()
        })?;
        let echoes = self
            .echoes
            .iter()
            .all(|(probe, _)| plan.has_node(probe.from) && plan.has_node(probe.to));
        ensure(echoes && self.echoes.len() <= plan.expectations.len(), || {
            "it has measured paths that the plan does not have".to_owned()
        })?;
        let has = |key: &ProgramKey| {
            plan.nodes.get(key.node).is_some_and(|node| key.program < node.programs.len())
        };
        let keys = self.programs.keys().chain(self.carried.volumes.keys());
        let logs = self.carried.logs.iter();
        let asked = |seen: &LogMatches| seen.expectation < plan.expectations.len();
        ensure(
            keys.chain(logs.clone().map(|seen| &seen.key)).all(has) && logs.clone().all(asked),
            || "it has run programs that the plan does not have".to_owned(),
        )?;
        let known = |received: &ReceiveQueueCounters| received.node < plan.nodes.len();
        ensure(self.tally.received.iter().all(known), || {
            "it has delivered to nodes that the plan does not have".to_owned()
        })?;
        self.limits.iter().try_for_each(|account| account.validate(plan))?;
        self.bounds.iter().try_for_each(|bound| bound.validate(plan))?;
        self.services.validate(plan)?;
        self.programs.values().try_for_each(SupervisedProgram::validate)
    }
}

/// The longest results: samples of many links for hours.
const BYTES_MAX: u64 = 4 << 30;
/// A year.
const ELAPSED_MAX: Span = Span::from_secs(366 * 86_400);
const FILE: &str = "part.json";
