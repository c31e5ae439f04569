//! What a run's figures mean: faithful or not and why, passed or not and why.

mod doubt;
mod expectations;
mod fidelity;
mod pairs;
mod programs;
mod report;

use serde::{Deserialize, Serialize};
use windtunnel_control::part::StopWhy;
use windtunnel_model::placement::OnHostLoss;
use windtunnel_model::valid::{Invalid, Validate, ensure_short};
use windtunnel_model::{Plan, Span, Time};
use windtunnel_sys::limits::{self, Processors};
use windtunnel_trace::report::{Expectation, Report, Verdict};

use crate::dataplane::Tally;
use crate::devices::DeviceDrops;
use crate::live::{EchoesSeen, Freezes, Probe};
use crate::output::Carried;
use crate::part::results::Results;
use crate::recorder::Recorded;
use crate::supervisor::Supervisor;
use doubt::Doubt;

/// All that is known of a run when it is over.
pub(crate) struct Evidence<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) plan_hash: &'a str,
    pub(crate) began_unix_s: u64,
    pub(crate) setup: Span,
    pub(crate) elapsed: Span,
    pub(crate) ending: &'a Ending,
    pub(crate) tally: &'a Tally,
    pub(crate) recorded: &'a Recorded,
    pub(crate) carried: &'a Carried,
    pub(crate) supervisor: &'a Supervisor,
    /// The round trips that were measured.
    pub(crate) echoes: &'a [(Probe, EchoesSeen)],
    /// When the run began.
    pub(crate) origin: Time,
    /// How all programs were paused.
    pub(crate) freezes: Freezes,
    /// Lateness above this counts as late.
    pub(crate) late_above: Span,
    /// Packets that devices dropped.
    pub(crate) device_drops: DeviceDrops,
    /// What all processors of the machine did during the run.
    pub(crate) processors: Processors,
    /// What the set-up could not do as it should.
    pub(crate) notes: &'a [String],
    /// What each machine has seen, in a run over several. Then all above is of all of them
    /// together.
    pub(crate) hosts: &'a [PartEvidence<'a>],
    /// Machines that were lost, of whose part nothing is known.
    pub(crate) lost: &'a [Lost],
    /// Whether the run is what the lost machines did: the network was cut, and this is the other
    /// side.
    pub(crate) apart: bool,
}

/// A machine of whose part nothing is known.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) host: String,
    pub(crate) why: String,
    /// Since when, as the others saw it; `None` if they did not.
    pub(crate) since: Option<Span>,
    /// How many nodes it had.
    pub(crate) nodes: usize,
}

impl Lost {
    /// What that means for the results.
    fn doubt(&self) -> String {
        let Lost { host, why, since, nodes } = self;
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

/// What one of several machines has seen.
pub(crate) struct PartEvidence<'a> {
    pub(crate) results: &'a Results,
    /// Names of all machines of the run, by member.
    pub(crate) members: &'a [String],
    /// How many nodes it had.
    pub(crate) nodes: usize,
    /// What is known of this machine alone.
    pub(crate) evidence: Evidence<'a>,
}

impl Evidence<'_> {
    /// Time that the hypervisor took from the machine's processors.
    pub(crate) fn stolen(&self) -> Span {
        let tick_ns = 1_000_000_000 / limits::ticks_per_second().max(1);
        Span::from_nanos(self.processors.stolen.saturating_mul(tick_ns))
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// Every program that is no daemon has exited.
    Finished,
    /// The file's duration is over.
    Duration,
    /// Somebody asked for it.
    Stopped,
    /// A signal.
    Interrupted(i32),
    /// The machine could not keep up, and the file wants the run to end then.
    Overloaded(String),
    /// It could not go on.
    Fatal(String),
}

impl Validate for Ending {
    fn validate(&self) -> Result<(), Invalid> {
        match self {
            Ending::Interrupted(signal) => StopWhy::Signal(*signal).validate(),
            Ending::Overloaded(why) | Ending::Fatal(why) => ensure_short("a reason", why),
            Ending::Finished | Ending::Duration | Ending::Stopped => Ok(()),
        }
    }
}

impl Ending {
    /// A machine is lost, without which the file does not want to go on.
    pub(crate) fn host_lost(host: &str) -> Self {
        Ending::Fatal(format!("host {host} is lost"))
    }

    /// In words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Ending::Finished => "every program has exited".to_owned(),
            Ending::Duration => "the duration is over".to_owned(),
            Ending::Stopped => "stopped by command".to_owned(),
            Ending::Interrupted(signal) => format!("interrupted by signal {signal}"),
            Ending::Overloaded(why) | Ending::Fatal(why) => why.clone(),
        }
    }
}

/// Judges a run.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Report {
    let expectations = expectations::check(evidence);
    let verdict = verdict(evidence, &expectations);
    report::assemble(evidence, expectations, verdict)
}

fn verdict(evidence: &Evidence<'_>, expectations: &[Expectation]) -> Verdict {
    let doubts = match evidence.hosts {
        [] => fidelity::doubts(evidence),
        hosts => {
            let lost = evidence.lost.iter().map(Lost::doubt);
            let between = lost.chain(pairs::doubts(hosts)).map(Doubt::other);
            between.chain(hosts.iter().flat_map(fidelity::doubts_of_part)).collect()
        }
    };
    let disturbed = !doubts.is_empty() && doubts.iter().all(|doubt| doubt.is_of_speed);
    let unfaithful: Vec<String> = doubts.into_iter().map(|doubt| doubt.text).collect();
    let mut failures = apart(evidence);
    failures.extend(lost(evidence));
    failures.extend(evidence.recorded.failure.clone());
    failures.extend(programs::failures(evidence));
    let unmet = expectations.iter().filter(|expectation| !expectation.met);
    failures.extend(unmet.map(Expectation::failure));
    if let Ending::Fatal(why) = evidence.ending
        && !failures.contains(why)
    {
        failures.insert(0, why.clone());
    }
    let (faithful, passed) = (unfaithful.is_empty(), failures.is_empty());
    let mut verdict = Verdict {
        faithful,
        disturbed,
        passed,
        exit_code: exit_code(evidence.ending, faithful && passed),
        text: String::new(),
        unfaithful,
        failures,
        warnings: warnings(evidence),
    };
    verdict.text = text(evidence, &verdict, expectations);
    verdict
}

/// Two sides of a cut network have not both done the run.
fn apart(evidence: &Evidence<'_>) -> Vec<String> {
    let hosts: Vec<&str> = evidence.lost.iter().map(|lost| lost.host.as_str()).collect();
    let text = || {
        let hosts = hosts.join(", ");
        format!(
            "this is not the run but a part of it that was cut off: the run is what host {hosts} did"
        )
    };
    evidence.apart.then(text).into_iter().collect()
}

/// Machines without which the file does not want to go on, also if they were lost with their
/// results only when all was over. The first that is lost ends the run, and is told as its ending.
fn lost(evidence: &Evidence<'_>) -> Vec<String> {
    if evidence.plan.on_host_loss == OnHostLoss::Continue {
        return Vec::new();
    }
    let is_ending = |lost: &&Lost| *evidence.ending == Ending::host_lost(&lost.host);
    let others = evidence.lost.iter().filter(|lost| !is_ending(lost));
    others.map(|Lost { host, why, .. }| format!("host {host} is lost: {why}")).collect()
}

fn exit_code(ending: &Ending, fine: bool) -> u8 {
    match (ending, fine) {
        (Ending::Interrupted(signal), _) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        (_, true) => 0,
        (_, false) => 1,
    }
}

fn text(evidence: &Evidence<'_>, verdict: &Verdict, expectations: &[Expectation]) -> String {
    let lateness = evidence.tally.departures.summary();
    let late = evidence.tally.late;
    let mut text = String::new();
    if let Ending::Interrupted(_) = evidence.ending {
        text.push_str("INTERRUPTED, ");
    }
    if evidence.apart {
        text.push_str("PARTIAL, ");
    }
    text.push_str(if verdict.faithful { "FAITHFUL, " } else { "NOT FAITHFUL, " });
    text.push_str(if verdict.passed { "PASSED: " } else { "FAILED: " });
    if let Some(first) = verdict.unfaithful.first().or(verdict.failures.first()) {
        let more = verdict.unfaithful.len() + verdict.failures.len() - 1;
        text.push_str(first);
        if more > 0 {
            text.push_str(&format!(" (and {more} more)"));
        }
        return text;
    }
    if !expectations.is_empty() {
        text.push_str(&format!("{0} of {0} expectations met, ", expectations.len()));
    }
    text.push_str(&format!(
        "{late} of {} packets late, lateness p99 {}, max {}",
        lateness.packets,
        rounded(Span::from_nanos(lateness.p99_ns)),
        rounded(Span::from_nanos(lateness.max_ns)),
    ));
    text
}

fn warnings(evidence: &Evidence<'_>) -> Vec<String> {
    let mut warnings = evidence.notes.to_vec();
    let lost = evidence.lost.iter();
    warnings.extend(lost.map(|Lost { host, why, .. }| {
        format!("host {host} was lost ({why}): what it counted is not here")
    }));
    for part in evidence.hosts {
        let of_host = |text: &String| format!("host {}: {text}", part.results.host);
        let (notes, overload) = (&part.results.notes, overload(&part.evidence));
        warnings.extend(notes.iter().chain(&overload).map(of_host));
    }
    warnings.extend(overload(evidence).filter(|_| evidence.hosts.is_empty()));
    if evidence.recorded.lost > 0 {
        let lost = evidence.recorded.lost;
        warnings.push(format!("{lost} records are missing in links.csv or events.jsonl"));
    }
    if let Some(failure) = &evidence.carried.failure {
        warnings.push(failure.clone());
    }
    for (key, volume) in &evidence.carried.volumes {
        if volume.discarded > 0 {
            let program = evidence.supervisor.describe(*key);
            warnings.push(format!(
                "{program} wrote {} bytes, of which {} were not kept",
                volume.bytes, volume.discarded
            ));
        }
    }
    warnings
}

fn overload(evidence: &Evidence<'_>) -> Option<String> {
    let (overloads, freezes) = (evidence.tally.overloads, evidence.freezes);
    if overloads.times == 0 {
        return None;
    }
    let mut text = format!(
        "the emulation fell behind {}, for {} together and by up to {}",
        times(overloads.times),
        rounded(overloads.lasted),
        rounded(overloads.furthest)
    );
    if freezes.times > 0 {
        let lasted = rounded(freezes.lasted);
        let times = times(freezes.times);
        text.push_str(&format!("; all programs were paused {times}, for {lasted}"));
    }
    Some(text)
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A span with three significant digits: `84.2us`.
pub(crate) fn rounded(span: Span) -> String {
    let nanos = span.as_nanos();
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, tenth) = (nanos / unit, nanos % unit * 10 / unit);
    let hundredth = nanos % unit * 100 / unit % 10;
    match whole {
        0..10 => format!("{whole}.{tenth}{hundredth}{name}"),
        10..100 => format!("{whole}.{tenth}{name}"),
        _ => format!("{whole}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_to_three_digits() {
        let shown = |nanos| rounded(Span::from_nanos(nanos));
        assert_eq!(shown(999), "999ns");
        assert_eq!(shown(84_240), "84.2us");
        assert_eq!(shown(1_005_000), "1.00ms");
        assert_eq!(shown(232_000_000), "232ms");
        assert_eq!(shown(61_000_000_000), "61.0s");
    }
}
