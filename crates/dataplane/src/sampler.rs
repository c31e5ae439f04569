//! Counts over time: rows for `links.csv`, lateness, and the totals of a run.

mod lane;

use windtunnel_engine::{Engine, LostReports};
use windtunnel_model::expect::ExpectationClaim;
use windtunnel_model::{DropReason, Lane, Plan, PortId, RouterId, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::sample::LinkSampleRow;
use windtunnel_trace::series::LinkSampleSeries;

use super::meter::DeliveryMeter;
use super::nats::NatTally;
use super::phase::LanePhaseHistory;
use super::services::RedirectionTotals;
use super::tally::{LateInterval, Tally};
use lane::{LaneSampler, difference, phase_of, row_of};

/// Collects what the loop measures.
#[derive(Debug)]
pub(super) struct Sampler {
    origin: Option<Time>,
    next: Time,
    lanes: Vec<LaneSampler>,
    departures: LatenessHistogram,
    late_above: Span,
    late_intervals: Vec<LateInterval>,
    kernel_drops: Vec<(Time, u64)>,
    truncated: u64,
    meter: DeliveryMeter,
    /// Phases of all directions.
    phases: usize,
    /// What the engine had lost when the run was over.
    at_end: Option<UnmodelledLoss>,
}

/// What was lost outside of the model.
#[derive(Debug, Clone)]
struct UnmodelledLoss {
    truncated: u64,
    reports: LostReports,
    /// By lane: packets for which there was no memory.
    memory: Vec<u64>,
}

impl Sampler {
    pub(super) fn new(plan: &Plan, late_above: Span) -> Self {
        let watched = |index| {
            let lanes = plan.expectations.iter().map(|expectation| &expectation.claim);
            lanes
                .into_iter()
                .any(|claim| matches!(claim, ExpectationClaim::Link { lane, .. } if lane.index() == index))
        };
        let lane = |index| LaneSampler {
            lateness: LatenessHistogram::new(),
            phases: LanePhaseHistory::default(),
            lateness_max: Span::ZERO,
            late: None,
            last: LinkSampleRow::default(),
            series: watched(index).then(LinkSampleSeries::default),
        };
        Sampler {
            origin: None,
            next: Time::MAX,
            lanes: (0..plan.links.len() * 2).map(lane).collect(),
            departures: LatenessHistogram::new(),
            late_above,
            late_intervals: Vec::new(),
            kernel_drops: Vec::new(),
            truncated: 0,
            meter: DeliveryMeter::new(plan),
            phases: 0,
            at_end: None,
        }
    }

    /// Starts counting from zero at `origin`.
    pub(super) fn begin(&mut self, origin: Time) {
        for lane in &mut self.lanes {
            lane.lateness.clear();
            lane.phases.clear();
            (lane.lateness_max, lane.late) = (Span::ZERO, None);
            lane.last = LinkSampleRow::default();
            lane.series = lane.series.is_some().then(LinkSampleSeries::default);
        }
        self.meter.begin();
        self.departures.clear();
        self.late_intervals.clear();
        self.kernel_drops.clear();
        (self.truncated, self.phases) = (0, 0);
        self.origin = Some(origin);
        self.next = origin + INTERVAL;
    }

    /// The run is over `at` a time. What is counted goes on; what is late or lost does not.
    /// `kernel_drops` as in [`Sampler::sample`].
    pub(super) fn end(&mut self, at: Time, kernel_drops: u64, engine: &Engine) {
        if self.at_end.is_some() {
            return;
        }
        self.note_drops(Time::from_nanos(at.since(self.origin()).as_nanos()), kernel_drops);
        self.at_end = Some(self.lost(engine));
    }

    fn lost(&self, engine: &Engine) -> UnmodelledLoss {
        let memory = |lane| engine.lane(Lane::from_index(lane)).dropped[DropReason::Memory];
        UnmodelledLoss {
            // What is too long for the engine is as lost as what is too long for the ring.
            truncated: self.truncated + engine.refused_frames(),
            reports: engine.lost_reports(),
            memory: (0..self.lanes.len()).map(memory).collect(),
        }
    }

    fn note_drops(&mut self, at: Time, drops: u64) {
        if drops > 0 && self.at_end.is_none() {
            self.kernel_drops.push((at, drops));
        }
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
        if self.at_end.is_some() {
            return;
        }
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
        if self.at_end.is_some() {
            return;
        }
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
    ) -> Option<(Time, Vec<LinkSampleRow>)> {
        let origin = self.origin.filter(|_| now >= self.next)?;
        // A late sample covers more than one interval; the next stays on the grid.
        while self.next <= now {
            self.next += INTERVAL;
        }
        Some(self.take(Time::from_nanos(now.since(origin).as_nanos()), engine, kernel_drops()))
    }

    fn take(&mut self, at: Time, engine: &mut Engine, drops: u64) -> (Time, Vec<LinkSampleRow>) {
        self.note_drops(at, drops);
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
            let row = LinkSampleRow {
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

    /// When counting started, in the time of the engine.
    pub(super) fn origin(&self) -> Time {
        self.origin.unwrap_or(Time::ZERO)
    }

    /// The last, possibly shorter, interval and the totals.
    pub(super) fn finish(
        mut self,
        now: Time,
        engine: &mut Engine,
        plan: &Plan,
        kernel_drops: u64,
    ) -> (Option<(Time, Vec<LinkSampleRow>)>, Tally) {
        let last = self.origin.map(|origin| {
            self.take(Time::from_nanos(now.since(origin).as_nanos()), engine, kernel_drops)
        });
        let late = self.departures.later_than(self.late_above);
        let end = last.as_ref().map_or(Time::ZERO, |(at, _)| *at);
        let lost = self.at_end.take().unwrap_or_else(|| self.lost(engine));
        let lanes = self.lanes.into_iter().zip(lost.memory).enumerate();
        let lanes = lanes.map(|(index, (lane, no_memory))| {
            lane.finish(Lane::from_index(index), end, no_memory, engine)
        });
        let routers = (0..plan.routers.len()).map(RouterId::from_index);
        let tally = Tally {
            lanes: lanes.collect(),
            routers: routers.map(|router| *engine.router(router)).collect(),
            services: RedirectionTotals::of(engine, plan),
            nats: NatTally::take(engine, plan, self.origin.unwrap_or(Time::ZERO)),
            flows: self.meter.finish(),
            departures: self.departures,
            late,
            late_intervals: self.late_intervals,
            kernel_drops: self.kernel_drops,
            truncated: lost.truncated,
            lost_reports: lost.reports,
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
mod tests;
