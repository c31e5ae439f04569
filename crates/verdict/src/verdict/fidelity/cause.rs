//! What kept packets from being on time.

use windtunnel_model::{Lane, Span};
use windtunnel_sys::limits::CpuTickCounters;

use crate::evidence::{RunEvidence, busy_percent, span_of, stolen_percent};
use crate::text::rounded;

pub(super) fn lane_text(evidence: &RunEvidence<'_>, lane: Lane) -> String {
    let link = &evidence.plan.links[lane.link.index()].name;
    format!("{link} ({})", evidence.plan.lane_name(lane))
}

/// What kept the engine's thread from being on time by up to `worst`, by what the kernel says of
/// it.
pub(super) fn cause(evidence: &RunEvidence<'_>, worst: Span) -> String {
    if let Some(why) = shortage(evidence) {
        return why;
    }
    let ran = percent(evidence, evidence.tally.ran_ns);
    if ran >= BUSY_PERCENT {
        return format!("the offered rate is too high: the engine was busy {ran}% of the time");
    }
    let stood = if worst > long_above(evidence.late_above) {
        "a stall of windtunnel's process or of this machine"
    } else {
        "short stalls of this machine"
    };
    let (when, during) = load(evidence);
    let busy = busy_percent(when);
    format!("{stood} (its processors were busy for {busy}% of the time{during})")
}

/// Why there was less processor time than what wanted some, if there was.
pub(super) fn shortage(evidence: &RunEvidence<'_>) -> Option<String> {
    let tally = evidence.tally;
    let (ran, waited) = (percent(evidence, tally.ran_ns), percent(evidence, tally.waited_ns));
    let (when, during) = load(evidence);
    let busy = busy_percent(when);
    let stolen = stolen_percent(when);
    if stolen >= STOLEN_PERCENT && stolen >= stolen_percent(evidence.processors) {
        let taken = rounded(span_of(when.stolen));
        return Some(format!(
            "the hypervisor took {taken} of processor time from this machine{during}, {stolen}% of \
             what it has"
        ));
    }
    (waited >= WAITED_PERCENT || busy >= SATURATED_PERCENT).then(|| {
        format!(
            "the processors are saturated: busy for {busy}% of the time{during}; the engine was ready but had \
             none for {waited}%, and ran for {ran}%"
        )
    })
}

/// What the processors did when packets were late, where that is known; else in all the run.
fn load(evidence: &RunEvidence<'_>) -> (CpuTickCounters, &'static str) {
    match evidence.load {
        load if load.lasted.is_zero() => (evidence.processors, ""),
        load => (load.into(), " when packets were late"),
    }
}

/// A part of the run's time.
fn percent(evidence: &RunEvidence<'_>, part_ns: u64) -> u64 {
    let elapsed = evidence.elapsed.as_nanos().max(1);
    u64::try_from(u128::from(part_ns) * 100 / u128::from(elapsed)).unwrap_or(100)
}

/// Of the time of all processors. Less is usual on shared machines, and there when nothing is late.
const STOLEN_PERCENT: u8 = 5;

const WAITED_PERCENT: u64 = 3;

const SATURATED_PERCENT: u8 = 85;

const BUSY_PERCENT: u64 = 80;

/// A packet or a stall that is later than this is doubted by itself.
pub(super) fn long_above(late_above: Span) -> Span {
    Span::from_nanos(late_above.as_nanos().saturating_mul(LONG_FACTOR))
}

/// So many times the bound is doubted even of one packet. With the bound of 1 ms it is 20 ms: more
/// than a scheduler's turn takes, and half of the shortest time-out of TCP (Linux delays
/// acknowledgements by 40 ms).
pub(super) const LONG_FACTOR: u64 = 20;
