//! All that is known of a run when it is over.

use windtunnel_model::quantity::total;
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::{self, CpuTickCounters};
use windtunnel_trace::report::RecordingReport;

use crate::devices::DeviceDrops;
use crate::echo::{EchoProbe, EchoResults};
use crate::ending::RunEndReason;
use crate::freeze::FreezeTotals;
use crate::gateway::GatewayEnd;
use crate::live::ServicesEnded;
use crate::load::WhenLate;
use crate::output::OutputCollectionSummary;
use crate::part::results::PartResults;
use crate::planned::PunctualitySummary;
use crate::recorder::RunRecorderSummary;
use crate::supervisor::Supervisor;
use crate::text::rounded;
use windtunnel_dataplane::{RedirectionTotals, Tally};
use windtunnel_limit::LimitAccount;

/// All that is known of a run when it is over.
pub(crate) struct RunEvidence<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) plan_hash: &'a str,
    pub(crate) began_unix_s: u64,
    pub(crate) setup: Span,
    pub(crate) elapsed: Span,
    pub(crate) ending: &'a RunEndReason,
    pub(crate) tally: &'a Tally,
    pub(crate) recorded: &'a RunRecorderSummary,
    /// What was recorded as evidence of the run, if it was.
    pub(crate) records: Option<&'a RecordingReport>,
    /// What is missing in captures of frames, a sentence each.
    pub(crate) captures: &'a [String],
    pub(crate) carried: &'a OutputCollectionSummary,
    pub(crate) supervisor: &'a Supervisor,
    /// The round trips that were measured.
    pub(crate) echoes: &'a [(EchoProbe, EchoResults)],
    /// When the run began.
    pub(crate) origin: Time,
    /// How all programs were paused.
    pub(crate) freezes: FreezeTotals,
    /// When what was planned for a time happened.
    pub(crate) planned: &'a PunctualitySummary,
    /// What limited nodes had.
    pub(crate) limits: &'a [LimitAccount],
    pub(crate) bounds: &'a [LimitAccount],
    /// What was seen of the replicas of services.
    pub(crate) services: &'a ServicesEnded,
    /// How the gateway to the machine's outside came to its end, if there was one.
    pub(crate) internet: Option<&'a GatewayEnd>,
    /// Lateness above this counts as late.
    pub(crate) late_above: Span,
    /// Packets that devices dropped.
    pub(crate) device_drops: DeviceDrops,
    /// What all processors of the machine did during the run.
    pub(crate) processors: CpuTickCounters,
    /// The same while packets were late.
    pub(crate) load: WhenLate,
    /// What the set-up could not do as it should.
    pub(crate) notes: &'a [String],
    /// What each machine has seen, in a run over several. Then all above is of all of them
    /// together.
    pub(crate) hosts: &'a [PartEvidence<'a>],
    /// Machines that were lost, of whose part nothing is known.
    pub(crate) lost: &'a [LostMachine],
    /// Whether the run is what the lost machines did: the network was cut, and this is the other
    /// side.
    pub(crate) cut_off: bool,
}

/// What one of several machines has seen.
pub(crate) struct PartEvidence<'a> {
    pub(crate) results: &'a PartResults,
    /// Names of all machines of the run, by member.
    pub(crate) members: &'a [String],
    /// How many nodes it had.
    pub(crate) nodes: usize,
    /// What is known of this machine alone.
    pub(crate) evidence: RunEvidence<'a>,
}

/// A machine of whose part nothing is known.
#[derive(Debug)]
pub(crate) struct LostMachine {
    pub(crate) host: String,
    pub(crate) why: String,
    /// Since when, as the others saw it; `None` if they did not.
    pub(crate) since: Option<Span>,
    /// How many nodes it had.
    pub(crate) nodes: usize,
    /// Where it is lost because it did not answer: the longest time for which it then stood still,
    /// as far as that is known.
    pub(crate) stood: Option<Span>,
}

impl LostMachine {
    /// What that means for the results.
    pub(super) fn doubt(&self) -> String {
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

pub(super) fn span_of(ticks: u64) -> Span {
    let tick_ns = 1_000_000_000 / limits::ticks_per_second().max(1);
    Span::from_nanos(ticks.saturating_mul(tick_ns))
}

/// How much of their time the machine's processors were running something.
pub(crate) fn busy_percent(processors: CpuTickCounters) -> u8 {
    percent(processors.busy, processors)
}

/// How much of it the hypervisor took.
pub(super) fn stolen_percent(processors: CpuTickCounters) -> u8 {
    percent(processors.stolen, processors)
}

fn percent(part: u64, of: CpuTickCounters) -> u8 {
    let all = total([of.busy, of.idle, of.stolen]);
    u8::try_from(u128::from(part) * 100 / u128::from(all.max(1))).unwrap_or(100)
}
