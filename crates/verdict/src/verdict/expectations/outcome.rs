//! What was seen of an expectation, and the figures in it.

use windtunnel_model::expect::ValueBounds;
use windtunnel_model::{Rate, Span, Time};
use windtunnel_trace::rate::IntervalRate;

/// What was seen of one node or link direction.
pub(super) struct ExpectationFinding {
    pub(super) seen: String,
    /// Whether it is as asked.
    pub(super) met: bool,
    /// Where to look.
    pub(super) look: String,
}

impl ExpectationFinding {
    pub(super) fn new(seen: String, met: bool, look: String) -> ExpectationFinding {
        ExpectationFinding { seen, met, look }
    }
}

/// What was seen, in words, and whether it is what was asked.
pub(super) struct ExpectationOutcome {
    /// What it is about, the figure included.
    pub(super) about: String,
    pub(super) asked: String,
    pub(super) seen: String,
    pub(super) met: bool,
    pub(super) look: String,
}

/// Whether a rate is within bounds; nothing at all is zero.
pub(super) fn allows(bounds: &ValueBounds<Rate>, bits_per_second: u64) -> bool {
    match Rate::from_bits_per_second(bits_per_second) {
        Some(rate) => bounds.allow(&rate),
        None => bounds.min.is_none(),
    }
}

pub(super) fn megabits(bits_per_second: u64) -> String {
    let kilobits = bits_per_second / 1000;
    format!("{}.{:03}mbit", kilobits / 1000, kilobits % 1000)
}

/// A share in parts per billion, as percent with three decimals.
pub(super) fn percent(ppb: u64) -> String {
    let thousandths = ppb / 10_000;
    format!("{}.{:03}%", thousandths / 1000, thousandths % 1000)
}

/// `part` of `whole` in parts per billion; `None` of nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<u64> {
    let scaled = u128::from(part) * 1_000_000_000;
    scaled.checked_div(u128::from(whole)).and_then(|ppb| u64::try_from(ppb).ok())
}

/// Whether a share in parts per billion is within bounds.
pub(super) fn allows_share(bounds: &ValueBounds<windtunnel_model::Probability>, ppb: u64) -> bool {
    let of = |bound: windtunnel_model::Probability| u64::from(bound.parts_per_billion());
    ValueBounds { min: bounds.min.map(of), max: bounds.max.map(of) }.allow(&ppb)
}

/// A time of the run: `12.300`.
pub(super) fn seconds(at: Span) -> String {
    windtunnel_trace::moment::seconds(at.as_nanos())
}

/// When a stretch was.
pub(super) fn when(stretch: &IntervalRate) -> String {
    let at = |time: Time| seconds(time.since(Time::ZERO));
    format!("{}s to {}s", at(stretch.from), at(stretch.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_printed_with_the_digits_that_bounds_need() {
        assert_eq!(percent(10_000_000), "1.000%");
        assert_eq!(percent(1_234_567), "0.123%");
        assert_eq!(share(1, 3), Some(333_333_333));
        assert_eq!(share(0, 0), None);
    }

    #[test]
    fn a_rate_of_nothing_meets_only_what_has_no_least() {
        let bounds = |min: Option<&str>, max: Option<&str>| ValueBounds {
            min: min.map(|text| text.parse().unwrap()),
            max: max.map(|text| text.parse().unwrap()),
        };
        assert!(allows(&bounds(None, Some("1mbit")), 0));
        assert!(!allows(&bounds(Some("1bit"), None), 0));
        assert!(allows(&bounds(Some("1mbit"), Some("1mbit")), 1_000_000));
    }
}
