//! Whether the emulation was what was asked: lateness, and packets lost outside the model.

mod cause;
mod events;
mod lateness;

use windtunnel_dataplane::InterMachineTraffic;
use windtunnel_engine::LostReports;
use windtunnel_model::quantity::total;
use windtunnel_model::{Lane, Span, Time};

use super::doubt::FidelityDoubt;
use super::{bounds, internet, limits, services};
use crate::evidence::BEGIN_LATE;
use crate::evidence::{LostMachine, PartEvidence, RunEndReason, RunEvidence};
use crate::text::rounded;
use cause::{cause, lane_text};

/// Why the run cannot be believed; empty if it can.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<FidelityDoubt> {
    let tally = evidence.tally;
    let mut doubts = Vec::new();
    if let Some(failure) = &tally.failure {
        doubts.push(FidelityDoubt::other(failure.clone()));
    }
    doubts.extend(slowness(evidence).into_iter().map(FidelityDoubt::of_speed));
    doubts.extend(losses(evidence).into_iter().map(FidelityDoubt::other));
    doubts.extend(limits::doubts(evidence).into_iter().map(FidelityDoubt::other));
    doubts.extend(bounds::doubts(evidence).into_iter().map(FidelityDoubt::other));
    doubts.extend(services::doubts(evidence));
    doubts.extend(internet::doubts(evidence));
    doubts
}

/// Signs that the machine did not keep up.
fn slowness(evidence: &RunEvidence<'_>) -> Vec<String> {
    let tally = evidence.tally;
    let mut doubts = lateness::doubts(evidence);
    doubts.extend(events::doubt(evidence));
    if let RunEndReason::Overloaded(why) = evidence.ending {
        doubts.push(format!("{why}: {}", cause(evidence, evidence.tally.overloads.furthest)));
    }
    let dropped = total(tally.kernel_drops.iter().map(|(_, drops)| drops));
    if let Some((first, _)) = tally.kernel_drops.first() {
        doubts.push(format!(
            "the kernel dropped {dropped} packets before the engine saw them, first in the 100ms \
             before {}: the engine did not take them in time; likely cause: {}",
            rounded(first.since(Time::ZERO)),
            cause(evidence, tally.stalls.longest.max(tally.overloads.furthest)),
        ));
    }
    doubts
}

/// Packets that were lost outside the model, and not because the engine was slow.
fn losses(evidence: &RunEvidence<'_>) -> Vec<String> {
    let tally = evidence.tally;
    let mut doubts: Vec<String> = evidence.device_drops.text().into_iter().collect();
    if tally.refused > 0 {
        doubts.push(format!("the kernel refused {} packets that were due", tally.refused));
    }
    if tally.truncated > 0 {
        doubts.push(format!(
            "{} packets were not frames of at most 66KiB and were lost",
            tally.truncated
        ));
    }
    doubts.extend(lost_reports(tally.lost_reports));
    doubts.extend(memory(evidence));
    doubts
}

/// The same of one of several machines, which is named.
pub(super) fn doubts_of_part(part: &PartEvidence<'_>) -> Vec<FidelityDoubt> {
    let between = part.evidence.tally.remote.map(remote).unwrap_or_default();
    let began = began_late(part.results.began_late, part.evidence.late_above);
    let all = began.into_iter().map(FidelityDoubt::of_speed);
    let all =
        all.chain(doubts(&part.evidence)).chain(between.into_iter().map(FidelityDoubt::other));
    all.map(|doubt| doubt.of_host(&part.results.host)).collect()
}

/// A machine is lost. If it only did not answer, and it or the others had no processor time to give
/// then, another attempt may not lose it.
pub(super) fn doubt_of_loss(lost: &LostMachine, hosts: &[PartEvidence<'_>]) -> FidelityDoubt {
    let text = lost.doubt();
    let explained = lost.stood.and_then(|stood| {
        let of_its_own =
            (stood >= STOOD_LEAST).then(|| format!("it stood still for {}", rounded(stood)));
        of_its_own.or_else(|| hosts.iter().find_map(shortage))
    });
    match explained {
        Some(why) => FidelityDoubt::of_speed(format!("{text}; likely cause: {why}")),
        None => FidelityDoubt::other(text),
    }
}

/// What kept a machine from having processor time for all that wanted it.
fn shortage(part: &PartEvidence<'_>) -> Option<String> {
    let why = cause::shortage(&part.evidence)?;
    Some(format!("host {}: {why}", part.results.host))
}

/// A machine that stands still for so long is noticed by the others.
const STOOD_LEAST: Span = Span::from_millis(500);

/// Programs and events of a machine that began late were late, and nothing else reports it.
fn began_late(late: Span, late_above: Span) -> Option<String> {
    (late > BEGIN_LATE.max(late_above)).then(|| {
        format!("the run began {} late there: programs and events were late", rounded(late))
    })
}

/// What one machine knows to have lost of other machines' packets, which no link of the file has
/// lost.
fn remote(traffic: InterMachineTraffic) -> Vec<String> {
    let counts = [
        (traffic.incomplete_packets, "packets of other machines came only in part"),
        (traffic.unsent_packets, "packets for other machines could not be sent"),
        (
            traffic.overflowed_packets,
            "packets of other machines found no room until their time; give more with --packet-memory",
        ),
        (traffic.stray_packets, "packets of other machines were for no node here"),
        (traffic.refused_flows, "announcements of flows on other machines made no sense here"),
        (traffic.nameless_flows, "flows could not be announced to other machines"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect()
}

/// What the engine reported faster than the packet loop read it.
fn lost_reports(lost: LostReports) -> Option<String> {
    let LostReports { events, handoffs } = lost;
    (events > 0 || handoffs > 0).then(|| {
        format!(
            "the engine's reports were not read in time: {handoffs} measurements of lateness at \
             routers and LANs and {events} changes of routes were lost"
        )
    })
}

fn memory(evidence: &RunEvidence<'_>) -> Option<String> {
    let lanes = evidence.tally.lanes.iter().enumerate();
    let (lane, drops) = lanes
        .map(|(index, lane)| (Lane::from_index(index), lane.no_memory))
        .max_by_key(|(_, drops)| *drops)
        .filter(|(_, drops)| *drops > 0)?;
    Some(format!(
        "the packet memory was exhausted: {drops} packets were lost on {} alone; give more with \
         --packet-memory",
        lane_text(evidence, lane)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_were_lost_make_a_run_doubtful_with_their_number() {
        assert_eq!(lost_reports(LostReports::default()), None);
        let text = lost_reports(LostReports { events: 0, handoffs: 7 }).unwrap();
        assert!(text.contains("7 measurements of lateness"), "{text}");
        let text = lost_reports(LostReports { events: 1, handoffs: 0 }).unwrap();
        assert!(text.contains("1 changes of routes"), "{text}");
    }

    #[test]
    fn a_machine_on_which_the_run_began_late_is_doubted_with_the_delay() {
        let within = |late, bound| began_late(Span::from_millis(late), Span::from_millis(bound));
        let late = |millis| within(millis, 1);
        assert_eq!((within(105, 104).is_some(), within(105, 105)), (true, None));
        assert_eq!(late(0), None);
        assert_eq!(late(10), None);
        let text = late(105).unwrap();
        assert_eq!(text, "the run began 105ms late there: programs and events were late");
    }
}
