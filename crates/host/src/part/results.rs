//! What a part has seen, for the verdict on the whole run.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use windtunnel_model::valid::{PlanValidationError, Validate, ensure};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::CpuTickCounters;
use windtunnel_trace::report::RecordingReport;
use windtunnel_trace::series::LinkSampleSeries;

use crate::devices::DeviceDrops;
use crate::echo::{EchoProbe, EchoResults};
use crate::ending::RunEndReason;
use crate::folder::{FolderError, RunOutputFolder};
use crate::freeze::FreezeTotals;
use crate::gather::numbers;
use crate::live::{MemberClockBounds, ServicesEnded};
use crate::load::WhenLate;
use crate::output::{LogMatches, OutputCollectionSummary, ProgramKey};
use crate::planned::PunctualitySummary;
use crate::recorder::RunRecorderSummary;
use crate::reserve;
use crate::supervisor::SupervisedProgram;
use windtunnel_dataplane::receive_queue::ReceiveQueueCounters;
use windtunnel_dataplane::{NodePairThroughput, Tally};
use windtunnel_limit::LimitAccount;

/// A part's results, as `part.json` in its folder has them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartResults {
    pub(crate) member: u16,
    pub(crate) host: String,
    pub(crate) kernel: String,
    pub(crate) cpus: usize,
    pub(crate) began_unix_s: u64,
    pub(crate) setup: Span,
    pub(crate) elapsed: Span,
    pub(crate) ending: RunEndReason,
    pub(crate) tally: Tally,
    pub(crate) recorded: RunRecorderSummary,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) records: Option<RecordingReport>,
    pub(crate) carried: OutputCollectionSummary,
    /// The programs of this machine.
    #[serde(with = "crate::pairs")]
    pub(crate) programs: BTreeMap<ProgramKey, SupervisedProgram>,
    pub(crate) echoes: Vec<(EchoProbe, EchoResults)>,
    /// When the run began, on this machine's monotonic clock.
    pub(crate) origin: Time,
    pub(crate) freezes: FreezeTotals,
    /// When what was planned for a time happened here.
    #[serde(default)]
    pub(crate) planned: PunctualitySummary,
    /// What the machine's processors did when packets were late here.
    #[serde(default)]
    pub(crate) load: WhenLate,
    /// What its limited nodes had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<LimitAccount>,
    /// Their limits of other things than processor time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bounds: Vec<LimitAccount>,
    /// What was seen of the replicas of services.
    #[serde(default)]
    pub(crate) services: ServicesEnded,
    pub(crate) device_drops: DeviceDrops,
    pub(super) busy: u64,
    pub(super) idle: u64,
    pub(super) stolen: u64,
    pub(crate) notes: Vec<String>,
    /// How well the clocks of the other members were known here.
    #[serde(default)]
    pub(crate) clocks: MemberClockBounds,
    /// Other members that were lost to this one, and when.
    #[serde(with = "crate::pairs")]
    pub(crate) lost: BTreeMap<u16, Span>,
    /// Whether the network was cut between them, and the run is what the other side did.
    pub(crate) apart: bool,
    /// How long after its time the run began on this machine.
    pub(crate) began_late: Span,
}

impl PartResults {
    /// What all processors of the machine did during the run.
    pub(crate) fn processors(&self) -> CpuTickCounters {
        CpuTickCounters { busy: self.busy, idle: self.idle, stolen: self.stolen }
    }

    /// # Errors
    /// If they cannot be written.
    pub(super) fn write(&self, folder: &RunOutputFolder) -> Result<(), FolderError> {
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
    pub(crate) fn read(folder: &Path, member: u16, plan: &Plan) -> io::Result<Self> {
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

/// Keeps room for the results of a part of a run of `plan`.
///
/// # Errors
/// If there is none.
pub(super) fn reserve(folder: &RunOutputFolder, plan: &Plan) -> Result<(), FolderError> {
    // It has the figures of the report, and histograms and samples of which it is not known how
    // many there will be.
    folder.reserve(FILE, 2 * reserve::report_bytes(plan))
}

/// The longest results: samples of many links for hours.
const BYTES_MAX: u64 = 4 << 30;
/// A year.
const ELAPSED_MAX: Span = Span::from_secs(366 * 86_400);
const FILE: &str = "part.json";

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use windtunnel_model::LinkProfile;
    use windtunnel_trace::lateness::LatenessHistogram;
    use windtunnel_trace::sample::LinkSampleRow;
    use windtunnel_trace::series::LinkSample;

    use super::*;
    use crate::supervisor::Supervisor;
    use windtunnel_dataplane::LaneResult;
    use windtunnel_dataplane::phase::LanePhase;

    /// Results of the only part of a run, with something of everything.
    pub(crate) fn sample(plan: &Plan) -> Vec<u8> {
        let row = LinkSampleRow {
            offered_packets: 3,
            delivered_wire_bytes: 900,
            ..LinkSampleRow::default()
        };
        let sample = |tenth: u64| LinkSample {
            at: Time::from_nanos(tenth * 100_000_000),
            row,
            dropped: vec![("loss".into(), 1)],
            rate_bit_per_s: Some(1_000_000),
        };
        let mut lateness = LatenessHistogram::new();
        lateness.record(Span::from_micros(5));
        let phase = |tenth: u64| LanePhase {
            until: Time::from_nanos(tenth * 100_000_000),
            asked: LinkProfile::default(),
            counters: Default::default(),
            lateness: LatenessHistogram::new(),
        };
        let lane = |_| LaneResult {
            no_memory: 0,
            counters: Default::default(),
            lateness: lateness.clone(),
            late: Some((Time::from_nanos(5), Time::from_nanos(9))),
            phases: vec![phase(2)],
            series: Some(LinkSampleSeries((1..4).map(sample).collect())),
        };
        let supervisor = Supervisor::new(plan);
        let programs = supervisor.programs().map(|(key, program)| (key, program.clone()));
        let results = PartResults {
            member: 0,
            host: "a".into(),
            kernel: "6".into(),
            cpus: 2,
            began_unix_s: 1_700_000_000,
            setup: Span::from_millis(5),
            elapsed: Span::from_secs(3),
            ending: RunEndReason::Finished,
            tally: Tally {
                lanes: (0..plan.links.len() * 2).map(lane).collect(),
                routers: vec![Default::default(); plan.routers.len()],
                kernel_drops: vec![(Time::from_nanos(5), 2)],
                remote: Some(Default::default()),
                ..Tally::default()
            },
            records: None,
            recorded: RunRecorderSummary {
                peak_bytes_per_s: vec![7; plan.links.len() * 2],
                ..RunRecorderSummary::default()
            },
            carried: OutputCollectionSummary::default(),
            programs: programs.collect(),
            echoes: Vec::new(),
            origin: Time::from_nanos(77),
            clocks: MemberClockBounds::default(),
            planned: PunctualitySummary::default(),
            load: WhenLate::default(),
            freezes: FreezeTotals::default(),
            limits: Vec::new(),
            bounds: Vec::new(),
            services: ServicesEnded::default(),
            device_drops: DeviceDrops { packets: 1, backlog_packets: 2 },
            busy: 3,
            idle: 4,
            stolen: 5,
            notes: vec!["x".into()],
            lost: BTreeMap::from([(1, Span::from_secs(1))]),
            apart: false,
            began_late: Span::ZERO,
        };
        let mut json = serde_json::to_value(&results).unwrap();
        let counts: Vec<(u64, u64)> = (1..4).map(|tenth| (tenth * 100_000_000, 500)).collect();
        json["tally"]["flows"] =
            json!([{"from": 0, "to": 1, "payload": {"start": 0, "counts": counts}, "counted": 5}]);
        let key = json!({"node": 0, "program": 0});
        json["carried"]["volumes"] = json!([[key, {"bytes": 5, "discarded": 1}]]);
        json["carried"]["logs"] = json!([{"expectation": 3, "key": key, "file": "/x/stdout", "lines": 2,
            "first": {"number": 1, "at_ns": 99, "text": "ok"}}]);
        json["echoes"] = json!([[{"from": 0, "to": 1, "during": null},
            {"echoes": [["0ns", "5ms"], ["0ns", null]], "error": null}]]);
        serde_json::to_vec(&json).unwrap()
    }
}
