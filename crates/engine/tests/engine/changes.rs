//! Changes of a running network.

use windtunnel_engine::LostReports;
use windtunnel_model::plan::{EventAction, PartitionMode};
use windtunnel_model::profile::{Jitter, PropertySetting};
use windtunnel_model::{DropReason, LinkPatch, LinkProfile, Rate, Span};

use crate::support::{MS, Net, Topology, US, delayed, pair, partition, path, rated, up};

fn rate(bits_per_second: u64) -> LinkPatch {
    let rate = Rate::from_bits_per_second(bits_per_second).map(PropertySetting::To);
    LinkPatch { rate, ..LinkPatch::default() }
}

fn latency(millis: u64) -> LinkPatch {
    LinkPatch { latency: Some(Span::from_millis(millis)), ..LinkPatch::default() }
}

#[test]
fn a_transmission_keeps_its_end_and_waiting_packets_get_the_new_rate() {
    let mut net = Net::new(pair(1, rated(8_000_000)));
    (0..3).for_each(|tag| net.send_udp(0, 1000, tag));
    net.patch(MS / 2, up(0), rate(800_000));
    net.finish();
    assert_eq!(net.times(), [MS, 11 * MS, 21 * MS]);
    assert_eq!(net.engine.profile(up(0)).rate, Rate::from_bits_per_second(800_000));
}

#[test]
fn without_a_rate_the_queue_leaves_behind_what_is_in_transmission() {
    let mut net = Net::new(pair(1, rated(8_000_000)));
    (0..4).for_each(|tag| net.send_udp(0, 1000, tag));
    let patch = LinkPatch { rate: Some(PropertySetting::Default), ..LinkPatch::default() };
    net.patch(MS / 2, up(0), patch);
    net.send_udp(MS / 2, 1000, 4);
    net.finish();
    assert_eq!(net.arrivals(), [(MS, 0), (MS, 1), (MS, 2), (MS, 3), (MS, 4)]);
}

#[test]
fn a_shorter_latency_does_not_let_packets_overtake() {
    let mut net = Net::new(pair(1, delayed(Span::from_millis(10))));
    net.send_udp(0, 100, 0);
    net.patch(MS, up(0), latency(2));
    net.send_udp(MS, 100, 1);
    net.send_udp(9 * MS, 100, 2);
    net.patch(10 * MS, up(0), latency(5));
    net.send_udp(10 * MS, 100, 3);
    net.finish();
    assert_eq!(net.arrivals(), [(10 * MS, 0), (10 * MS, 1), (11 * MS, 2), (15 * MS, 3)]);
}

#[test]
fn a_link_that_goes_down_delivers_what_it_has_accepted() {
    let mut net =
        Net::new(pair(1, LinkProfile { latency: Span::from_millis(5), ..rated(8_000_000) }));
    (0..3).for_each(|tag| net.send_udp(0, 1000, tag));
    net.set_up(MS / 2, up(0), false);
    assert!(!net.engine.is_up(up(0)));
    net.send_udp(MS, 1000, 3);
    net.set_up(20 * MS, up(0), true);
    net.send_udp(20 * MS, 1000, 4);
    net.finish();
    assert_eq!(net.tags(), [0, 1, 2, 4]);
    assert_eq!(net.lane(0).dropped[DropReason::Down], 1);
    net.check_conservation();
}

#[test]
fn a_partition_cuts_links_between_groups_only_and_is_distinct_from_down() {
    let mut plan = Topology::new(1);
    let (a, b, c) = (plan.node("a"), plan.node("b"), plan.node("c"));
    for ends in [[a, b], [b, c]] {
        plan.link(ends, [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut net = Net::new(plan.build());
    net.set_up(0, up(1), false);
    net.apply(0, &partition(vec![vec![a], vec![b]]));
    let is_up =
        |net: &Net, link| [net.engine.is_up(up(link)), net.engine.is_up(up(link).reverse())];
    assert_eq!((is_up(&net, 0), is_up(&net, 1)), ([false; 2], [false, true]));
    net.send_udp(1, 100, 0);
    assert_eq!(net.lane(0).dropped[DropReason::Partition], 1);
    net.apply(2, &EventAction::Heal);
    assert_eq!((is_up(&net, 0), is_up(&net, 1)), ([true; 2], [false, true]));
}

#[test]
fn a_lane_carries_packets_only_if_no_cause_holds_it_cut() {
    let mut plan = Topology::new(1);
    let (a, b) = (plan.node("a"), plan.node("b"));
    plan.link([a, b], [LinkProfile::default(), LinkProfile::default()]);
    let mut net = Net::new(plan.build());
    let lane = up(0);
    let flap = |up| EventAction::Flap { lanes: vec![lane], up };
    let groups = vec![vec![a], vec![b]];
    let is_up = |net: &Net| [net.engine.is_up(up(0)), net.engine.is_up(up(0).reverse())];
    // Down, parted and twice in the dark of a flap; each ends in another order than it began.
    net.set_up(MS, up(0), false);
    net.apply(MS, &partition(groups.clone()));
    net.apply(MS, &flap(false));
    net.apply(2 * MS, &flap(false));
    assert_eq!(is_up(&net), [false, false]);
    net.apply(3 * MS, &EventAction::Heal);
    assert_eq!(is_up(&net), [false, true], "healing brings up neither a link nor a flap");
    net.set_up(4 * MS, up(0), true);
    net.apply(5 * MS, &flap(true));
    assert_eq!(is_up(&net), [false, true], "one of two flaps still holds it");
    net.send_udp(5 * MS, 100, 0);
    assert_eq!(net.lane(0).dropped[DropReason::Down], 1);
    net.apply(6 * MS, &flap(true));
    assert_eq!(is_up(&net), [true, true]);
    // The end of a flap does not bring up what is down, nor does `up` end a partition.
    net.set_up(7 * MS, up(0), false);
    net.apply(7 * MS, &flap(false));
    net.apply(7 * MS, &partition(groups));
    net.apply(8 * MS, &flap(true));
    assert_eq!(is_up(&net), [false, false]);
    net.set_up(9 * MS, up(0), true);
    assert_eq!(is_up(&net), [false, false]);
    net.apply(10 * MS, &EventAction::Heal);
    assert_eq!(is_up(&net), [true, true]);
    net.send_udp(10 * MS, 100, 1);
    net.finish();
    assert_eq!(net.tags(), [1]);
    net.check_conservation();
}

#[test]
fn a_partition_of_one_way_leaves_the_way_back_open() {
    let mut plan = Topology::new(1);
    let (a, b, c) = (plan.node("a"), plan.node("b"), plan.node("c"));
    for ends in [[a, b], [b, a], [b, c]] {
        plan.link(ends, [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut net = Net::new(plan.build());
    let one_way = |groups| EventAction::Partition { groups, cut: PartitionMode::OneWay };
    net.apply(0, &one_way(vec![vec![a], vec![b]]));
    let is_up =
        |net: &Net, link| [net.engine.is_up(up(link)), net.engine.is_up(up(link).reverse())];
    assert_eq!(is_up(&net, 0), [false, true], "a to b, named from a");
    assert_eq!(is_up(&net, 1), [true, false], "a to b, named from b");
    assert_eq!(is_up(&net, 2), [true, true]);
    // Another partition takes the place of the first.
    net.apply(1, &one_way(vec![vec![b], vec![a, c]]));
    assert_eq!(is_up(&net, 0), [true, false]);
    assert_eq!(is_up(&net, 2), [false, true]);
    net.apply(2, &EventAction::Heal);
    assert!((0..3).all(|link| is_up(&net, link) == [true, true]));
}

#[test]
fn changes_lose_no_packet_by_themselves() {
    let mut net = Net::new(path(1, vec![rated(8_000_000), delayed(Span::from_millis(3))]));
    for step in 0..50u32 {
        let at = u64::from(step) * 900 * US;
        net.send_udp(at, 600, step);
        let patch = match step % 5 {
            0 => rate(4_000_000 + u64::from(step) * 300_000),
            1 => LinkPatch { rate: Some(PropertySetting::Default), ..LinkPatch::default() },
            2 => latency(u64::from(step % 7)),
            3 => LinkPatch {
                jitter: Some(Jitter { spread: Span::from_millis(1), ..Jitter::default() }),
                ..LinkPatch::default()
            },
            _ => rate(1_000_000),
        };
        net.patch(at, up(step % 2), patch);
    }
    net.finish();
    assert_eq!(net.tags(), (0..50).collect::<Vec<_>>());
    assert!(net.times().is_sorted());
    net.check_conservation();
}

#[test]
fn lateness_at_a_router_is_reported_and_does_not_add_up() {
    let mut net =
        Net::new(path(1, vec![delayed(Span::from_millis(3)), delayed(Span::from_millis(4))]));
    net.send_udp(0, 100, 0);
    let late = |nanos| windtunnel_model::Time::from_nanos(nanos);
    net.engine.handle_timeout(late(3 * MS + 700));
    assert_eq!(net.engine.poll_handoff(), Some((up(0), Span::from_nanos(700))));
    assert_eq!(net.engine.poll_timeout(), Some(late(7 * MS)));
    net.engine.handle_timeout(late(7 * MS + 900));
    let departure = net.engine.poll_output().unwrap();
    assert_eq!(departure.intended, late(7 * MS));
    assert_eq!(net.engine.poll_handoff(), None);
}

#[test]
fn reports_that_are_not_polled_are_kept_up_to_a_bound_and_then_counted() {
    let mut net = Net::new(path(1, vec![LinkProfile::default(), LinkProfile::default()]));
    (0..4096).for_each(|at| net.apply(at, &EventAction::Reroute));
    assert_eq!(net.engine.lost_reports(), LostReports { events: 0, handoffs: 0 });
    (4096..4099).for_each(|at| net.apply(at, &EventAction::Reroute));
    assert_eq!(net.engine.lost_reports(), LostReports { events: 3, handoffs: 0 });
    assert_eq!(std::iter::from_fn(|| net.engine.poll_event()).count(), 4096);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_that_goes_back_is_refused() {
    let mut net = Net::new(pair(1, LinkProfile::default()));
    net.run_until(5);
    net.run_until(4);
}
