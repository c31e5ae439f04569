//! Quantities for people: at most four digits that matter, and the unit that fits.
//!
//! Files and `--json` keep the exact values; here what matters is to see them at a glance.

use windtunnel_model::{Probability, Span};

/// A time, such as `231.9ms`.
#[must_use]
pub fn span(span: Span) -> String {
    scaled(span.as_nanos(), &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

/// A time in nanoseconds.
#[must_use]
pub fn nanos(nanos: u64) -> String {
    span(Span::from_nanos(nanos))
}

/// A rate in bit/s, such as `48.71mbit`.
#[must_use]
pub fn rate(bits_per_second: u64) -> String {
    let units = [
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
    ];
    scaled(bits_per_second, &units)
}

/// Bytes, such as `305.5KB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, &[("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)])
}

/// Processors that are given in thousandths: `1.5`.
#[must_use]
pub fn processors(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// So many of something: `1 node`, `2 nodes`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A probability in percent, to three digits that matter: `0.101%`.
#[must_use]
pub fn loss(loss: Probability) -> String {
    let parts = u64::from(loss.parts_per_billion());
    let rounded = to_digits(parts, 3).min(1_000_000_000);
    let rounded = u32::try_from(rounded).ok().and_then(Probability::from_parts_per_billion);
    rounded.unwrap_or(loss).to_string()
}

/// The value in the largest unit that it reaches.
fn scaled(value: u64, units: &[(&str, u64)]) -> String {
    let rounded = to_digits(value, 4);
    let reached = units.iter().rev().find(|(_, scale)| rounded >= *scale);
    let Some(&(name, scale)) = reached.or(units.first()) else { return value.to_string() };
    let (whole, rest) = (rounded / scale, rounded % scale);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = scale.ilog10();
    let decimals = format!("{rest:0width$}", width = usize::try_from(digits).unwrap_or(0));
    format!("{whole}.{}{name}", decimals.trim_end_matches('0'))
}

/// The nearest value that has only so many digits other than zeros at its end.
#[must_use]
pub fn to_digits(value: u64, digits: u32) -> u64 {
    let length = value.checked_ilog10().map_or(1, |log| log + 1);
    let step = 10_u64.pow(length.saturating_sub(digits));
    value.saturating_add(step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_four_digits_and_change_unit_where_they_reach_it() {
        let cases = [
            (0, "0ns"),
            (999, "999ns"),
            (84_000, "84us"),
            (231_900_000, "231.9ms"),
            (115_234_567, "115.2ms"),
            (999_999, "1ms"),
            (90_000_000_000, "90s"),
            (1_500_000_000, "1.5s"),
        ];
        for (value, text) in cases {
            assert_eq!(nanos(value), text);
        }
    }

    #[test]
    fn rates_are_shown_in_bits_as_files_write_them() {
        let cases =
            [(1, "1bit"), (48_712_345, "48.71mbit"), (1_000_000_000, "1gbit"), (5_500, "5.5kbit")];
        for (value, text) in cases {
            assert_eq!(rate(value), text);
        }
    }

    #[test]
    fn losses_keep_three_digits_that_matter() {
        let of = |ppb| loss(Probability::from_parts_per_billion(ppb).unwrap());
        assert_eq!(of(0), "0%");
        assert_eq!(of(1_000_000), "0.1%");
        assert_eq!(of(1_012_345), "0.101%");
        assert_eq!(of(999_999_999), "100%");
        assert_eq!(of(50_300_000), "5.03%");
    }

    #[test]
    fn rounding_keeps_the_digits_that_matter() {
        assert_eq!(
            [0, 7, 1234, 1235, 99_999].map(|value| to_digits(value, 3)),
            [0, 7, 1230, 1240, 100_000]
        );
    }
}
