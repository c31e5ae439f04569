//! The samples of one link direction, and what they say of a part of the run.

use serde::{Deserialize, Serialize};
use windtunnel_model::expect::{ExpectationWindow, Percentile};
use windtunnel_model::quantity::total;
use windtunnel_model::{DropReason, Span, Time};

use crate::rate::{IntervalByteCounts, distance};
use crate::sample::LinkSampleRow;

/// What a link direction did in one interval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkSample {
    /// The end of the interval, after the run began.
    pub at: Time,
    /// What was counted in it.
    pub row: LinkSampleRow,
    /// Packets dropped in it, by reason, where there were any.
    pub dropped: Vec<(DropReason, u64)>,
    /// The rate at its end, in bit/s; `None` without one.
    pub rate_bit_per_s: Option<u64>,
}

/// All samples of one direction, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkSampleSeries(pub Vec<LinkSample>);

/// Samples of a part of the run. It begins and ends with a sample: with those nearest to what was
/// asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSampleWindow<'a> {
    /// The beginning of the first interval.
    pub start: Time,
    /// The intervals.
    pub samples: &'a [LinkSample],
}

impl LinkSampleSeries {
    /// The part that a window means; `None` if there is no sample in it.
    #[must_use]
    pub fn cut(&self, window: Option<ExpectationWindow>) -> Option<LinkSampleWindow<'_>> {
        let edge = |index: usize| match index {
            0 => Time::ZERO,
            _ => self.0.get(index - 1).map_or(Time::ZERO, |sample| sample.at),
        };
        let nearest = |time: Time| {
            (0..=self.0.len()).min_by_key(|&index| distance(edge(index), time)).unwrap_or(0)
        };
        let (from, to) = match window {
            None => (0, self.0.len()),
            Some(ExpectationWindow { from, to }) => {
                (nearest(Time::ZERO + from), to.map_or(self.0.len(), |to| nearest(Time::ZERO + to)))
            }
        };
        let samples = self.0.get(from..to).filter(|samples| !samples.is_empty())?;
        Some(LinkSampleWindow { start: edge(from), samples })
    }
}

impl LinkSampleWindow<'_> {
    /// The end of the last interval.
    #[must_use]
    pub fn end(&self) -> Time {
        self.samples.last().map_or(self.start, |sample| sample.at)
    }

    /// Wire bytes delivered over time.
    #[must_use]
    pub fn delivered(&self) -> IntervalByteCounts {
        let counts = self.samples.iter().map(|s| (s.at, s.row.delivered_wire_bytes));
        IntervalByteCounts { start: self.start, counts: counts.collect() }
    }

    /// A count of all intervals together.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&LinkSample) -> u64) -> u64 {
        total(self.samples.iter().map(of))
    }

    /// The position of the first interval in which something was counted.
    #[must_use]
    pub fn first(&self, of: impl Fn(&LinkSample) -> u64) -> Option<usize> {
        self.samples.iter().position(|sample| of(sample) > 0)
    }

    /// The greatest value and the position of its first interval.
    #[must_use]
    pub fn most(&self, of: impl Fn(&LinkSample) -> u64) -> Option<(u64, usize)> {
        let values = self.samples.iter().map(of).zip(0..);
        values.max_by_key(|(value, index)| (*value, std::cmp::Reverse(*index)))
    }

    /// A percentile of the values of the intervals.
    #[must_use]
    pub fn percentile(&self, which: Percentile, of: impl Fn(&LinkSample) -> u64) -> Option<u64> {
        let mut values: Vec<u64> = self.samples.iter().map(of).collect();
        values.sort_unstable();
        which.of(&values).copied()
    }
}

impl LinkSample {
    /// Packets dropped for this reason; all reasons together for `None`.
    #[must_use]
    pub fn dropped_for(&self, reason: Option<DropReason>) -> u64 {
        let is_wanted = |known: DropReason| reason.is_none_or(|reason| reason == known);
        let wanted = self.dropped.iter().filter(|(known, _)| is_wanted(*known));
        total(wanted.map(|(_, packets)| packets))
    }

    /// Packets that came to the loss element: what is turned away before does not count.
    #[must_use]
    pub fn offered_to_loss(&self) -> u64 {
        let before = [DropReason::Down, DropReason::Partition, DropReason::Mtu];
        let before = before.map(|reason| self.dropped_for(Some(reason)));
        self.row.offered_packets.saturating_sub(total(before))
    }

    /// How long the rate of the moment needs for so many bytes; nothing without a rate.
    #[must_use]
    pub fn time_for(&self, bytes: u64) -> Span {
        let nanos = u128::from(bytes) * 8_000_000_000;
        let nanos = self.rate_bit_per_s.and_then(|rate| nanos.checked_div(u128::from(rate)));
        Span::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples a second, each with the number of its interval as offered packets.
    fn series(tenths: u64) -> LinkSampleSeries {
        let sample = |n: u64| LinkSample {
            at: Time::from_nanos(n * 100_000_000 + 60_000),
            row: LinkSampleRow { offered_packets: n, ..LinkSampleRow::default() },
            ..LinkSample::default()
        };
        LinkSampleSeries((1..=tenths).map(sample).collect())
    }

    fn window(from_ms: u64, to_ms: Option<u64>) -> Option<ExpectationWindow> {
        Some(ExpectationWindow {
            from: Span::from_millis(from_ms),
            to: to_ms.map(Span::from_millis),
        })
    }

    fn numbers(series: &LinkSampleSeries, window: Option<ExpectationWindow>) -> Vec<u64> {
        let cut = series.cut(window);
        cut.iter().flat_map(|cut| cut.samples.iter().map(|s| s.row.offered_packets)).collect()
    }

    #[test]
    fn a_window_takes_the_intervals_that_lie_in_it() {
        let series = series(10);
        assert_eq!(numbers(&series, window(300, Some(600))), [4, 5, 6]);
        assert_eq!(numbers(&series, window(800, None)), [9, 10]);
        assert_eq!(numbers(&series, window(0, Some(100))), [1]);
        assert_eq!(numbers(&series, None).len(), 10);
    }

    #[test]
    fn a_window_after_the_end_has_nothing() {
        assert_eq!(numbers(&series(10), window(2000, Some(3000))), [] as [u64; 0]);
        assert_eq!(LinkSampleSeries::default().cut(None), None);
    }

    #[test]
    fn figures_of_a_window_are_those_of_its_intervals() {
        let series = series(10);
        let cut = series.cut(window(300, Some(700))).unwrap();
        let offered = |sample: &LinkSample| sample.row.offered_packets;
        assert_eq!(cut.sum(offered), 4 + 5 + 6 + 7);
        assert_eq!(cut.most(offered), Some((7, 3)));
        assert_eq!(cut.percentile("p50".parse().unwrap(), offered), Some(5));
        assert_eq!(cut.first(|sample| u64::from(offered(sample) >= 6)), Some(2));
    }

    #[test]
    fn the_loss_element_is_not_blamed_for_what_never_reached_it() {
        let row = LinkSampleRow { offered_packets: 100, ..LinkSampleRow::default() };
        let dropped =
            vec![(DropReason::Down, 20), (DropReason::Loss, 8), (DropReason::QueueFull, 2)];
        let sample = LinkSample { row, dropped, ..LinkSample::default() };
        assert_eq!(sample.offered_to_loss(), 80);
        assert_eq!(sample.dropped_for(None), 30);
        assert_eq!(sample.dropped_for(Some(DropReason::Loss)), 8);
    }

    #[test]
    fn bytes_in_a_queue_become_time_by_the_rate_of_the_moment() {
        let sample = LinkSample { rate_bit_per_s: Some(10_000_000), ..LinkSample::default() };
        assert_eq!(sample.time_for(12_500), Span::from_millis(10));
        assert_eq!(LinkSample::default().time_for(12_500), Span::ZERO);
    }
}
