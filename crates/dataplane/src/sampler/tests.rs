//! Tests of the sampler.

use windtunnel_engine::EngineLimits;
use windtunnel_model::plan::EventAction;

use super::*;

/// Lanes: 0 from a to b, 1 back. The expectation has the samples of lane 0 kept.
const FILE: &str = "
nodes: {a: {}, b: {}}
links: [{between: [a, b], rate: 8mbit}]
expect: [{link: a--b, direction: up, rate: {max: 8mbit}}]
";

struct Bench {
    plan: Plan,
    engine: Engine,
    sampler: Sampler,
}

impl Bench {
    /// The run began at 7 s of the clock.
    fn new() -> Self {
        let plan = crate::testing::plan(FILE);
        let engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
        let mut sampler = Sampler::new(&plan, LATE);
        sampler.departed(lane(0), at(0), at(900));
        sampler.count_truncated();
        sampler.begin(at(0));
        Bench { plan, engine, sampler }
    }

    fn sample(&mut self, millis: u64, drops: u64) -> Option<u64> {
        let sampled = self.sampler.sample(at(millis), &mut self.engine, || drops);
        sampled.map(|(end, rows)| {
            assert_eq!(rows.len(), 2);
            end.as_nanos() / 1_000_000
        })
    }

    fn finish(mut self, millis: u64) -> Tally {
        self.sampler.finish(at(millis), &mut self.engine, &self.plan, 0).1
    }
}

const LATE: Span = Span::from_millis(1);

fn at(millis: u64) -> Time {
    Time::from_nanos(7_000_000_000) + Span::from_millis(millis)
}

fn lane(index: usize) -> Lane {
    Lane::from_index(index)
}

#[test]
fn samples_are_taken_each_tenth_of_a_second_also_after_a_late_one() {
    let mut bench = Bench::new();
    assert_eq!(bench.sampler.next(), Some(at(100)));
    assert_eq!(bench.sample(99, 0), None);
    assert_eq!(bench.sample(101, 0), Some(101));
    assert_eq!(bench.sampler.next(), Some(at(200)));
    // It covers more than one interval, and the next stays on the grid.
    assert_eq!(bench.sample(350, 0), Some(350));
    assert_eq!(bench.sampler.next(), Some(at(400)));
}

#[test]
fn nothing_is_sampled_before_the_run_begins() {
    let plan = crate::testing::plan(FILE);
    let mut engine = Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 });
    let mut sampler = Sampler::new(&plan, LATE);
    assert_eq!(sampler.next(), None);
    assert!(sampler.sample(at(500), &mut engine, || 0).is_none());
}

#[test]
fn samples_from_before_the_run_are_discarded() {
    let tally = Bench::new().finish(100);
    assert_eq!((tally.departures.packets(), tally.late, tally.truncated), (0, 0, 0));
}

#[test]
fn lateness_is_from_the_intended_time_to_the_time_when_the_kernel_had_the_packet() {
    let mut bench = Bench::new();
    bench.sampler.departed(lane(0), at(10), at(10));
    bench.sampler.departed(lane(0), at(20), at(23));
    bench.sampler.departed(lane(1), at(30), at(31));
    let (_, rows) = bench.sampler.sample(at(100), &mut bench.engine, || 0).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.lateness_max_ns).collect::<Vec<_>>(),
        [3_000_000, 1_000_000]
    );
    // The next interval begins with nothing.
    let (_, rows) = bench.sampler.sample(at(200), &mut bench.engine, || 0).unwrap();
    assert_eq!(rows[0].lateness_max_ns, 0);
    let tally = bench.finish(250);
    // Exactly the bound is not late.
    assert_eq!((tally.departures.packets(), tally.late), (3, 1));
    let seen: Vec<u64> = tally.lanes.iter().map(|lane| lane.lateness.packets()).collect();
    assert_eq!(seen, [2, 1]);
}

#[test]
fn intervals_with_late_packets_are_kept_with_the_lane_of_the_latest() {
    let mut bench = Bench::new();
    bench.sampler.departed(lane(0), at(10), at(12));
    bench.sampler.departed(lane(1), at(10), at(14));
    bench.sample(100, 0);
    bench.sample(200, 0);
    bench.sampler.departed(lane(1), at(210), at(215));
    bench.sample(300, 0);
    let tally = bench.finish(300);
    let end = |millis| Time::ZERO + Span::from_millis(millis);
    let late =
        |millis, max| LateInterval { at: end(millis), lane: lane(1), max: Span::from_millis(max) };
    assert_eq!(tally.late_intervals, [late(100, 4), late(300, 5)]);
    assert_eq!(tally.lanes[0].late, Some((end(100), end(100))));
    assert_eq!(tally.lanes[1].late, Some((end(100), end(300))));
}

#[test]
fn of_too_many_late_intervals_the_least_is_forgotten_and_the_last_is_kept() {
    let mut bench = Bench::new();
    for tenth in 1..=1_001 {
        let late = if tenth == 500 { 2 } else { 3 };
        let sent = at(tenth * 100 - 50);
        bench.sampler.departed(lane(0), sent, sent + Span::from_millis(late));
        bench.sample(tenth * 100, 0);
    }
    let intervals = bench.finish(100_100).late_intervals;
    assert_eq!(intervals.len(), 1_000);
    let ends: Vec<u64> = intervals.iter().map(|it| it.at.as_nanos() / 100_000_000).collect();
    assert!(!ends.contains(&500));
    assert_eq!((ends[0], ends[999]), (1, 1_001));
}

#[test]
fn lateness_at_inner_hops_counts_for_its_lane_and_not_as_a_departure() {
    let mut bench = Bench::new();
    bench.sampler.handed_off(lane(1), Span::from_millis(2));
    let tally = bench.finish(100);
    assert_eq!((tally.departures.packets(), tally.late), (0, 0));
    assert_eq!(tally.lanes[1].lateness.packets(), 1);
}

#[test]
fn drops_of_the_kernel_are_kept_with_the_interval_in_which_they_were_seen() {
    let mut bench = Bench::new();
    bench.sample(100, 0);
    bench.sample(200, 7);
    let end = Time::ZERO + Span::from_millis(200);
    assert_eq!(bench.finish(210).kernel_drops, [(end, 7)]);
}

#[test]
fn a_change_of_a_lane_ends_a_phase_with_the_lateness_until_then() {
    let mut bench = Bench::new();
    bench.sampler.departed(lane(0), at(10), at(12));
    bench.sampler.end_phase(at(50), lane(0), &bench.engine);
    let change = windtunnel_model::plan::LinkChange {
        patches: vec![(
            lane(0),
            windtunnel_model::LinkPatch {
                latency: Some(Span::from_millis(3)),
                ..Default::default()
            },
        )],
        state: Vec::new(),
    };
    bench.engine.apply(at(50), &EventAction::Link(change));
    bench.sampler.departed(lane(0), at(60), at(60));
    bench.sampler.departed(lane(0), at(70), at(70));
    let tally = bench.finish(100);
    let phases: Vec<_> = tally.lanes[0]
        .phases
        .iter()
        .map(|it| (it.until.as_nanos() / 1_000_000, it.asked.latency, it.lateness.packets()))
        .collect();
    assert_eq!(phases, [(50, Span::ZERO, 1), (100, Span::from_millis(3), 2)]);
    assert_eq!(tally.lanes[0].lateness.packets(), 3, "of both together");
    assert!(tally.lanes[1].phases.is_empty());
}

#[test]
fn all_samples_are_kept_only_of_directions_that_expectations_name() {
    let mut bench = Bench::new();
    bench.sample(100, 0);
    bench.sample(200, 0);
    let tally = bench.finish(250);
    let series = tally.lanes[0].series.as_ref().unwrap();
    assert_eq!(series.0.len(), 3, "the last, shorter one included");
    assert_eq!(series.0[0].rate_bit_per_s, Some(8_000_000));
    assert!(tally.lanes[1].series.is_none());
}

#[test]
fn what_is_late_or_dropped_after_the_end_of_the_run_does_not_count() {
    let mut bench = Bench::new();
    bench.sampler.departed(lane(0), at(10), at(12));
    bench.sample(100, 3);
    bench.sampler.end(at(150), 2, &bench.engine);
    // The run is torn down: the kernel drops resets of thousands of connections.
    bench.sampler.departed(lane(0), at(160), at(900));
    bench.sampler.count_truncated();
    bench.sample(1_000, 5_000);
    bench.sampler.end(at(1_050), 7, &bench.engine);
    let tally = bench.finish(1_100);
    assert_eq!((tally.departures.packets(), tally.late), (1, 1));
    assert_eq!(tally.lanes[0].lateness.packets(), 1);
    let drops: Vec<(u64, u64)> =
        tally.kernel_drops.iter().map(|(at, drops)| (at.as_nanos() / 1_000_000, *drops)).collect();
    assert_eq!(drops, [(100, 3), (150, 2)]);
    assert_eq!((tally.truncated, tally.late_intervals.len()), (0, 1));
}
