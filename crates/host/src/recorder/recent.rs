//! What links did in the last second and since the beginning: copies of the samples for
//! observers of a live run.
//!
//! The recorder's thread adds, the main loop reads; the packet loop does not know of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windtunnel_control::LaneStatus;
use windtunnel_model::{Span, Time};
use windtunnel_trace::sample::LinkSampleRow;

/// Shared; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentLaneSamples(Arc<Mutex<RecentLaneRows>>);

#[derive(Debug, Default)]
struct RecentLaneRows {
    /// Begin and end of the interval and a row by lane index, oldest first.
    intervals: VecDeque<(Time, Time, Vec<LinkSampleRow>)>,
    /// Sums since the run began, by lane index; maxima are the largest.
    totals: Vec<LinkSampleRow>,
    last: Time,
}

impl RecentLaneSamples {
    /// Adds the interval that ended `at` after the run began: one row per lane index.
    pub(crate) fn add(&self, at: Time, rows: Vec<LinkSampleRow>) {
        let mut window = self.lock();
        window.totals.resize(rows.len(), LinkSampleRow::default());
        for (total, row) in window.totals.iter_mut().zip(&rows) {
            total.add(row);
        }
        let begin = std::mem::replace(&mut window.last, at);
        window.intervals.push_back((begin, at, rows));
        // Intervals that a whole second does not need.
        while window.intervals.get(1).is_some_and(|next| at.since(next.0) >= SECOND) {
            window.intervals.pop_front();
        }
    }

    /// When the newest sample was taken, how far back the window reaches from then, and what each
    /// lane did; no lanes before the first sample.
    pub(crate) fn lanes(&self) -> (Time, Span, Vec<LaneStatus>) {
        let window = self.lock();
        let begin = window.intervals.front().map_or(window.last, |interval| interval.0);
        let span = window.last.since(begin);
        let lanes = (0..window.totals.len()).map(|lane| window.lane(lane, span)).collect();
        (window.last, span, lanes)
    }

    fn lock(&self) -> MutexGuard<'_, RecentLaneRows> {
        // Sums of a panicked thread are as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecentLaneRows {
    fn lane(&self, lane: usize, span: Span) -> LaneStatus {
        let rows = || self.intervals.iter().filter_map(|(_, _, rows)| rows.get(lane));
        let sum = |of: fn(&LinkSampleRow) -> u64| rows().map(of).sum::<u64>();
        let most = |of: fn(&LinkSampleRow) -> u64| rows().map(of).max().unwrap_or(0);
        let rate = |of| bit_per_s(sum(of), span);
        let now = rows().next_back().copied().unwrap_or_default();
        let total = self.totals.get(lane).copied().unwrap_or_default();
        LaneStatus {
            offered_bit_per_s: rate(|row| row.offered_bytes),
            delivered_bit_per_s: rate(|row| row.delivered_bytes),
            delivered_wire_bit_per_s: rate(|row| row.delivered_wire_bytes),
            queue_packets: now.queue_packets,
            queue_bytes: now.queue_bytes,
            recent_queue_max_packets: most(|row| row.queue_max_packets),
            recent_dropped_packets: sum(|row| row.dropped_packets),
            recent_marked_packets: sum(|row| row.marked_packets),
            recent_lateness_max_ns: most(|row| row.lateness_max_ns),
            offered_packets: total.offered_packets,
            delivered_packets: total.delivered_packets,
            dropped_packets: total.dropped_packets,
            marked_packets: total.marked_packets,
            lateness_max_ns: total.lateness_max_ns,
            ..LaneStatus::default()
        }
    }
}

fn bit_per_s(bytes: u64, span: Span) -> u64 {
    let scaled = u128::from(bytes) * 8_000_000_000 / u128::from(span.as_nanos().max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const SECOND: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn tenths(n: u64) -> Time {
        Time::from_nanos(n * 100_000_000)
    }

    fn row(bytes: u64, lateness_max_ns: u64) -> Vec<LinkSampleRow> {
        let row = LinkSampleRow {
            delivered_bytes: bytes,
            dropped_packets: 1,
            queue_packets: bytes,
            lateness_max_ns,
            ..LinkSampleRow::default()
        };
        vec![LinkSampleRow::default(), row]
    }

    #[test]
    fn nothing_is_known_before_the_first_sample() {
        assert_eq!(RecentLaneSamples::default().lanes(), (Time::ZERO, Span::ZERO, vec![]));
    }

    #[test]
    fn rates_are_those_of_the_last_second_and_sums_those_of_the_run() {
        let recent = RecentLaneSamples::default();
        for tenth in 1..=30 {
            // 1250 bytes in a tenth of a second are 100 kbit/s; before, it was ten times that.
            recent.add(tenths(tenth), row(if tenth <= 20 { 12_500 } else { 1250 }, 40 - tenth));
        }
        let (at, span, lanes) = recent.lanes();
        assert_eq!((at, span), (tenths(30), SECOND));
        let lane = &lanes[1];
        assert_eq!(lane.delivered_bit_per_s, 100_000);
        assert_eq!((lane.recent_dropped_packets, lane.dropped_packets), (10, 30));
        assert_eq!((lane.recent_lateness_max_ns, lane.lateness_max_ns), (19, 39));
        assert_eq!(lane.queue_packets, 1250);
        assert_eq!(lanes[0], LaneStatus::default());
    }

    #[test]
    fn a_young_run_is_averaged_over_its_age() {
        let recent = RecentLaneSamples::default();
        recent.add(tenths(1), row(1250, 0));
        recent.add(tenths(2), row(1250, 0));
        let (_, span, lanes) = recent.lanes();
        assert_eq!((span, lanes[1].delivered_bit_per_s), (Span::from_millis(200), 100_000));
    }

    #[test]
    fn an_interval_that_came_late_is_counted_over_its_own_length() {
        let recent = RecentLaneSamples::default();
        recent.add(tenths(10), row(1250, 0));
        recent.add(tenths(40), row(37_500, 0));
        let (_, span, lanes) = recent.lanes();
        assert_eq!((span, lanes[1].delivered_bit_per_s), (Span::from_secs(3), 100_000));
    }
}
