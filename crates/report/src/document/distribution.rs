//! Distributions: values with how often each was seen.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::text::quantity::to_digits;

/// How often values were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DurationHistogram {
    pub name: String,
    /// Of a lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<usize>,
    /// Of a recorded flow, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<usize>,
    pub count: u64,
    pub max_ns: u64,
    /// Values in nanoseconds, ascending, each with its count.
    pub bins: Vec<(u64, u64)>,
}

impl DurationHistogram {
    /// Of these values and their counts.
    #[must_use]
    pub fn of(name: String, values: &BTreeMap<u64, u64>) -> DurationHistogram {
        let bins: Vec<(u64, u64)> = values.iter().map(|(value, count)| (*value, *count)).collect();
        DurationHistogram {
            name,
            lane: None,
            flow: None,
            count: bins.iter().map(|(_, count)| count).sum(),
            max_ns: bins.last().map_or(0, |(value, _)| *value),
            bins,
        }
    }

    /// Of values in no order; each is rounded to three digits, so that they are few.
    #[must_use]
    pub fn rounded(name: String, values: impl IntoIterator<Item = u64>) -> DurationHistogram {
        let (mut bins, mut max_ns) = (BTreeMap::new(), 0);
        for value in values {
            *bins.entry(to_digits(value, 3)).or_insert(0) += 1;
            max_ns = max_ns.max(value);
        }
        DurationHistogram { max_ns, ..DurationHistogram::of(name, &bins) }
    }

    /// The smallest value that at least so many thousandths of all do not exceed; `None` if there
    /// are none.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let rank = u128::from(self.count) * u128::from(permille);
        let mut below = 0_u128;
        for (value, count) in &self.bins {
            below += u128::from(*count) * 1000;
            if below >= rank.max(1) {
                return Some(*value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let seen = DurationHistogram::rounded(String::new(), (1..=100).map(|n| n * 1000));
        assert_eq!((seen.count, seen.max_ns), (100, 100_000));
        assert_eq!(
            [1, 500, 990, 1000].map(|at| seen.quantile(at).unwrap()),
            [1000, 50_000, 99_000, 100_000]
        );
        assert_eq!(DurationHistogram::rounded(String::new(), []).quantile(500), None);
    }
}
