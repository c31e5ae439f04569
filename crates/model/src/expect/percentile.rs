//! Percentiles.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A percentile by nearest rank: of n values in order, p is the one at position ⌈p·n/100⌉, the
/// first for p0. So p50 of an even number is the lower of the middle two, and p100 is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32")]
pub struct Percentile(u32);

impl Percentile {
    /// The greatest of all.
    pub const GREATEST: Percentile = Percentile(Self::WHOLE);

    const WHOLE: u32 = 100_000;

    /// The percentile of values that are in order; `None` if there are none.
    pub fn of<'a, T>(&self, sorted: &'a [T]) -> Option<&'a T> {
        let rank = (sorted.len() as u128 * u128::from(self.0)).div_ceil(u128::from(Self::WHOLE));
        sorted.get(usize::try_from(rank).ok()?.saturating_sub(1))
    }

    /// As a part of 1.
    #[must_use]
    pub fn quantile(&self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }
}

impl TryFrom<u32> for Percentile {
    type Error = String;

    /// From thousandths of a percent.
    fn try_from(parts: u32) -> Result<Self, String> {
        let fits = parts <= Self::WHOLE;
        fits.then_some(Percentile(parts)).ok_or_else(|| format!("{parts} is above p100"))
    }
}

impl FromStr for Percentile {
    type Err = String;

    /// Reads `p50`, `p99.9`, with at most three decimals.
    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("`{text}` is not a percentile: write `p` and a number, such as p99.9");
        let number = text.strip_prefix('p').ok_or_else(form)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(form());
        }
        if decimals.len() > 3 {
            return Err(format!("`{text}` has more than three decimals"));
        }
        let thousandths = format!("{whole}{decimals:0<3}").parse::<u32>().ok();
        let percentile = thousandths.filter(|parts| *parts <= Self::WHOLE).map(Percentile);
        percentile.ok_or_else(|| format!("`{text}` is above p100, the greatest"))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / 1000, self.0 % 1000);
        match decimals {
            0 => write!(f, "p{whole}"),
            _ => write!(f, "p{whole}.{}", format!("{decimals:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentile(text: &str) -> Percentile {
        text.parse().unwrap()
    }

    #[test]
    fn a_percentile_is_the_value_at_the_nearest_rank_above() {
        let ten: Vec<u64> = (1..=10).collect();
        assert_eq!(percentile("p0").of(&ten), Some(&1));
        assert_eq!(percentile("p50").of(&ten), Some(&5));
        assert_eq!(percentile("p51").of(&ten), Some(&6));
        assert_eq!(percentile("p90").of(&ten), Some(&9));
        assert_eq!(percentile("p90.1").of(&ten), Some(&10));
        assert_eq!(percentile("p100").of(&ten), Some(&10));
        assert_eq!(percentile("p50").of::<u64>(&[]), None);
    }

    #[test]
    fn a_percentile_prints_as_it_is_read() {
        for text in ["p0", "p50", "p99.9", "p99.99", "p99.999", "p0.05", "p100"] {
            assert_eq!(percentile(text).to_string(), text);
        }
        assert_eq!(percentile("p99.50"), percentile("p99.5"));
    }

    #[test]
    fn a_malformed_percentile_is_refused() {
        for text in ["p101", "p100.001", "p", "99", "p9x", "p1.2345", "p-1", "p1.", "p.5"] {
            assert!(text.parse::<Percentile>().is_err(), "{text}");
        }
    }
}
