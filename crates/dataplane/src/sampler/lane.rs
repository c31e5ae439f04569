//! What one lane did since the last sample, and in all.

use windtunnel_engine::{Engine, LaneCounters};
use windtunnel_model::{DropReason, Lane, Rate, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::sample::LinkSampleRow;
use windtunnel_trace::series::{LinkSample, LinkSampleSeries};

use super::super::phase::{LanePhase, LanePhaseHistory};
use super::super::tally::LaneResult;

/// What is measured on a lane.
#[derive(Debug)]
pub(super) struct LaneSampler {
    /// Of the present phase.
    pub(super) lateness: LatenessHistogram,
    pub(super) phases: LanePhaseHistory,
    /// In the current interval.
    pub(super) lateness_max: Span,
    /// The ends of the first and the last interval in which packets were late.
    pub(super) late: Option<(Time, Time)>,
    pub(super) last: LinkSampleRow,
    /// All samples, where an expectation needs them.
    pub(super) series: Option<LinkSampleSeries>,
}

impl LaneSampler {
    pub(super) fn finish(
        self,
        lane: Lane,
        end: Time,
        no_memory: u64,
        engine: &Engine,
    ) -> LaneResult {
        let phases = self.phases.finish(phase_of(end, engine, lane, self.lateness.clone()));
        let mut lateness = LatenessHistogram::new();
        phases.iter().for_each(|phase| lateness.add(&phase.lateness));
        LaneResult {
            counters: *engine.lane(lane),
            lateness: if phases.is_empty() { self.lateness } else { lateness },
            late: self.late,
            no_memory,
            phases,
            series: self.series,
        }
    }

    /// Keeps a sample where an expectation needs it.
    pub(super) fn keep(&mut self, at: Time, row: LinkSampleRow, engine: &Engine, lane: Lane) {
        let Some(series) = &mut self.series else { return };
        let dropped = row.dropped().into_iter().filter(|(_, packets)| *packets > 0);
        series.0.push(LinkSample {
            at,
            row,
            dropped: dropped.collect(),
            rate_bit_per_s: engine.profile(lane).rate.map(Rate::bits_per_second),
        });
    }
}

pub(super) fn phase_of(
    until: Time,
    engine: &Engine,
    lane: Lane,
    lateness: LatenessHistogram,
) -> LanePhase {
    let (asked, counters) = (engine.profile(lane).clone(), *engine.lane(lane));
    LanePhase { until, asked, counters, lateness }
}

/// Totals of a lane as a row.
pub(super) fn row_of(counters: &LaneCounters) -> LinkSampleRow {
    let mut row = LinkSampleRow {
        offered_packets: counters.offered_packets,
        offered_bytes: counters.offered_bytes,
        delivered_packets: counters.delivered_packets,
        delivered_bytes: counters.delivered_bytes,
        delivered_wire_bytes: counters.delivered_wire_bytes,
        dropped_packets: counters.dropped.total(),
        marked_packets: counters.marked,
        queue_packets: counters.queue_packets,
        queue_bytes: counters.queue_bytes,
        ..LinkSampleRow::default()
    };
    for (why, packets) in counters.dropped.iter() {
        *match why {
            DropReason::Down => &mut row.dropped_down,
            DropReason::Partition => &mut row.dropped_partition,
            DropReason::Mtu => &mut row.dropped_mtu,
            DropReason::Loss => &mut row.dropped_loss,
            DropReason::QueueFull => &mut row.dropped_queue_full,
            DropReason::Aqm => &mut row.dropped_aqm,
            DropReason::Memory => &mut row.dropped_memory,
        } = packets;
    }
    row
}

/// What happened between two totals; queue lengths are those of the later one.
pub(super) fn difference(later: &LinkSampleRow, earlier: &LinkSampleRow) -> LinkSampleRow {
    let earlier = LinkSampleRow { queue_packets: 0, queue_bytes: 0, ..*earlier };
    let mut row = *later;
    for (value, before) in row.values_mut().into_iter().zip(earlier.values()) {
        *value -= before;
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_each_reason_are_in_the_column_of_its_name() {
        let mut counters = LaneCounters::default();
        for (packets, why) in (1..).zip(DropReason::ALL) {
            counters.dropped[why] = packets;
        }
        let expected = DropReason::ALL.into_iter().zip(1..);
        assert_eq!(row_of(&counters).dropped().to_vec(), expected.collect::<Vec<(_, u64)>>());
    }

    #[test]
    fn a_queue_is_not_what_came_but_what_waits() {
        let row = |packets, waiting| LinkSampleRow {
            offered_packets: packets,
            queue_packets: waiting,
            queue_bytes: waiting * 1500,
            ..LinkSampleRow::default()
        };
        // A queue that becomes shorter is no difference below zero.
        assert_eq!(difference(&row(9, 1), &row(4, 3)), row(5, 1));
    }
}
