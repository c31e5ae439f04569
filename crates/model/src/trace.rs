//! Recorded behaviour of a link over time: what a trace file says, and how a lane follows it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::rate::Rate;
use crate::time::Span;

/// A trace file's content. The plan holds each file once, however many lanes follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTrace {
    /// The file as the scenario names it.
    pub file: String,
    /// What it says.
    pub content: TraceContent,
}

/// What a trace file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceContent {
    /// When packets may leave (mahimahi's format).
    Opportunities(DeliveryOpportunities),
    /// Values over time (CSV).
    Series(TraceSeries),
}

/// Delivery opportunities: instants at each of which so many packets of 1500 bytes may leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryOpportunities {
    /// Milliseconds from each instant to the next; the first from the trace's start.
    pub delta_ms: TraceColumn,
    /// How many at each of the instants.
    pub count: TraceColumn,
}

impl DeliveryOpportunities {
    /// IP bytes that one opportunity carries.
    pub const BYTES: u64 = 1500;

    /// The instants in milliseconds since the trace's start, each with how many there are.
    pub fn instants(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = 0_u64;
        self.delta_ms.0.iter().zip(&self.count.0).map(move |(delta, count)| {
            at = at.saturating_add(*delta);
            (at, *count)
        })
    }

    /// The time of the last, after which the trace repeats.
    #[must_use]
    pub fn length(&self) -> Span {
        Span::from_millis(
            self.delta_ms.0.iter().fold(0, |sum: u64, delta| sum.saturating_add(*delta)),
        )
    }

    /// IP bytes carried over the length; `None` where that is less than 1 bit/s.
    #[must_use]
    pub fn mean(&self) -> Option<Rate> {
        let count = self.count.0.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let bits = u128::from(count) * u128::from(Self::BYTES * 8) * 1_000_000_000;
        let mean = bits.checked_div(u128::from(self.length().as_nanos()))?;
        Rate::from_bits_per_second(u64::try_from(mean).ok()?)
    }
}

/// Rows of a table over time, column by column; all columns are of the same length, at least 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSeries {
    /// Nanoseconds since the trace's start, increasing.
    pub time_ns: TraceColumn,
    /// Bit/s; zero: nothing passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bit_per_s: Option<TraceColumn>,
    /// Nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<TraceColumn>,
    /// Parts per billion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppb: Option<TraceColumn>,
}

impl TraceSeries {
    /// The time of the last row, after which a repeating trace begins again.
    #[must_use]
    pub fn length(&self) -> Span {
        Span::from_nanos(self.time_ns.0.last().copied().unwrap_or(0))
    }

    /// The mean of a column from the trace's start to its last row, rounded down. Before the first
    /// row its value holds.
    #[must_use]
    pub fn mean(&self, column: &TraceColumn, mode: TraceMode) -> u64 {
        let (times, values) = (&self.time_ns.0, &column.0);
        let (Some(&start), Some(&first)) = (times.first(), values.first()) else { return 0 };
        let length = u128::from(self.length().as_nanos());
        let mut doubled = 2 * u128::from(start) * u128::from(first);
        for (time, value) in times.windows(2).zip(values.windows(2)) {
            let end = if mode == TraceMode::Interpolate { value[1] } else { value[0] };
            let step = u128::from(time[1].saturating_sub(time[0]));
            doubled = doubled.saturating_add((u128::from(value[0]) + u128::from(end)) * step);
        }
        let mean = doubled.checked_div(2 * length).unwrap_or(u128::from(first));
        u64::try_from(mean).unwrap_or(u64::MAX)
    }
}

/// Numbers that are written as one text with blanks between them, so that a plan with long traces
/// stays small and readable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceColumn(pub Vec<u64>);

impl Serialize for TraceColumn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len() * 3);
        for (index, number) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(&number.to_string());
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for TraceColumn {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str> as Deserialize>::deserialize(deserializer)?;
        let numbers = text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>();
        numbers.map(TraceColumn).map_err(serde::de::Error::custom)
    }
}

/// How a lane follows a trace. Every trace starts when the run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceUse {
    /// Position in the plan's list of traces.
    pub trace: u32,
    /// What its content means between two times.
    pub mode: TraceMode,
    /// Whether it begins again after its last time.
    pub repeat: bool,
    /// The run begins so far into the trace.
    pub offset: Span,
}

/// What a trace means between two of its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceMode {
    /// Nothing: its times are delivery opportunities.
    Opportunities,
    /// The earlier value.
    Hold,
    /// The straight line from the earlier value to the later.
    Interpolate,
}

/// Which properties of a lane follow a trace. The property itself then holds the trace's mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traces {
    /// The rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<TraceUse>,
    /// The latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<TraceUse>,
    /// The loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<TraceUse>,
}

impl Traces {
    /// Whether nothing follows a trace.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Traces::default()
    }

    /// Whether the rate is one of delivery opportunities.
    #[must_use]
    pub(crate) fn has_opportunities(&self) -> bool {
        self.rate.is_some_and(|rate| rate.mode == TraceMode::Opportunities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_megabits_are_one_opportunity_a_millisecond() {
        let trace = DeliveryOpportunities {
            delta_ms: TraceColumn(vec![1; 50]),
            count: TraceColumn(vec![1; 50]),
        };
        assert_eq!(trace.length(), Span::from_millis(50));
        assert_eq!(trace.mean(), Rate::from_bits_per_second(12_000_000));
        let at: Vec<_> = trace.instants().take(2).collect();
        assert_eq!(at, [(1, 1), (2, 1)]);
    }

    #[test]
    fn the_mean_of_a_series_depends_on_what_lies_between_its_rows() {
        let rate = TraceColumn(vec![10, 20, 40]);
        let series = TraceSeries {
            time_ns: TraceColumn(vec![0, 100, 300]),
            rate_bit_per_s: Some(rate.clone()),
            latency_ns: None,
            loss_ppb: None,
        };
        // Held: 10 for 100 ns, 20 for 200 ns. Interpolated: 15 for 100 ns, 30 for 200 ns.
        assert_eq!(series.mean(&rate, TraceMode::Hold), 5_000 / 300);
        assert_eq!(series.mean(&rate, TraceMode::Interpolate), 7_500 / 300);
    }

    #[test]
    fn a_column_is_one_text_in_json() {
        let column = TraceColumn(vec![0, 28, 3]);
        let json = serde_json::to_string(&column).expect("numbers are text");
        assert_eq!(json, "\"0 28 3\"");
        assert_eq!(serde_json::from_str::<TraceColumn>(&json).expect("it is a column"), column);
        assert!(serde_json::from_str::<TraceColumn>("\"1 x\"").is_err());
    }
}
