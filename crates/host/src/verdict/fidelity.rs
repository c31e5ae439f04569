//! Whether the emulation was what was asked: lateness, and packets lost outside the model.

use windtunnel_engine::DropReason;
use windtunnel_model::{Lane, Span, Time};

use super::report::busy_percent;
use super::{Ending, Evidence, PartEvidence, rounded};
use crate::dataplane::Traffic;

/// Why the run cannot be believed; empty if it can.
pub(super) fn doubts(evidence: &Evidence<'_>) -> Vec<String> {
    let tally = evidence.tally;
    let mut doubts = Vec::new();
    if let Some(failure) = &tally.failure {
        doubts.push(failure.clone());
    }
    doubts.extend(lateness(evidence));
    if let Ending::Overloaded(why) = evidence.ending {
        doubts.push(format!("{why}: {}", cause(evidence)));
    }
    let dropped: u64 = tally.kernel_drops.iter().map(|(_, drops)| drops).sum();
    if let Some((first, _)) = tally.kernel_drops.first() {
        doubts.push(format!(
            "the kernel dropped {dropped} packets before the engine saw them, first in the 100ms \
             before {}: the offered rate is too high for this machine",
            rounded(first.since(Time::ZERO))
        ));
    }
    if evidence.device_drops > 0 {
        doubts.push(format!(
            "the kernel's backlog dropped {} packets between nodes and engine: the offered rate is \
             too high for this machine",
            evidence.device_drops
        ));
    }
    if tally.refused > 0 {
        doubts.push(format!("the kernel refused {} packets that were due", tally.refused));
    }
    if tally.truncated > 0 {
        doubts.push(format!(
            "{} packets were no frames of at most 66KiB and were lost",
            tally.truncated
        ));
    }
    doubts.extend(memory(evidence));
    doubts
}

/// The same of one of several machines, which is named.
pub(super) fn doubts_of_part(part: &PartEvidence<'_>) -> Vec<String> {
    let between = part.evidence.tally.abroad.map(abroad).unwrap_or_default();
    let all = doubts(&part.evidence).into_iter().chain(between);
    all.map(|doubt| format!("host {}: {doubt}", part.results.host)).collect()
}

/// What was lost between the machines, which no link of the file has lost.
fn abroad(traffic: Traffic) -> Vec<String> {
    let counts = [
        (traffic.lost_datagrams, "datagrams with packets were lost on the way from other machines"),
        (traffic.incomplete_packets, "packets of other machines came only in part"),
        (traffic.unsent_packets, "packets for other machines could not be sent"),
        (
            traffic.overflowed_packets,
            "packets of other machines found no room until their time; give more with --packet-memory",
        ),
        (traffic.stray_packets, "packets of other machines were for nobody here"),
        (traffic.refused_flows, "announcements of flows on other machines made no sense here"),
        (traffic.nameless_flows, "flows could not be announced to other machines"),
    ];
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect()
}

fn memory(evidence: &Evidence<'_>) -> Option<String> {
    let lanes = evidence.tally.lanes.iter().enumerate();
    let (lane, drops) = lanes
        .map(|(index, lane)| (Lane::from_index(index), lane.counters.dropped[DropReason::Memory]))
        .max_by_key(|(_, drops)| *drops)
        .filter(|(_, drops)| *drops > 0)?;
    Some(format!(
        "the packet memory was exhausted: {drops} packets were lost on {} alone; give more with \
         --packet-memory",
        lane_text(evidence, lane)
    ))
}

/// More than one packet in a thousand left later than the bound.
fn lateness(evidence: &Evidence<'_>) -> Option<String> {
    let tally = evidence.tally;
    let packets = tally.departures.packets();
    if tally.late.saturating_mul(LATE_ONE_IN) <= packets {
        return None;
    }
    let percent_hundredths = tally.late.saturating_mul(10_000) / packets.max(1);
    let when = match (tally.late_intervals.first(), tally.late_intervals.last()) {
        (Some(first), Some(last)) => {
            // An interval's end is kept; packets were late in the 100 ms before it.
            let (first, last) = (first.at.since(Time::ZERO), last.at.since(Time::ZERO));
            format!(", between {} and {}", rounded(first), rounded(last))
        }
        _ => String::new(),
    };
    Some(format!(
        "{} of {packets} packets ({}.{:02}%) left more than {} late, at the worst {}{when}, mostly on {}; \
         likely cause: {}",
        tally.late,
        percent_hundredths / 100,
        percent_hundredths % 100,
        evidence.late_above,
        rounded(Span::from_nanos(tally.departures.summary().max_ns)),
        worst_lanes(evidence),
        cause(evidence),
    ))
}

/// The lanes with the most late packets, at most three.
fn worst_lanes(evidence: &Evidence<'_>) -> String {
    let lanes = evidence.tally.lanes.iter().enumerate();
    let mut late: Vec<(u64, Lane)> = lanes
        .map(|(index, lane)| {
            (lane.lateness.later_than(evidence.late_above), Lane::from_index(index))
        })
        .filter(|(late, _)| *late > 0)
        .collect();
    late.sort_by_key(|(late, lane)| (std::cmp::Reverse(*late), *lane));
    let names = late.iter().take(LANES_NAMED).map(|(_, lane)| lane_text(evidence, *lane));
    names.collect::<Vec<_>>().join(", ")
}

fn lane_text(evidence: &Evidence<'_>, lane: Lane) -> String {
    let link = &evidence.plan.links[lane.link.index()].name;
    format!("{link} ({})", evidence.plan.lane_name(lane))
}

/// What kept the engine's thread from being on time, by what the kernel says of it.
fn cause(evidence: &Evidence<'_>) -> String {
    let elapsed = evidence.elapsed.as_nanos().max(1);
    let share =
        |part: u64| u64::try_from(u128::from(part) * 100 / u128::from(elapsed)).unwrap_or(100);
    let (ran, waited) = (share(evidence.tally.ran_ns), share(evidence.tally.waited_ns));
    let busy = busy_percent(evidence.processors);
    if share(evidence.stolen().as_nanos()) >= STOLEN_PERCENT {
        let stolen = rounded(evidence.stolen());
        return format!("the hypervisor took {stolen} of processor time from this machine");
    }
    if waited >= WAITED_PERCENT || busy >= SATURATED_PERCENT {
        return format!(
            "the processors are saturated: busy for {busy}% of the time; the engine was ready but had \
             none for {waited}%, and ran for {ran}%"
        );
    }
    if ran >= BUSY_PERCENT {
        return format!("the offered rate is too high: the engine was busy {ran}% of the time");
    }
    format!("short stalls of this machine (its processors were busy for {busy}% of the time)")
}

/// At most one packet in so many may be late: 0.1 %.
const LATE_ONE_IN: u64 = 1000;
const LANES_NAMED: usize = 3;
const STOLEN_PERCENT: u64 = 3;
const WAITED_PERCENT: u64 = 3;
const SATURATED_PERCENT: u8 = 85;
const BUSY_PERCENT: u64 = 80;
