//! What a run's figures mean: faithful or not and why, passed or not and why.

mod bounds;
mod clocks;
mod doubt;
mod expectations;
mod fidelity;
mod internet;
mod limits;
mod pairs;
mod programs;
mod report;
mod services;
mod shares;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use windtunnel_model::Span;
use windtunnel_model::placement::OnHostLoss;
use windtunnel_model::plan::OnRecordLoss;
use windtunnel_trace::report::{ExpectationResult, RecordingReport, RunReport, RunVerdict};

use crate::evidence::{LostMachine, RunEndReason, RunEvidence};
use crate::text::{rounded, times};
use doubt::FidelityDoubt;

/// Judges a run.
pub(crate) fn judge(evidence: &RunEvidence<'_>) -> RunReport {
    let expectations = expectations::check(evidence);
    let verdict = verdict(evidence, &expectations);
    report::assemble(evidence, expectations, verdict)
}

fn verdict(evidence: &RunEvidence<'_>, expectations: &[ExpectationResult]) -> RunVerdict {
    let doubts = match evidence.hosts {
        [] => fidelity::doubts(evidence),
        hosts => {
            let lost = evidence.lost.iter().map(|lost| fidelity::doubt_of_loss(lost, hosts));
            let between = pairs::doubts(hosts).into_iter().chain(clocks::doubts(evidence));
            let between = lost.chain(between.map(FidelityDoubt::other));
            between.chain(hosts.iter().flat_map(fidelity::doubts_of_part)).collect()
        }
    };
    let disturbed = !doubts.is_empty() && doubts.iter().all(|doubt| doubt.is_of_speed);
    let unfaithful: Vec<String> = doubts.into_iter().map(|doubt| doubt.text).collect();
    let mut failures = cut_off(evidence);
    failures.extend(lost(evidence));
    failures.extend(evidence.recorded.failure.clone());
    failures.extend(programs::failures(evidence));
    let unmet = expectations.iter().filter(|expectation| !expectation.met);
    failures.extend(unmet.map(ExpectationResult::failure));
    let mut incomplete = evidence.records.map(RecordingReport::incomplete).unwrap_or_default();
    incomplete.extend_from_slice(evidence.captures);
    if evidence.plan.record.on_loss == OnRecordLoss::Fail {
        failures.extend(incomplete.iter().map(|why| format!("the evidence is incomplete: {why}")));
    }
    if let RunEndReason::Fatal(why) = evidence.ending
        && !failures.contains(why)
    {
        failures.insert(0, why.clone());
    }
    let (faithful, passed) = (unfaithful.is_empty(), failures.is_empty());
    let mut verdict = RunVerdict {
        faithful,
        disturbed,
        passed,
        exit_code: exit_code(evidence.ending, faithful && passed),
        text: String::new(),
        unfaithful,
        failures,
        incomplete,
        warnings: warnings(evidence),
    };
    verdict.text = text(evidence, &verdict, expectations);
    verdict
}

/// Two sides of a cut network have not both done the run.
fn cut_off(evidence: &RunEvidence<'_>) -> Vec<String> {
    let hosts: Vec<&str> = evidence.lost.iter().map(|lost| lost.host.as_str()).collect();
    let text = || {
        let hosts = hosts.join(", ");
        format!(
            "this is not the run but a part of it that was cut off: the run is what host {hosts} did"
        )
    };
    evidence.cut_off.then(text).into_iter().collect()
}

/// Machines without which the file does not want to go on, also if they were lost with their
/// results only when all was over. The first that is lost ends the run, and is reported as its
/// ending.
fn lost(evidence: &RunEvidence<'_>) -> Vec<String> {
    if evidence.plan.on_host_loss == OnHostLoss::Continue {
        return Vec::new();
    }
    let is_ending = |lost: &&LostMachine| *evidence.ending == RunEndReason::host_lost(&lost.host);
    let others = evidence.lost.iter().filter(|lost| !is_ending(lost));
    others.map(|LostMachine { host, why, .. }| format!("host {host} is lost: {why}")).collect()
}

fn exit_code(ending: &RunEndReason, fine: bool) -> u8 {
    match (ending, fine) {
        (RunEndReason::Interrupted(signal), _) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        (_, true) => 0,
        (_, false) => 1,
    }
}

fn text(
    evidence: &RunEvidence<'_>,
    verdict: &RunVerdict,
    expectations: &[ExpectationResult],
) -> String {
    let lateness = evidence.tally.departures.summary();
    let late = evidence.tally.late;
    let mut text = String::new();
    if let RunEndReason::Interrupted(_) = evidence.ending {
        text.push_str("INTERRUPTED, ");
    }
    if evidence.cut_off {
        text.push_str("PARTIAL, ");
    }
    text.push_str(if verdict.faithful { "FAITHFUL, " } else { "NOT FAITHFUL, " });
    text.push_str(if verdict.passed { "PASSED" } else { "FAILED" });
    text.push_str(if verdict.incomplete.is_empty() { ": " } else { ", EVIDENCE INCOMPLETE: " });
    let RunVerdict { unfaithful, failures, incomplete, .. } = verdict;
    // What is incomplete may be among the failures.
    let incomplete = if failures.is_empty() { &incomplete[..] } else { &[] };
    let reasons = || unfaithful.iter().chain(failures).chain(incomplete);
    if let Some(first) = reasons().next() {
        let more = reasons().count() - 1;
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

fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    let mut warnings = evidence.notes.to_vec();
    let lost = evidence.lost.iter();
    warnings.extend(lost.map(|LostMachine { host, why, .. }| {
        format!("host {host} was lost ({why}): what it counted is not here")
    }));
    for part in evidence.hosts {
        let of_host = |text: &String| format!("host {}: {text}", part.results.host);
        let (notes, overload) = (&part.results.notes, overload(&part.evidence));
        let refused = refused_datagrams(&part.evidence);
        warnings.extend(notes.iter().chain(&overload).chain(&refused).map(of_host));
    }
    warnings.extend(overload(evidence).filter(|_| evidence.hosts.is_empty()));
    warnings.extend(bounds::warnings(evidence));
    warnings.extend(clocks::warnings(evidence));
    warnings.extend(services::warnings(evidence));
    warnings.extend(internet::warnings(evidence));
    for nat in evidence.tally.nats.iter().filter(|it| it.counters.ended_lost > 0) {
        let (name, lost) =
            (&evidence.plan.routers[nat.router.index()].name, nat.counters.ended_lost);
        warnings.push(format!("{lost} mappings of the NAT of {name} are missing in nat.csv"));
    }
    if evidence.recorded.lost > 0 {
        let lost = evidence.recorded.lost;
        warnings.push(format!("{lost} records are missing in links.csv or events.jsonl"));
    }
    if let Some(failure) = &evidence.carried.failure {
        warnings.push(failure.clone());
    }
    for (key, volume) in &evidence.carried.volumes {
        if volume.discarded > 0 {
            let program = key.describe(evidence.plan);
            warnings.push(format!(
                "{program} wrote {} bytes, of which {} were not kept",
                volume.bytes, volume.discarded
            ));
        }
    }
    warnings
}

/// Nothing of them has reached a node; but who sends them?
fn refused_datagrams(evidence: &RunEvidence<'_>) -> Option<String> {
    let refused = evidence.tally.remote.map_or(0, |remote| remote.refused_datagrams);
    (refused > 0).then(|| {
        let plural = if refused == 1 { " was" } else { "s were" };
        format!(
            "{refused} datagram{plural} refused at its port: of another sender or run, not whole, or \
             sent twice"
        )
    })
}

fn overload(evidence: &RunEvidence<'_>) -> Option<String> {
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
