//! Announcements of flows.

use windtunnel_mesh::MeshEvent;
use windtunnel_model::Span;
use windtunnel_simlab::mesh::measure::{self, FlowSpreadLoad, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::{PLAN, SECOND, flow, flows, key, settle};

#[test]
fn a_flow_is_known_to_all_sixteen_agents_within_the_targets() {
    // Deltas wait 2 ms at the most, and mostly not at all: 18.75 starts and ends a second of each
    // agent come with 37.5 · 2 ms = 7.5 % within the time of a batch. Network: 50 µs in the
    // mean, 60 at the most.
    let span = Span::from_secs(5);
    let load = FlowSpreadLoad {
        machines: 16,
        nodes: 150,
        starts: 300,
        span,
        conditions: LinkConditions::LAN,
    };
    let result = measure::spread(&load, 5);
    assert!(result.known.0.len() > 15 * 1200, "{}", result.known.0.len());
    assert!(result.known.mean() < Span::from_micros(50 + 150), "{}", result.known.mean());
    assert!(result.known.percentile(99) <= Span::from_micros(2060));
    assert_eq!(result.counters.repairs, 0);
    // 1 Gbit/s: a thousandth is 1 Mbit/s, QUIC's 30 bytes a datagram included.
    let bits = result.sent.bits + 8 * 30 * result.sent.datagrams;
    assert!(bits < 1_000_000, "{bits} bit/s");
}

#[test]
fn lost_announcements_are_repaired_and_cost_no_more_than_a_quarter_of_a_second() {
    let span = Span::from_secs(5);
    let conditions = LinkConditions::LAN.losing(20_000);
    let load = FlowSpreadLoad { machines: 16, nodes: 150, starts: 300, span, conditions };
    let result = measure::spread(&load, 6);
    assert!(result.counters.repairs > 0);
    assert!(result.known.percentile(95) < Span::from_millis(5), "{}", result.known.percentile(95));
    assert!(result.known.percentile(99) < Span::from_millis(50), "{}", result.known.percentile(99));
    let worst = result.known.0.last().copied().expect("flows");
    assert!(worst < Span::from_millis(250), "{worst}");
}

#[test]
fn a_flow_is_announced_only_to_its_audience() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[2]);
    world.run_for(Span::from_millis(1));
    assert_eq!([1, 2, 3].map(|machine| flows(&world, machine)), [0, 1, 0]);
    let sent = |world: &MeshWorld| {
        let mesh = world.machines()[0].mesh.as_ref().expect("it lives");
        mesh.counters().flows.datagrams
    };
    let before = sent(&world);
    world.set_flow(0, RUN, key(1), flow(), &[2]);
    assert_eq!(sent(&world), before, "nothing is new");
    world.end_flow(0, RUN, key(1));
    world.run_for(Span::from_millis(3));
    assert_eq!((flows(&world, 2), sent(&world)), (0, before + 1));
}

#[test]
fn the_first_change_leaves_at_once_and_the_next_together_after_the_time_of_a_batch() {
    let still =
        LinkConditions { delay: Span::from_micros(50), jitter: Span::ZERO, ..LinkConditions::LAN };
    let mut world = measure::in_run(2, 1, still);
    world.run_for(SECOND);
    let begin = world.now();
    world.take_events();
    for number in 0..5 {
        world.set_flow(0, RUN, key(number), flow(), &[1]);
    }
    world.run_for(Span::from_millis(5));
    let reported: Vec<_> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            MeshEvent::Flows { changes, .. } => Some((report.at.since(begin), changes.len())),
            _ => None,
        })
        .collect();
    // Clocks differ by up to 200 ppm: 0.4 µs of 2 ms.
    assert_eq!(reported.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(reported[0].0, Span::from_micros(50));
    let late = reported[1].0.as_nanos().abs_diff(2_050_000);
    assert!(late < 500, "{}", reported[1].0);
}

#[test]
fn a_late_joiner_receives_ten_thousand_flows() {
    let mut world = MeshWorld::of(2, 1, LinkConditions::LAN.losing(10_000));
    world.join_run(0, RUN, PLAN, &[0, 1]);
    for number in 0..10_000 {
        world.set_flow(0, RUN, key(number), flow(), &[1]);
    }
    world.join_run(1, RUN, PLAN, &[0, 1]);
    let took = settle(&mut world);
    assert_eq!(flows(&world, 1), 10_000);
    // 10 000 entries of 18 bytes are 160 datagrams, eight each 2 ms.
    assert!(took < SECOND, "{took}");
}
