//! The best second of each link direction.

use std::collections::VecDeque;

use windtunnel_model::Time;
use windtunnel_model::quantity::total;

use crate::sample::LinkSampleRow;

/// The best second of each lane, from the intervals of the last second.
pub struct LanePeakRates {
    last: Time,
    /// End of the interval and delivered wire bytes, oldest first.
    window: Vec<VecDeque<(Time, Time, u64)>>,
    best: Vec<u64>,
    whole: Vec<u64>,
}

impl LanePeakRates {
    /// Of so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        LanePeakRates {
            last: Time::ZERO,
            window: vec![VecDeque::new(); lanes],
            best: vec![0; lanes],
            whole: vec![0; lanes],
        }
    }

    /// The rows of an interval that ended at `at`, by lane index.
    pub fn add(&mut self, at: Time, rows: &[LinkSampleRow]) {
        for (lane, row) in rows.iter().enumerate() {
            let window = &mut self.window[lane];
            self.whole[lane] = self.whole[lane].saturating_add(row.delivered_wire_bytes);
            window.push_back((self.last, at, row.delivered_wire_bytes));
            // A window begins where an interval began; drop intervals that a whole second does not
            // need.
            while window.get(1).is_some_and(|next| at.since(next.0).as_nanos() >= SECOND_NS) {
                window.pop_front();
            }
            let (Some(first), bytes) = (window.front(), total(window.iter().map(|i| i.2))) else {
                continue;
            };
            let span = at.since(first.0).as_nanos();
            if span >= SECOND_NS {
                self.best[lane] = self.best[lane].max(per_second(bytes, span));
            }
        }
        self.last = at;
    }

    /// Runs shorter than a second have no whole one: their average stands for it.
    #[must_use]
    pub fn finish(self) -> Vec<u64> {
        let elapsed = self.last.as_nanos();
        if elapsed >= SECOND_NS {
            return self.best;
        }
        self.whole.iter().map(|&bytes| per_second(bytes, elapsed)).collect()
    }
}

fn per_second(bytes: u64, span_ns: u64) -> u64 {
    let scaled = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(span_ns.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64) -> [LinkSampleRow; 1] {
        [LinkSampleRow { delivered_wire_bytes: bytes, ..LinkSampleRow::default() }]
    }

    fn tenths(n: u64) -> Time {
        Time::from_nanos(n * SECOND_NS / 10)
    }

    #[test]
    fn the_peak_is_the_best_whole_second_not_the_best_interval() {
        let mut peaks = LanePeakRates::new(1);
        for tenth in 1..=30 {
            // 1000 bytes an interval, and a burst of 5000 in one of them.
            peaks.add(tenths(tenth), &row(if tenth == 15 { 5000 } else { 1000 }));
        }
        assert_eq!(peaks.finish(), vec![14_000]);
    }

    #[test]
    fn a_run_shorter_than_a_second_reports_its_average() {
        let mut peaks = LanePeakRates::new(1);
        peaks.add(tenths(5), &row(1000));
        assert_eq!(peaks.finish(), vec![2000]);
    }
}
