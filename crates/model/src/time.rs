//! Points in time and lengths of time, in integer nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quantity::{self, MeasurementUnit, QuantityError};

/// A point in time: nanoseconds since the origin of the run's one clock (CLOCK_MONOTONIC of the
/// host loop in real time, zero at the start in virtual time).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative; up to 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// The point `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time that has passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }

    /// A span of `micros` microseconds (saturating).
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds (saturating).
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds (saturating).
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether it has no length.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or the largest span if it does not fit.
    #[must_use]
    pub const fn saturating_add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// The difference, or zero where `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        self.saturating_add(other)
    }
}

impl core::iter::Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

impl From<core::time::Duration> for Span {
    fn from(duration: core::time::Duration) -> Self {
        Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for core::time::Duration {
    fn from(span: Span) -> Self {
        core::time::Duration::from_nanos(span.0)
    }
}

impl FromStr for Span {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        quantity::parse(text, "a time", UNITS).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::print(f, self.0, UNITS)
    }
}

quantity::serde_as_text!(Span, "a time with a unit, such as 10ms");

const UNITS: &[MeasurementUnit] = &[
    MeasurementUnit::shown("ns", 1),
    MeasurementUnit::shown("us", 1_000),
    MeasurementUnit::also("µs", 1_000),
    MeasurementUnit::shown("ms", 1_000_000),
    MeasurementUnit::shown("s", 1_000_000_000),
    MeasurementUnit::shown("min", 60_000_000_000),
    MeasurementUnit::shown("h", 3_600_000_000_000),
];

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
