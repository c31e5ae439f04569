//! How late packets left: actual minus intended departure.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use windtunnel_model::Span;

/// A histogram of lateness (HDR, two significant digits, 100 ns to 100 s, microscopic memory).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "HistogramBins", into = "HistogramBins")]
pub struct LatenessHistogram {
    histogram: Histogram<u32>,
    max: Span,
}

/// The figures of a [`LatenessHistogram`] that reports show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatenessSummary {
    /// Packets (objects handed to the kernel; a super-packet counts once).
    pub packets: u64,
    /// Median, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile, in nanoseconds.
    pub p999_ns: u64,
    /// The largest, exact, in nanoseconds.
    pub max_ns: u64,
}

/// A histogram as messages and files have it.
#[derive(Debug, Serialize, Deserialize)]
struct HistogramBins {
    max_ns: u64,
    /// A value of the bin in nanoseconds, and its count.
    bins: Vec<(u64, u64)>,
}

impl From<LatenessHistogram> for HistogramBins {
    fn from(lateness: LatenessHistogram) -> Self {
        HistogramBins { max_ns: lateness.max.as_nanos(), bins: lateness.bins().collect() }
    }
}

impl From<HistogramBins> for LatenessHistogram {
    fn from(HistogramBins { max_ns, bins }: HistogramBins) -> Self {
        let mut lateness = LatenessHistogram::new();
        for (value, count) in bins {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            lateness.histogram.saturating_record_n(value, count);
        }
        lateness.max = Span::from_nanos(max_ns);
        lateness
    }
}

impl LatenessHistogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the constant bounds are valid");
        LatenessHistogram { histogram, max: Span::ZERO }
    }

    /// Counts one packet.
    pub fn record(&mut self, lateness: Span) {
        self.histogram.saturating_record(lateness.as_nanos().max(1));
        self.max = self.max.max(lateness);
    }

    /// Adds what another histogram counted.
    pub fn add(&mut self, other: &LatenessHistogram) {
        // Both have the same bounds, so the sum cannot fail; a failure would only lose a summary.
        let _ = self.histogram.add(&other.histogram);
        self.max = self.max.max(other.max);
    }

    /// Packets counted.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.histogram.len()
    }

    /// The greatest value of each bin that is not empty, in nanoseconds, and its packets; in order.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> {
        let recorded = self.histogram.iter_recorded();
        recorded.map(|bin| (bin.value_iterated_to(), u64::from(bin.count_at_value())))
    }

    /// Packets later than `bound` (to the histogram's precision of 1 %).
    #[must_use]
    pub fn later_than(&self, bound: Span) -> u64 {
        let within = self.histogram.count_between(0, bound.as_nanos().max(1));
        self.histogram.len().saturating_sub(within)
    }

    /// The mean, to the histogram's precision; zero if nothing was counted.
    #[must_use]
    pub fn mean(&self) -> Span {
        let sum: u128 = self
            .histogram
            .iter_recorded()
            .map(|bin| u128::from(bin.value_iterated_to()) * u128::from(bin.count_at_value()))
            .sum();
        let mean = sum / u128::from(self.histogram.len().max(1));
        Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.max = Span::ZERO;
    }

    /// The lateness that so great a part of the packets (0 to 1) does not exceed, to the
    /// histogram's precision of 1 %.
    #[must_use]
    pub fn at_quantile(&self, quantile: f64) -> Span {
        Span::from_nanos(self.histogram.value_at_quantile(quantile)).min(self.max)
    }

    /// The figures for a report.
    #[must_use]
    pub fn summary(&self) -> LatenessSummary {
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max.as_nanos());
        LatenessSummary {
            packets: self.histogram.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.max.as_nanos(),
        }
    }
}

impl Default for LatenessHistogram {
    fn default() -> Self {
        Self::new()
    }
}

const LOWEST_NS: u64 = 100;
const HIGHEST_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_gives_quantiles_within_one_percent_and_an_exact_maximum() {
        let mut lateness = LatenessHistogram::new();
        for micros in 1..=1000 {
            lateness.record(Span::from_micros(micros));
        }
        let summary = lateness.summary();
        assert_eq!(summary.packets, 1000);
        assert_eq!(summary.max_ns, 1_000_000);
        assert!(summary.p50_ns.abs_diff(500_000) <= 5_000, "{summary:?}");
        assert!(summary.p99_ns.abs_diff(990_000) <= 9_900, "{summary:?}");
    }

    #[test]
    fn packets_beyond_a_bound_are_counted_also_above_the_histograms_range() {
        let mut lateness = LatenessHistogram::new();
        lateness.record(Span::from_micros(10));
        lateness.record(Span::from_millis(2));
        lateness.record(Span::from_secs(1000));
        assert_eq!(lateness.later_than(Span::from_millis(1)), 2);
        assert_eq!(lateness.summary().max_ns, 1_000_000_000_000);
    }

    #[test]
    fn a_histogram_written_and_read_is_the_same() {
        let mut lateness = LatenessHistogram::new();
        for micros in [3, 17, 17, 900, 123_456] {
            lateness.record(Span::from_micros(micros));
        }
        let text = serde_json::to_string(&lateness).unwrap();
        let read: LatenessHistogram = serde_json::from_str(&text).unwrap();
        assert_eq!(read.summary(), lateness.summary());
    }

    #[test]
    fn adding_gives_what_recording_both_would_have_given() {
        let (mut one, mut two, mut both) =
            (LatenessHistogram::new(), LatenessHistogram::new(), LatenessHistogram::new());
        for i in 0..100 {
            one.record(Span::from_micros(i));
            two.record(Span::from_millis(i));
            both.record(Span::from_micros(i));
            both.record(Span::from_millis(i));
        }
        one.add(&two);
        assert_eq!(one.summary(), both.summary());
    }
}
