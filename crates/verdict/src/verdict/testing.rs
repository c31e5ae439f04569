//! A run that is over, for tests of what is said of it.

use std::collections::BTreeMap;

use windtunnel_dataplane::{LaneResult, Tally};
use windtunnel_limit::LimitAccount;
use windtunnel_model::plan::NodeVerb;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::CpuTickCounters;
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::report::{RecordingReport, RunReport};

use super::judge;
use crate::evidence::{
    DeviceDrops, EchoProbe, EchoResults, FreezeTotals, OutputCollectionSummary, ProgramExit,
    ProgramKey, PunctualitySummary, RunEndReason, RunEvidence, RunRecorderSummary, ServicesEnded,
    SupervisedProgram, WhenLate, programs_of,
};

/// What is known of the run.
pub(super) struct RunEvidenceFixture {
    pub(super) plan: Plan,
    pub(super) ending: RunEndReason,
    pub(super) elapsed: Span,
    pub(super) tally: Tally,
    pub(super) recorded: RunRecorderSummary,
    pub(super) records: Option<RecordingReport>,
    pub(super) captures: Vec<String>,
    pub(super) carried: OutputCollectionSummary,
    pub(super) programs: BTreeMap<ProgramKey, SupervisedProgram>,
    pub(super) echoes: Vec<(EchoProbe, EchoResults)>,
    pub(super) freezes: FreezeTotals,
    pub(super) planned: PunctualitySummary,
    pub(super) limits: Vec<LimitAccount>,
    pub(super) bounds: Vec<LimitAccount>,
    pub(super) services: ServicesEnded,
    pub(super) device_drops: DeviceDrops,
    pub(super) processors: CpuTickCounters,
    pub(super) load: WhenLate,
    pub(super) notes: Vec<String>,
}

impl RunEvidenceFixture {
    /// A run of ten seconds in which no packet moved and no program started. Packets later than
    /// 1 ms are late; its processors were idle.
    pub(super) fn of(file: &str) -> Self {
        let plan = windtunnel_dataplane::testing::plan(file);
        let lane = |_| LaneResult {
            counters: Default::default(),
            lateness: LatenessHistogram::new(),
            late: None,
            no_memory: 0,
            phases: Vec::new(),
            series: None,
        };
        let tally = Tally {
            lanes: (0..plan.links.len() * 2).map(lane).collect(),
            routers: vec![Default::default(); plan.routers.len()],
            ..Tally::default()
        };
        RunEvidenceFixture {
            programs: programs_of(&plan),
            ending: RunEndReason::Finished,
            elapsed: Span::from_secs(10),
            tally,
            recorded: RunRecorderSummary::default(),
            records: None,
            captures: Vec::new(),
            carried: OutputCollectionSummary::default(),
            echoes: Vec::new(),
            freezes: FreezeTotals::default(),
            planned: PunctualitySummary::default(),
            limits: Vec::new(),
            bounds: Vec::new(),
            services: ServicesEnded::default(),
            device_drops: DeviceDrops::default(),
            processors: CpuTickCounters { busy: 0, idle: 2_000, stolen: 0 },
            load: WhenLate::default(),
            notes: Vec::new(),
            plan,
        }
    }

    /// Packets that left so late, on the lane with this index.
    pub(super) fn depart(&mut self, packets: u64, lateness: Span, lane: usize) {
        for _ in 0..packets {
            self.tally.departures.record(lateness);
            self.tally.lanes[lane].lateness.record(lateness);
        }
        self.tally.late = self.tally.departures.later_than(Span::from_millis(1));
    }

    /// All programs start at `at` seconds, and run.
    pub(super) fn start(&mut self, at: u64) {
        for program in self.programs.values_mut() {
            program.start();
            program.begin(7, Span::from_secs(at));
            if program.spec.ready.is_none() {
                program.note_ready(Span::from_secs(at));
            }
        }
    }

    /// The program with this number of its start exits at `at` seconds.
    pub(super) fn exit(&mut self, start: usize, code: u8, at: u64) {
        let is_stopping = self.programs.values().any(|program| program.ended_by_run);
        let program = self.programs.values_mut().nth(start - 1).expect("it runs");
        program.exit(ProgramExit { code, signal: None }, Span::from_secs(at), is_stopping);
    }

    /// An event kills the programs of a node after a second.
    pub(super) fn kill(&mut self, node: usize) {
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node);
        programs.for_each(|(_, program)| program.on_verb(NodeVerb::Kill, Span::from_secs(1)));
    }

    /// The run ends.
    pub(super) fn stop(&mut self) {
        self.programs.values_mut().for_each(SupervisedProgram::end_with_run);
    }

    pub(super) fn evidence(&self) -> RunEvidence<'_> {
        RunEvidence {
            plan: &self.plan,
            plan_hash: "0",
            began_unix_s: 1_700_000_000,
            setup: Span::from_millis(5),
            elapsed: self.elapsed,
            ending: &self.ending,
            tally: &self.tally,
            recorded: &self.recorded,
            records: self.records.as_ref(),
            captures: &self.captures,
            carried: &self.carried,
            programs: &self.programs,
            echoes: &self.echoes,
            origin: Time::ZERO,
            freezes: self.freezes,
            planned: &self.planned,
            limits: &self.limits,
            bounds: &self.bounds,
            services: &self.services,
            internet: None,
            attempts: &[],
            late_above: Span::from_millis(1),
            device_drops: self.device_drops,
            processors: self.processors,
            load: self.load,
            notes: &self.notes,
            hosts: &[],
            lost: &[],
            cut_off: false,
        }
    }

    pub(super) fn judge(&self) -> RunReport {
        judge(&self.evidence())
    }
}
