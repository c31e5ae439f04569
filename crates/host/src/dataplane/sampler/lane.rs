//! What one lane did since the last sample, and in all.

use windtunnel_engine::{Drops, Engine, LaneCounters};
use windtunnel_model::{Lane, Rate, Span, Time};
use windtunnel_trace::lateness::Lateness;
use windtunnel_trace::sample::Row;
use windtunnel_trace::series::{Sample, Series};

use super::super::phase::{LanePhase, Phases};
use super::super::tally::LaneResult;

/// What is measured on a lane.
#[derive(Debug)]
pub(super) struct LaneSampler {
    /// Of the present phase.
    pub(super) lateness: Lateness,
    pub(super) phases: Phases,
    /// In the current interval.
    pub(super) lateness_max: Span,
    /// The ends of the first and the last interval in which packets were late.
    pub(super) late: Option<(Time, Time)>,
    pub(super) last: Row,
    /// Drops until then.
    pub(super) last_dropped: Drops,
    /// All samples, where an expectation needs them.
    pub(super) series: Option<Series>,
}

impl LaneSampler {
    pub(super) fn finish(self, lane: Lane, end: Time, engine: &Engine) -> LaneResult {
        let phases = self.phases.finish(phase_of(end, engine, lane, self.lateness.clone()));
        let mut lateness = Lateness::new();
        phases.iter().for_each(|phase| lateness.add(&phase.lateness));
        LaneResult {
            counters: *engine.lane(lane),
            lateness: if phases.is_empty() { self.lateness } else { lateness },
            late: self.late,
            phases,
            series: self.series,
        }
    }

    /// Keeps a sample where an expectation needs it.
    pub(super) fn keep(&mut self, at: Time, row: Row, engine: &Engine, lane: Lane) {
        let Some(series) = &mut self.series else { return };
        let dropped = engine.lane(lane).dropped;
        let since = dropped.iter().zip(self.last_dropped.iter());
        let since = since.map(|((why, now), (_, before))| (why.name().into(), now - before));
        series.0.push(Sample {
            at,
            row,
            dropped: since.filter(|(_, packets)| *packets > 0).collect(),
            rate_bit_per_s: engine.profile(lane).rate.map(Rate::bits_per_second),
        });
        self.last_dropped = dropped;
    }
}

pub(super) fn phase_of(until: Time, engine: &Engine, lane: Lane, lateness: Lateness) -> LanePhase {
    let (asked, counters) = (engine.profile(lane).clone(), *engine.lane(lane));
    LanePhase { until, asked, counters, lateness }
}

/// Totals of a lane as a row.
pub(super) fn row_of(counters: &LaneCounters) -> Row {
    Row {
        offered_packets: counters.offered_packets,
        offered_bytes: counters.offered_bytes,
        delivered_packets: counters.delivered_packets,
        delivered_bytes: counters.delivered_bytes,
        delivered_wire_bytes: counters.delivered_wire_bytes,
        dropped_packets: counters.dropped.total(),
        marked_packets: counters.marked,
        queue_packets: counters.queue_packets,
        queue_bytes: counters.queue_bytes,
        ..Row::default()
    }
}

/// What happened between two totals; queue lengths are those of the later one.
pub(super) fn difference(later: &Row, earlier: &Row) -> Row {
    Row {
        offered_packets: later.offered_packets - earlier.offered_packets,
        offered_bytes: later.offered_bytes - earlier.offered_bytes,
        delivered_packets: later.delivered_packets - earlier.delivered_packets,
        delivered_bytes: later.delivered_bytes - earlier.delivered_bytes,
        delivered_wire_bytes: later.delivered_wire_bytes - earlier.delivered_wire_bytes,
        dropped_packets: later.dropped_packets - earlier.dropped_packets,
        marked_packets: later.marked_packets - earlier.marked_packets,
        ..*later
    }
}
