//! All that is known of a run when it is over.

mod clocks;
mod devices;
mod echo;
mod ending;
mod freezes;
mod load;
mod output;
mod planned;
mod program;
mod recorded;
mod replicas;
mod services;

use std::collections::BTreeMap;

use windtunnel_dataplane::{RedirectionTotals, Tally};
use windtunnel_gateway::GatewayReport;
use windtunnel_limit::LimitAccount;
use windtunnel_model::quantity::total;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::{CpuTickCounters, ticks_per_second};
use windtunnel_trace::report::{RecordingReport, RunAttempt};

use crate::results::PartResults;
use crate::text::rounded;
pub use clocks::{MemberClockBound, MemberClockBounds};
pub use devices::DeviceDrops;
pub use echo::{ECHOES_MOST, EchoProbe, EchoResults};
pub use ending::RunEndReason;
pub use freezes::FreezeTotals;
pub use load::WhenLate;
pub use output::{LogLine, LogMatches, OutputByteCounts, OutputCollectionSummary};
pub use planned::{LateOccurrence, PunctualitySummary};
pub use program::{
    AWAITED_AFTER, ProgramExit, ProgramKey, ProgramLifecycle, SupervisedProgram, programs_of,
};
pub use recorded::RunRecorderSummary;
pub use replicas::{ReplicaHistory, ServiceState};
pub use services::ServicesEnded;

/// When a run begins this much after its time, that is reported, and makes it unfaithful where
/// `--max-lateness` allows no more. A program takes milliseconds to start anyway.
pub const BEGIN_LATE: Span = Span::from_millis(10);

/// All that is known of a run when it is over.
pub struct RunEvidence<'a> {
    pub plan: &'a Plan,
    pub plan_hash: &'a str,
    pub began_unix_s: u64,
    pub setup: Span,
    pub elapsed: Span,
    pub ending: &'a RunEndReason,
    pub tally: &'a Tally,
    pub recorded: &'a RunRecorderSummary,
    /// What was recorded as evidence of the run, if it was.
    pub records: Option<&'a RecordingReport>,
    /// What is missing in captures of frames, a sentence each.
    pub captures: &'a [String],
    pub carried: &'a OutputCollectionSummary,
    pub programs: &'a BTreeMap<ProgramKey, SupervisedProgram>,
    /// The round trips that were measured.
    pub echoes: &'a [(EchoProbe, EchoResults)],
    /// When the run began.
    pub origin: Time,
    /// How all programs were paused.
    pub freezes: FreezeTotals,
    /// When what was planned for a time happened.
    pub planned: &'a PunctualitySummary,
    /// What limited nodes had.
    pub limits: &'a [LimitAccount],
    pub bounds: &'a [LimitAccount],
    /// What was seen of the replicas of services.
    pub services: &'a ServicesEnded,
    /// How the gateway to the machine's outside came to its end, if there was one.
    pub internet: Option<&'a Result<GatewayReport, String>>,
    /// Attempts at the same run that have been disturbed.
    pub attempts: &'a [RunAttempt],
    /// Lateness above this counts as late.
    pub late_above: Span,
    /// Packets that devices dropped.
    pub device_drops: DeviceDrops,
    /// What all processors of the machine did during the run.
    pub processors: CpuTickCounters,
    /// The same while packets were late.
    pub load: WhenLate,
    /// What the set-up could not do as it should.
    pub notes: &'a [String],
    /// What each machine has seen, in a run over several. Then all above is of all of them
    /// together.
    pub hosts: &'a [PartEvidence<'a>],
    /// Machines that were lost, of whose part nothing is known.
    pub lost: &'a [LostMachine],
    /// Whether the run is what the lost machines did: the network was cut, and this is the other
    /// side.
    pub cut_off: bool,
}

/// What one of several machines has seen.
pub struct PartEvidence<'a> {
    pub results: &'a PartResults,
    /// Names of all machines of the run, by member.
    pub members: &'a [String],
    /// How many nodes it had.
    pub nodes: usize,
    /// What is known of this machine alone.
    pub evidence: RunEvidence<'a>,
}

/// A machine of whose part nothing is known.
#[derive(Debug)]
pub struct LostMachine {
    pub host: String,
    pub why: String,
    /// Since when, as the others saw it; `None` if they did not.
    pub since: Option<Span>,
    /// How many nodes it had.
    pub nodes: usize,
    /// Where it is lost because it did not answer: the longest time for which it then stood still,
    /// as far as that is known.
    pub stood: Option<Span>,
}

impl LostMachine {
    /// What that means for the results.
    pub(crate) fn doubt(&self) -> String {
        let LostMachine { host, why, since, nodes, .. } = self;
        let nodes = if *nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
        match since {
            Some(since) => format!(
                "host {host} is lost since {}: of its {nodes} nothing is known",
                rounded(*since)
            ),
            None => format!("host {host} is lost: {why}"),
        }
    }
}

/// How a run was done, as far as the verdict on it depends on that.
#[derive(Debug, Clone, Copy)]
pub struct JudgingTerms<'a> {
    pub plan_hash: &'a str,
    /// Lateness above this counts as late.
    pub late_above: Span,
    /// Attempts at the same run that have been disturbed.
    pub attempts: &'a [RunAttempt],
}

impl<'a> RunEvidence<'a> {
    /// What one machine has seen, of a whole run or of its part of one.
    #[must_use]
    pub fn of(plan: &'a Plan, terms: JudgingTerms<'a>, results: &'a PartResults) -> Self {
        RunEvidence {
            plan,
            plan_hash: terms.plan_hash,
            began_unix_s: results.began_unix_s,
            setup: results.setup,
            elapsed: results.elapsed,
            ending: &results.ending,
            tally: &results.tally,
            recorded: &results.recorded,
            records: results.records.as_ref(),
            captures: &[],
            carried: &results.carried,
            programs: &results.programs,
            echoes: &results.echoes,
            origin: results.origin,
            freezes: results.freezes,
            planned: &results.planned,
            limits: &results.limits,
            bounds: &results.bounds,
            services: &results.services,
            internet: None,
            attempts: terms.attempts,
            late_above: terms.late_above,
            device_drops: results.device_drops,
            processors: results.processors(),
            load: results.load,
            notes: &results.notes,
            hosts: &[],
            lost: &[],
            cut_off: false,
        }
    }
}

impl RunEvidence<'_> {
    /// What redirectors did until the run ended; where that was not asked, in all the time that the
    /// packet loop ran.
    pub(crate) fn redirections(&self) -> &RedirectionTotals {
        let until_end = &self.services.redirected;
        if until_end.services.is_empty() { &self.tally.services } else { until_end }
    }

    /// Time that the hypervisor took from the machine's processors.
    pub(crate) fn stolen(&self) -> Span {
        span_of(self.processors.stolen)
    }
}

pub(crate) fn span_of(ticks: u64) -> Span {
    let tick_ns = 1_000_000_000 / ticks_per_second().max(1);
    Span::from_nanos(ticks.saturating_mul(tick_ns))
}

/// How much of their time the machine's processors were running something.
pub(crate) fn busy_percent(processors: CpuTickCounters) -> u8 {
    percent(processors.busy, processors)
}

/// How much of it the hypervisor took.
pub(crate) fn stolen_percent(processors: CpuTickCounters) -> u8 {
    percent(processors.stolen, processors)
}

fn percent(part: u64, of: CpuTickCounters) -> u8 {
    let all = total([of.busy, of.idle, of.stolen]);
    u8::try_from(u128::from(part) * 100 / u128::from(all.max(1))).unwrap_or(100)
}
