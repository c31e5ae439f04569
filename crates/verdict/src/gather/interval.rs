//! Intervals of 100 ms, in which the samples of all machines are added.

use std::collections::BTreeMap;

use windtunnel_model::Time;

/// Which interval of 100 ms a sample belongs to: parts take theirs at slightly different times.
pub(super) fn interval_of(at: Time) -> u64 {
    at.as_nanos().saturating_add(INTERVAL_NS / 2) / INTERVAL_NS
}

/// Values of all parts by interval.
pub(super) type ByInterval<T> = BTreeMap<u64, (Time, T)>;

pub(super) const INTERVAL_NS: u64 = 100_000_000;
