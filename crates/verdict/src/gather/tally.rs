//! The counters of all parts, together.

use windtunnel_dataplane::{LaneResult, Tally, phase};
use windtunnel_engine::{LaneCounters, RouterCounters};
use windtunnel_model::{Plan, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::series::{LinkSample, LinkSampleSeries};

use super::interval::{ByInterval, interval_of};
use super::parts::RunPartFolders;
use crate::results::PartResults;

pub(super) fn merge(plan: &Plan, parts: &RunPartFolders, results: &[PartResults]) -> Tally {
    let tallies: Vec<&Tally> = results.iter().map(|part| &part.tally).collect();
    let mut all = Tally {
        lanes: (0..plan.links.len() * 2).map(|lane| lane_of(&tallies, lane)).collect(),
        routers: (0..plan.routers.len()).map(|router| router_of(&tallies, router)).collect(),
        departures: LatenessHistogram::new(),
        ..Tally::default()
    };
    for (index, flow) in tallies[0].flows.iter().enumerate() {
        // Only the receiver's machine counts.
        let place = parts.placement.get(flow.to.index());
        let owner = results.iter().find(|part| Some(&part.member) == place);
        let flow = owner.and_then(|part| part.tally.flows.get(index)).unwrap_or(flow);
        all.flows.push(flow.clone());
    }
    for tally in &tallies {
        all.services.add(&tally.services);
        all.departures.add(&tally.departures);
        all.flow_starts.add(&tally.flow_starts);
        all.late = all.late.saturating_add(tally.late);
        all.late_intervals.extend(&tally.late_intervals);
        all.kernel_drops.extend(&tally.kernel_drops);
        all.truncated = all.truncated.saturating_add(tally.truncated);
        all.lost_reports.add(tally.lost_reports);
        all.refused = all.refused.saturating_add(tally.refused);
        all.received.extend(&tally.received);
        all.overloads.times = all.overloads.times.saturating_add(tally.overloads.times);
        all.overloads.lasted = all.overloads.lasted + tally.overloads.lasted;
        all.overloads.furthest = all.overloads.furthest.max(tally.overloads.furthest);
        all.stalls.add(&tally.stalls);
        all.ran_ns = all.ran_ns.saturating_add(tally.ran_ns);
        all.waited_ns = all.waited_ns.saturating_add(tally.waited_ns);
        all.failure = all.failure.or_else(|| tally.failure.clone());
    }
    all.real_time = tallies.iter().all(|tally| tally.real_time);
    all.late_intervals.sort_by_key(|interval| interval.at);
    all.kernel_drops.sort_unstable();
    all
}

fn lane_of(tallies: &[&Tally], lane: usize) -> LaneResult {
    let mut counters = LaneCounters::default();
    let mut lateness = LatenessHistogram::new();
    let mut late: Option<(Time, Time)> = None;
    let mut samples = ByInterval::new();
    let mut wanted = false;
    let mut no_memory = 0_u64;
    for part in tallies.iter().filter_map(|tally| tally.lanes.get(lane)) {
        counters.add(&part.counters);
        lateness.add(&part.lateness);
        no_memory = no_memory.saturating_add(part.no_memory);
        late = late.into_iter().chain(part.late).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        wanted |= part.series.is_some();
        for sample in part.series.iter().flat_map(|series| &series.0) {
            let (_, all) = samples
                .entry(interval_of(sample.at))
                .or_insert_with(|| (sample.at, LinkSample::default()));
            add_sample(all, sample);
        }
    }
    let series = samples.into_values().map(|(_, sample)| sample).collect();
    let parts = tallies.iter().filter_map(|tally| tally.lanes.get(lane));
    let phases = phase::merge(parts.map(|part| part.phases.as_slice()));
    let series = wanted.then_some(LinkSampleSeries(series));
    LaneResult { counters, lateness, late, no_memory, phases, series }
}

fn add_sample(all: &mut LinkSample, one: &LinkSample) {
    all.at = all.at.max(one.at);
    all.row.add(&one.row);
    all.rate_bit_per_s = one.rate_bit_per_s;
    for (why, packets) in &one.dropped {
        match all.dropped.iter_mut().find(|(known, _)| known == why) {
            Some((_, sum)) => *sum = sum.saturating_add(*packets),
            None => all.dropped.push((*why, *packets)),
        }
    }
}

fn router_of(tallies: &[&Tally], router: usize) -> RouterCounters {
    let mut sum = RouterCounters::default();
    for part in tallies.iter().filter_map(|tally| tally.routers.get(router)) {
        sum.add(part);
    }
    sum
}
