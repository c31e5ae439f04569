//! Rates over a window of samples: mean, best and worst second, deviation.

use serde::{Deserialize, Serialize};
use windtunnel_model::quantity::total;
use windtunnel_model::{Span, Time};

/// Bytes counted in consecutive intervals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IntervalByteCounts {
    /// The beginning of the first interval.
    pub start: Time,
    /// The end of each interval and the bytes counted in it.
    pub counts: Vec<(Time, u64)>,
}

/// A rate and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalRate {
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// Bits a second.
    pub bits_per_second: u64,
}

impl IntervalByteCounts {
    /// The mean over all of it; `None` if there are no intervals.
    #[must_use]
    pub fn mean(&self) -> Option<IntervalRate> {
        self.stretch(0, self.counts.len())
    }

    /// The second with the highest rate, of all that end with an interval; the mean if there is no
    /// whole second.
    #[must_use]
    pub fn best_second(&self) -> Option<IntervalRate> {
        // The first of equals.
        self.seconds().into_iter().rev().max_by_key(|second| second.bits_per_second)
    }

    /// The second with the lowest rate, likewise.
    #[must_use]
    pub fn worst_second(&self) -> Option<IntervalRate> {
        self.seconds().into_iter().min_by_key(|second| second.bits_per_second)
    }

    /// The standard deviation of the rates of consecutive seconds, in parts per billion of their
    /// mean. The rest, shorter than a second, does not count. `None` for fewer than two
    /// seconds, or without traffic.
    #[must_use]
    pub fn deviation_ppb(&self) -> Option<u64> {
        let rates: Vec<u128> = self.bins().iter().map(|bin| bin.bits_per_second.into()).collect();
        let count = u128::try_from(rates.len()).ok().filter(|count| *count >= 2)?;
        let mean = rates.iter().sum::<u128>() / count;
        let squares =
            rates.iter().map(|rate| rate.abs_diff(mean).pow(2)).fold(0, u128::saturating_add);
        let deviation = (squares / count).isqrt();
        u64::try_from((deviation * 1_000_000_000).checked_div(mean)?).ok()
    }

    /// Consecutive seconds from the start.
    #[must_use]
    pub fn bins(&self) -> Vec<IntervalRate> {
        let mut bins = Vec::new();
        let (mut from, mut end) = (0, self.start + SECOND);
        while self.counts.last().is_some_and(|(last, _)| *last + TOLERANCE >= end) {
            let to = self.nearest(end);
            if to > from {
                bins.extend(self.stretch(from, to));
            }
            (from, end) = (to, end + SECOND);
        }
        bins
    }

    /// Every second that begins and ends with an interval.
    fn seconds(&self) -> Vec<IntervalRate> {
        let mut seconds = Vec::new();
        let mut from = 0;
        for to in 1..=self.counts.len() {
            let end = self.edge(to);
            while from < to && end.since(self.edge(from + 1)) + TOLERANCE >= SECOND {
                from += 1;
            }
            if end.since(self.edge(from)) + TOLERANCE >= SECOND {
                seconds.extend(self.stretch(from, to));
            }
        }
        if seconds.is_empty() {
            seconds.extend(self.mean());
        }
        seconds
    }

    /// The edge before interval `index`.
    fn edge(&self, index: usize) -> Time {
        match index {
            0 => self.start,
            _ => self.counts.get(index - 1).map_or(self.start, |(end, _)| *end),
        }
    }

    /// The index of the edge that is nearest to a time.
    fn nearest(&self, time: Time) -> usize {
        (0..=self.counts.len()).min_by_key(|&edge| distance(self.edge(edge), time)).unwrap_or(0)
    }

    fn stretch(&self, from: usize, to: usize) -> Option<IntervalRate> {
        let bytes = total(self.counts[from..to].iter().map(|(_, bytes)| bytes));
        let (from, to) = (self.edge(from), self.edge(to));
        let nanos = u128::from(to.since(from).as_nanos());
        let bits = (u128::from(bytes) * 8 * u128::from(SECOND.as_nanos())).checked_div(nanos)?;
        Some(IntervalRate { from, to, bits_per_second: u64::try_from(bits).unwrap_or(u64::MAX) })
    }
}

/// The time between two instants.
pub(crate) fn distance(a: Time, b: Time) -> Span {
    a.since(b).max(b.since(a))
}

const SECOND: Span = Span::from_secs(1);
/// Half of the sampling interval: samples are taken a little after the tenth of a second.
const TOLERANCE: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    /// Tenths of a second with these bytes each.
    fn tenths(bytes: &[u64]) -> IntervalByteCounts {
        let counts = bytes.iter().zip(1..).map(|(bytes, n)| (tenth(n), *bytes));
        IntervalByteCounts { start: Time::ZERO, counts: counts.collect() }
    }

    fn tenth(n: u64) -> Time {
        Time::from_nanos(n * 100_000_000)
    }

    fn rate(stretch: Option<IntervalRate>) -> u64 {
        stretch.unwrap().bits_per_second
    }

    #[test]
    fn the_mean_is_all_bytes_by_all_time() {
        assert_eq!(rate(tenths(&[100, 0, 50]).mean()), 150 * 8 * 10 / 3);
        assert_eq!(tenths(&[]).mean(), None);
    }

    #[test]
    fn the_best_and_the_worst_second_slide_over_the_samples() {
        // 1000 bytes a tenth, a burst of 5000 in the 15th and a gap in the 25th.
        let bytes: Vec<u64> = (1..=30)
            .map(|n| match n {
                15 => 5000,
                25 => 0,
                _ => 1000,
            })
            .collect();
        let best = tenths(&bytes).best_second().unwrap();
        assert_eq!(best.bits_per_second, 14_000 * 8);
        assert_eq!((best.from, best.to), (tenth(5), tenth(15)));
        let worst = tenths(&bytes).worst_second().unwrap();
        assert_eq!(worst.bits_per_second, 9_000 * 8);
        assert_eq!((worst.from, worst.to), (tenth(15), tenth(25)));
    }

    #[test]
    fn a_series_shorter_than_a_second_is_its_own_best_and_worst() {
        let short = tenths(&[1000, 3000]);
        assert_eq!(rate(short.best_second()), 4000 * 8 * 5);
        assert_eq!(rate(short.worst_second()), 4000 * 8 * 5);
    }

    #[test]
    fn the_deviation_is_that_of_whole_seconds() {
        // Seconds of 9, 11, 9 and 11 kB: mean 10, standard deviation 1; the rest of 0.5 s does not
        // count.
        let mut bytes = Vec::new();
        for second in [900, 1100, 900, 1100] {
            bytes.extend([second; 10]);
        }
        bytes.extend([0; 5]);
        assert_eq!(tenths(&bytes).deviation_ppb(), Some(100_000_000));
        assert_eq!(tenths(&[5; 19]).deviation_ppb(), None);
        assert_eq!(tenths(&[0; 30]).deviation_ppb(), None);
    }

    #[test]
    fn samples_that_are_a_little_late_make_no_longer_seconds() {
        let counts = (1..=20).map(|n| (tenth(n) + Span::from_micros(n * 7919 % 900), 1000));
        let late = IntervalByteCounts { start: Time::ZERO, counts: counts.collect() };
        assert_eq!(late.bins().len(), 2);
        for second in [late.best_second(), late.worst_second()] {
            assert!(rate(second).abs_diff(80_000) < 200, "{second:?}");
        }
    }
}
