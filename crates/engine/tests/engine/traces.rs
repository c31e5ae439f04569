//! Lanes that follow a trace, against figures worked out by hand and a reference that knows no
//! engine.

mod reference;

use windtunnel_model::plan::Plan;
use windtunnel_model::profile::{
    LossModel, Overhead, PropertySetting, QueueDiscipline, QueueLimit, RedParameters,
};
use windtunnel_model::trace::{
    DeliveryOpportunities, LinkTrace, TraceColumn, TraceContent, TraceSeries,
};
use windtunnel_model::{
    LinkPatch, LinkProfile, Packets, Rate, Span, Time, TraceMode, TraceUse, Traces,
};
use windtunnel_wire::{build, vnet};

use crate::support::{MS, Net, US, pair, path, up};

const FOLLOW: TraceUse =
    TraceUse { trace: 0, mode: TraceMode::Opportunities, repeat: true, offset: Span::ZERO };

/// Milliseconds of opportunities, as a file has them.
fn opportunities(lines: &[u64]) -> LinkTrace {
    let mut trace =
        DeliveryOpportunities { delta_ms: TraceColumn::default(), count: TraceColumn::default() };
    let mut before = None;
    for line in lines {
        if before == Some(*line) {
            *trace.count.0.last_mut().unwrap() += 1;
        } else {
            trace.delta_ms.0.push(line - before.unwrap_or(0));
            trace.count.0.push(1);
        }
        before = Some(*line);
    }
    LinkTrace { file: "x.down".into(), content: TraceContent::Opportunities(trace) }
}

/// A table of times in ms and values.
fn table(rows: &[(u64, u64)], put: fn(&mut TraceSeries, TraceColumn)) -> LinkTrace {
    let time_ns = TraceColumn(rows.iter().map(|row| row.0 * MS).collect());
    let mut series =
        TraceSeries { time_ns, rate_bit_per_s: None, latency_ns: None, loss_ppb: None };
    put(&mut series, TraceColumn(rows.iter().map(|row| row.1).collect()));
    LinkTrace { file: "x.csv".into(), content: TraceContent::Series(series) }
}

fn rates(rows: &[(u64, u64)]) -> LinkTrace {
    table(rows, |series, column| series.rate_bit_per_s = Some(column))
}

/// A lane whose rate follows trace 0, without overhead.
fn following(mode: TraceMode) -> LinkProfile {
    LinkProfile {
        rate: Rate::from_bits_per_second(12_000_000),
        overhead: Some(Overhead::NONE),
        traces: Traces { rate: Some(TraceUse { mode, ..FOLLOW }), ..Traces::default() },
        ..LinkProfile::default()
    }
}

fn with(mut plan: Plan, trace: LinkTrace) -> Plan {
    plan.traces = vec![trace];
    plan
}

fn slotted(lines: &[u64]) -> Net {
    Net::new(with(pair(1, following(TraceMode::Opportunities)), opportunities(lines)))
}

#[test]
fn a_full_packet_leaves_at_each_opportunity_and_later_ones_repeat() {
    let mut net = slotted(&[1, 2, 2, 5]);
    (0..5).for_each(|tag| net.send_udp(0, 1500, tag));
    net.finish();
    assert_eq!(net.times(), [MS, 2 * MS, 2 * MS, 5 * MS, 6 * MS]);
    net.check_conservation();
    assert_eq!(net.engine.poll_timeout(), None, "nothing waits, so there is no timeout");
}

#[test]
fn an_opportunity_at_the_instant_of_an_arrival_is_gone() {
    let mut net = slotted(&[1, 2, 5]);
    net.send_udp(2 * MS, 1500, 0);
    net.send_udp(5 * MS - 1, 1500, 1);
    net.finish();
    // Both want the one at 5 ms; the trace begins again there, so the next is at 6 ms.
    assert_eq!(net.arrivals(), [(5 * MS, 0), (6 * MS, 1)]);
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_several() {
    let mut net = slotted(&[1, 2, 3, 4]);
    (0..4).for_each(|tag| net.send_udp(0, 500, tag));
    net.finish();
    assert_eq!(net.times(), [MS, MS, MS, 2 * MS]);

    let profile = LinkProfile { mtu: 9000, ..following(TraceMode::Opportunities) };
    let mut net = Net::new(with(pair(1, profile), opportunities(&[1, 2, 3, 4])));
    net.send_udp(0, 4000, 0);
    net.send_udp(0, 500, 1);
    net.finish();
    // 1500 + 1500 + 1000, and the other 500 of the third.
    assert_eq!(net.times(), [3 * MS, 3 * MS]);
}

#[test]
fn by_default_each_packet_costs_mahimahis_four_bytes() {
    let profile = LinkProfile { overhead: None, ..following(TraceMode::Opportunities) };
    let mut net = Net::new(with(pair(1, profile), opportunities(&[1, 2, 3, 4])));
    // 1504 bytes: three times 497 + 4 and one byte left.
    (0..4).for_each(|tag| net.send_udp(0, 497, tag));
    net.send_udp(MS, 1500, 4);
    net.finish();
    assert_eq!(net.times(), [MS, MS, MS, 2 * MS, 3 * MS]);
}

#[test]
fn busy_time_is_the_share_of_the_gap_that_was_used() {
    let mut net = slotted(&[4, 8]);
    net.send_udp(0, 750, 0);
    net.finish();
    assert_eq!(net.lane(0).busy_ns, 2 * MS);
    let mut net = slotted(&[4, 8, 8, 10]);
    (0..4).for_each(|tag| net.send_udp(0, 1500, tag));
    net.finish();
    assert_eq!(net.lane(0).busy_ns, 10 * MS);
}

#[test]
fn a_trace_that_ends_carries_nothing_more_until_a_rate_takes_its_place() {
    let mut profile = following(TraceMode::Opportunities);
    profile.traces.rate = Some(TraceUse { repeat: false, ..FOLLOW });
    let mut net = Net::new(with(pair(1, profile), opportunities(&[1, 2])));
    (0..4).for_each(|tag| net.send_udp(0, 1000, tag));
    net.run_until(50 * MS);
    assert_eq!(net.times(), [MS, 2 * MS, 2 * MS], "1500 + 1500 bytes");
    let rate = Rate::from_bits_per_second(8_000_000).map(PropertySetting::To);
    net.patch(100 * MS, up(0), LinkPatch { rate, ..LinkPatch::default() });
    net.finish();
    assert_eq!(net.times()[3..], [101 * MS]);
    net.check_conservation();
}

#[test]
fn a_rate_in_place_of_a_trace_sends_the_rest_of_the_packet_begun() {
    let mut net = slotted(&[1, 100]);
    net.send_udp(0, 1000, 0);
    net.send_udp(0, 1000, 1);
    net.run_until(5 * MS);
    assert_eq!(net.times(), [MS]);
    // 500 bytes of the second are through; the rest takes half a millisecond at 8 Mbit/s.
    let rate = Rate::from_bits_per_second(8_000_000).map(PropertySetting::To);
    net.patch(5 * MS, up(0), LinkPatch { rate, ..LinkPatch::default() });
    net.finish();
    assert_eq!(net.times(), [MS, 5 * MS + MS / 2]);
}

#[test]
fn without_a_rate_all_that_waited_for_a_trace_leaves_at_once() {
    let mut net = slotted(&[1, 100]);
    (0..3).for_each(|tag| net.send_udp(0, 1000, tag));
    net.run_until(5 * MS);
    net.patch(
        5 * MS,
        up(0),
        LinkPatch { rate: Some(PropertySetting::Default), ..LinkPatch::default() },
    );
    net.finish();
    assert_eq!(net.arrivals(), [(MS, 0), (5 * MS, 1), (5 * MS, 2)]);
    net.check_conservation();
}

#[test]
fn an_event_that_switches_to_a_trace_joins_it_where_the_run_is() {
    let steady = LinkProfile { traces: Traces::default(), ..following(TraceMode::Opportunities) };
    let mut net = Net::new(with(pair(1, steady), opportunities(&[4, 10])));
    let mode = TraceMode::Opportunities;
    let patch = LinkPatch {
        rate: following(mode).rate.map(PropertySetting::To),
        traces: following(mode).traces,
        ..LinkPatch::default()
    };
    net.send_udp(12 * MS, 1500, 0);
    net.send_udp(12 * MS, 1500, 1);
    net.patch(12 * MS + US, up(0), patch);
    net.finish();
    // The first is on the line for 1 ms and keeps its end; the trace's 4 ms is at 14 ms.
    assert_eq!(net.times(), [13 * MS, 14 * MS]);
}

#[test]
fn all_links_start_their_traces_when_the_run_does() {
    let profile = || following(TraceMode::Opportunities);
    let mut net = Net::new(with(path(1, vec![profile(), profile()]), opportunities(&[3, 5])));
    let origin = 1_000_000 * MS;
    net.engine.start_traces(Time::from_nanos(origin));
    net.send_udp(origin + MS, 1500, 0);
    net.finish();
    // 3 ms on the first link; on the second that opportunity is gone.
    assert_eq!(net.times(), [origin + 5 * MS]);
}

#[test]
fn a_held_rate_changes_in_the_middle_of_a_packet() {
    let trace = rates(&[(0, 8_000_000), (3, 0), (10, 16_000_000)]);
    let mut profile = following(TraceMode::Hold);
    profile.traces.rate = Some(TraceUse { mode: TraceMode::Hold, repeat: false, ..FOLLOW });
    let mut net = Net::new(with(pair(1, profile), trace));
    net.send_udp(0, 1000, 0);
    net.send_udp(0, 1500, 1);
    net.send_udp(0, 1000, 2);
    net.send_udp(0, 1000, 3);
    net.finish();
    // 1 ms; 1.5 ms; half in the last 0.5 ms, half at double speed after the outage; half a ms.
    assert_eq!(net.times(), [MS, 2 * MS + MS / 2, 10 * MS + MS / 4, 10 * MS + 3 * MS / 4]);
    net.check_conservation();
}

#[test]
fn an_interpolated_rate_is_integrated() {
    // From 0 to 16 Mbit/s in 20 ms: after t ms t²·400 bits are through.
    let trace = rates(&[(0, 0), (20, 16_000_000)]);
    let mut net = Net::new(with(pair(1, following(TraceMode::Interpolate)), trace));
    net.send_udp(0, 1250, 0);
    net.send_udp(0, 1250, 1);
    net.finish();
    // 10 000 bits at t = 5 ms; 20 000 at √50 ms = 7.0710678 ms, rounded down.
    assert_eq!(net.times(), [5 * MS, 7_071_067]);
}

#[test]
fn a_dead_trace_lets_its_packet_go_when_the_rate_is_set() {
    let trace = rates(&[(0, 8_000_000), (1, 0)]);
    let mut profile = following(TraceMode::Hold);
    profile.traces.rate = Some(TraceUse { mode: TraceMode::Hold, repeat: false, ..FOLLOW });
    let mut net = Net::new(with(pair(1, profile), trace));
    net.send_udp(0, 1500, 0);
    net.send_udp(0, 1000, 1);
    net.run_until(20 * MS);
    assert_eq!(net.times(), []);
    let rate = Rate::from_bits_per_second(8_000_000).map(PropertySetting::To);
    net.patch(20 * MS, up(0), LinkPatch { rate, ..LinkPatch::default() });
    net.finish();
    assert_eq!(net.times(), [21 * MS + MS / 2, 22 * MS + MS / 2]);
    net.check_conservation();
}

#[test]
fn a_falling_latency_does_not_reorder_and_a_straight_one_is_in_between() {
    let latency = |mode| LinkProfile {
        traces: Traces {
            latency: Some(TraceUse { mode, repeat: false, ..FOLLOW }),
            ..Traces::default()
        },
        ..LinkProfile::default()
    };
    let rows = [(0, 10 * MS), (4, 2 * MS)];
    let trace = || table(&rows, |series, column| series.latency_ns = Some(column));
    let mut net = Net::new(with(pair(1, latency(TraceMode::Hold)), trace()));
    net.send_udp(3 * MS, 100, 0);
    net.send_udp(4 * MS, 100, 1);
    net.send_udp(20 * MS, 100, 2);
    net.finish();
    assert_eq!(net.arrivals(), [(13 * MS, 0), (13 * MS, 1), (22 * MS, 2)]);
    let mut net = Net::new(with(pair(1, latency(TraceMode::Interpolate)), trace()));
    net.send_udp(MS, 100, 0);
    net.finish();
    assert_eq!(net.arrivals(), [(9 * MS, 0)]);
}

#[test]
fn loss_follows_its_trace_by_the_time_of_the_offer() {
    let rows = [(0, 0), (10, 1_000_000_000), (20, 0)];
    let trace = table(&rows, |series, column| series.loss_ppb = Some(column));
    let mut profile = LinkProfile { loss: LossModel::None, ..LinkProfile::default() };
    profile.traces.loss = Some(TraceUse { mode: TraceMode::Hold, repeat: false, ..FOLLOW });
    let mut net = Net::new(with(pair(1, profile), trace));
    for tag in 0..30 {
        net.send_udp(u64::from(tag) * MS, 100, tag);
    }
    net.finish();
    let expected: Vec<u32> = (0..10).chain(20..30).collect();
    assert_eq!(net.tags(), expected);
    net.check_conservation();
}

/// Each opportunity takes one packet whole, so that none is left over when the queue is empty; it
/// is idle from then on.
#[test]
fn red_forgets_its_average_while_no_opportunity_is_needed() {
    let red = RedParameters { weight: "100%".parse().unwrap(), ..RedParameters::default() };
    let profile = LinkProfile {
        discipline: QueueDiscipline::Red(red),
        queue: Some(QueueLimit::Packets(Packets(100))),
        ..following(TraceMode::Opportunities)
    };
    let mut net = Net::new(with(pair(1, profile), opportunities(&[1])));
    for tag in 0..100 {
        let frame = build::with_ecn(net.udp(1500, tag), 2);
        net.send(0, 0, vnet::VirtioNetHeader::default(), &frame);
    }
    net.run_until(1000 * MS);
    assert_eq!(net.lane(0).queue_packets, 0);
    (0..20).for_each(|ping| net.send_udp((1000 + u64::from(ping) * 200) * MS, 84, ping));
    net.finish();
    assert_eq!(net.lane(0).dropped.total(), 0, "of 100 ms of idle time nothing is left");
}
