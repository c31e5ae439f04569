//! Counts over time: rows for `links.csv`, lateness, and the totals of a run.

mod lane;

use windtunnel_engine::{Drops, Engine};
use windtunnel_model::expect::Claim;
use windtunnel_model::{Lane, Plan, PortId, RouterId, Span, Time};
use windtunnel_trace::lateness::Lateness;
use windtunnel_trace::sample::Row;
use windtunnel_trace::series::Series;

use super::meter::Meter;
use super::phase::Phases;
use super::tally::{LateInterval, Tally};
use lane::{LaneSampler, difference, phase_of, row_of};

/// Collects what the loop measures.
#[derive(Debug)]
pub(super) struct Sampler {
    origin: Option<Time>,
    next: Time,
    lanes: Vec<LaneSampler>,
    departures: Lateness,
    late_above: Span,
    late_intervals: Vec<LateInterval>,
    kernel_drops: Vec<(Time, u64)>,
    truncated: u64,
    meter: Meter,
    /// Phases of all directions.
    phases: usize,
}

impl Sampler {
    pub(super) fn new(plan: &Plan, late_above: Span) -> Self {
        let watched = |index| {
            let lanes = plan.expectations.iter().map(|expectation| &expectation.claim);
            lanes
                .into_iter()
                .any(|claim| matches!(claim, Claim::Link { lane, .. } if lane.index() == index))
        };
        let lane = |index| LaneSampler {
            lateness: Lateness::new(),
            phases: Phases::default(),
            lateness_max: Span::ZERO,
            late: None,
            last: Row::default(),
            last_dropped: Drops::default(),
            series: watched(index).then(Series::default),
        };
        Sampler {
            origin: None,
            next: Time::MAX,
            lanes: (0..plan.links.len() * 2).map(lane).collect(),
            departures: Lateness::new(),
            late_above,
            late_intervals: Vec::new(),
            kernel_drops: Vec::new(),
            truncated: 0,
            meter: Meter::new(plan),
            phases: 0,
        }
    }

    /// Starts counting from zero at `origin`.
    pub(super) fn begin(&mut self, origin: Time) {
        for lane in &mut self.lanes {
            lane.lateness.clear();
            lane.phases.clear();
            (lane.lateness_max, lane.late) = (Span::ZERO, None);
            lane.last = Row::default();
            lane.last_dropped = Drops::default();
            lane.series = lane.series.is_some().then(Series::default);
        }
        self.meter.begin();
        self.departures.clear();
        self.late_intervals.clear();
        self.kernel_drops.clear();
        (self.truncated, self.phases) = (0, 0);
        self.origin = Some(origin);
        self.next = origin + INTERVAL;
    }

    /// When the next sample is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.origin.map(|_| self.next)
    }

    pub(super) fn count_truncated(&mut self) {
        self.truncated += 1;
    }

    /// A packet intended for `intended` was given to the kernel at `sent`.
    pub(super) fn departed(&mut self, lane: Lane, intended: Time, sent: Time) {
        let lateness = sent.since(intended);
        self.departures.record(lateness);
        self.handed_off(lane, lateness);
    }

    /// The properties of a lane are about to change at `at`. Beyond so many phases the last one is
    /// that of all changes that follow.
    pub(super) fn end_phase(&mut self, at: Time, lane: Lane, engine: &Engine) {
        let Some(origin) = self.origin.filter(|_| self.phases < PHASES_MAX) else { return };
        let sampler = &mut self.lanes[lane.index()];
        let lateness = std::mem::take(&mut sampler.lateness);
        let phase = phase_of(Time::ZERO + at.since(origin), engine, lane, lateness);
        self.phases += usize::from(sampler.phases.end(phase));
    }

    /// A frame was given to a node.
    pub(super) fn delivered(&mut self, port: PortId, frame: &[u8]) {
        self.meter.delivered(port, frame);
    }

    /// Takes the engine's own lateness at inner hops. Its `now` was `behind` the present.
    pub(super) fn take_handoffs(&mut self, engine: &mut Engine, behind: Span) {
        while let Some((lane, lateness)) = engine.poll_handoff() {
            self.handed_off(lane, lateness + behind);
        }
    }

    fn handed_off(&mut self, lane: Lane, lateness: Span) {
        let lane = &mut self.lanes[lane.index()];
        lane.lateness.record(lateness);
        lane.lateness_max = lane.lateness_max.max(lateness);
    }

    /// The rows of the interval that has ended, if one has, with its end after the beginning. `now`
    /// is what the engine has caught up with: a later reading would count a longer interval
    /// than its packets. `kernel_drops` are packets that the kernel dropped since the last sample.
    pub(super) fn sample(
        &mut self,
        now: Time,
        engine: &mut Engine,
        kernel_drops: impl FnOnce() -> u64,
    ) -> Option<(Time, Vec<Row>)> {
        let origin = self.origin.filter(|_| now >= self.next)?;
        // A late sample covers more than one interval; the next stays on the grid.
        while self.next <= now {
            self.next += INTERVAL;
        }
        Some(self.take(Time::from_nanos(now.since(origin).as_nanos()), engine, kernel_drops()))
    }

    fn take(&mut self, at: Time, engine: &mut Engine, drops: u64) -> (Time, Vec<Row>) {
        if drops > 0 {
            self.kernel_drops.push((at, drops));
        }
        let mut worst: Option<LateInterval> = None;
        let mut rows = Vec::with_capacity(self.lanes.len());
        for (index, sampler) in self.lanes.iter_mut().enumerate() {
            let lane = Lane::from_index(index);
            let max = std::mem::take(&mut sampler.lateness_max);
            if max > self.late_above {
                sampler.late = Some((sampler.late.map_or(at, |(first, _)| first), at));
                if worst.is_none_or(|worst| max > worst.max) {
                    worst = Some(LateInterval { at, lane, max });
                }
            }
            let (queue_max_packets, queue_max_bytes) = engine.take_queue_peak(lane);
            let total = row_of(engine.lane(lane));
            let row = Row {
                lateness_max_ns: max.as_nanos(),
                queue_max_packets,
                queue_max_bytes,
                ..difference(&total, &sampler.last)
            };
            sampler.last = total;
            sampler.keep(at, row, engine, lane);
            rows.push(row);
        }
        self.meter.sample(at);
        self.late_intervals.extend(worst);
        if self.late_intervals.len() > LATE_INTERVALS_MAX {
            self.drop_late_interval();
        }
        (at, rows)
    }

    /// Forgets the least of the intervals between the first and the last.
    fn drop_late_interval(&mut self) {
        let inner = self.late_intervals.iter().enumerate().take(LATE_INTERVALS_MAX).skip(1);
        if let Some((least, _)) = inner.min_by_key(|(_, interval)| interval.max) {
            self.late_intervals.remove(least);
        }
    }

    /// The last, possibly shorter, interval and the totals.
    pub(super) fn finish(
        mut self,
        now: Time,
        engine: &mut Engine,
        plan: &Plan,
        kernel_drops: u64,
    ) -> (Option<(Time, Vec<Row>)>, Tally) {
        let last = self.origin.map(|origin| {
            self.take(Time::from_nanos(now.since(origin).as_nanos()), engine, kernel_drops)
        });
        let late = self.departures.later_than(self.late_above);
        let end = last.as_ref().map_or(Time::ZERO, |(at, _)| *at);
        let lanes = self.lanes.into_iter().enumerate();
        let lanes = lanes.map(|(index, lane)| lane.finish(Lane::from_index(index), end, engine));
        let routers = (0..plan.routers.len()).map(RouterId::from_index);
        let tally = Tally {
            lanes: lanes.collect(),
            routers: routers.map(|router| *engine.router(router)).collect(),
            flows: self.meter.finish(),
            departures: self.departures,
            late,
            late_intervals: self.late_intervals,
            kernel_drops: self.kernel_drops,
            // What is too long for the engine is as lost as what is too long for the ring.
            truncated: self.truncated + engine.refused_frames(),
            lost_reports: engine.lost_reports(),
            ..Tally::default()
        };
        (last, tally)
    }
}

/// The grid of `links.csv`.
const INTERVAL: Span = Span::from_millis(100);
/// Of all directions together; each has a histogram of its own.
const PHASES_MAX: usize = 1000;
/// Enough to say when a run was late; the histograms have every packet.
const LATE_INTERVALS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use windtunnel_engine::Limits;

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
            let engine = Engine::new(&plan, Limits { packet_memory: 1 << 20 });
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
        let mut engine = Engine::new(&plan, Limits { packet_memory: 1 << 20 });
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
        let late = |millis, max| LateInterval {
            at: end(millis),
            lane: lane(1),
            max: Span::from_millis(max),
        };
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
        bench.engine.apply(at(50), &windtunnel_engine::NetworkChange::Links(&change));
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
}
