//! Bandwidth in bits a second, and the exact time that bytes take at it.

use alloc::borrow::ToOwned;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use crate::quantity::{self, MeasurementUnit, QuantityError};
use crate::time::Span;

/// A bandwidth in bit/s, never zero (a link that carries nothing is *down*, not slow).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// A rate of `bits_per_second`; `None` for zero.
    #[must_use]
    pub const fn from_bits_per_second(bits_per_second: u64) -> Option<Self> {
        match NonZeroU64::new(bits_per_second) {
            Some(rate) => Some(Rate(rate)),
            None => None,
        }
    }

    /// Bits a second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// The time that `bytes` take, rounded down to a nanosecond (saturating). Elements that add up
    /// many packets use [`Rate::serialise`], which carries the remainder.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Span {
        let mut carry = 0;
        self.serialise(bytes, &mut carry)
    }

    /// The time that `bytes` take, given the `carry` left by the packets before them (in bit·ns,
    /// less than the rate), which is updated: no fraction of a nanosecond is ever lost.
    #[must_use]
    pub fn serialise(self, bytes: u64, carry: &mut u64) -> Span {
        const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;
        let rate = self.bits_per_second();
        // As much as 2 GB fit, and a division of 128 bits costs several of 64.
        let small = bytes.checked_mul(BIT_NANOS_PER_BYTE).and_then(|work| work.checked_add(*carry));
        if let Some(work) = small {
            *carry = work % rate;
            return Span::from_nanos(work / rate);
        }
        let work = u128::from(bytes) * u128::from(BIT_NANOS_PER_BYTE) + u128::from(*carry);
        let rate = u128::from(rate);
        *carry = u64::try_from(work % rate).unwrap_or(0);
        Span::from_nanos(u64::try_from(work / rate).unwrap_or(u64::MAX))
    }

    /// How many whole bytes this rate carries in `span` (saturating).
    #[must_use]
    pub fn bytes_in(self, span: Span) -> u64 {
        let bits = u128::from(self.bits_per_second()) * u128::from(span.as_nanos()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let bits = quantity::parse(text, "a rate", UNITS)?;
        Rate::from_bits_per_second(bits).ok_or_else(|| QuantityError::Zero {
            text: text.to_owned(),
            what: "a rate",
            instead: "; use `down: true` for a link that carries nothing",
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::print(f, self.bits_per_second(), UNITS)
    }
}

quantity::serde_as_text!(Rate, "a rate with a unit, such as 10mbit");

/// `bit` families are bits a second as in tc(8); the byte families need `/s` and a capital B, so
/// that nothing has to be guessed. tc's `mbps` (megabytes) is not read: half of its users mean bits
/// by it.
const UNITS: &[MeasurementUnit] = &[
    MeasurementUnit::shown("bit", 1),
    MeasurementUnit::shown("kbit", 1_000),
    MeasurementUnit::shown("mbit", 1_000_000),
    MeasurementUnit::shown("gbit", 1_000_000_000),
    MeasurementUnit::shown("tbit", 1_000_000_000_000),
    MeasurementUnit::also("bit/s", 1),
    MeasurementUnit::also("kbit/s", 1_000),
    MeasurementUnit::also("mbit/s", 1_000_000),
    MeasurementUnit::also("gbit/s", 1_000_000_000),
    MeasurementUnit::also("tbit/s", 1_000_000_000_000),
    MeasurementUnit::also("Kbit", 1_000),
    MeasurementUnit::also("Mbit", 1_000_000),
    MeasurementUnit::also("Gbit", 1_000_000_000),
    MeasurementUnit::also("Mbit/s", 1_000_000),
    MeasurementUnit::also("Gbit/s", 1_000_000_000),
    MeasurementUnit::also("B/s", 8),
    MeasurementUnit::also("KB/s", 8_000),
    MeasurementUnit::also("MB/s", 8_000_000),
    MeasurementUnit::also("GB/s", 8_000_000_000),
];
