//! Probabilities as whole parts per billion.

use alloc::borrow::ToOwned;
use alloc::format;
use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, MeasurementUnit, QuantityError};

/// A probability in parts per billion (0 to 10⁹), written in percent. Finer than 0.0000001 % is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const NEVER: Probability = Probability(0);
    /// Always.
    pub const ALWAYS: Probability = Probability(BILLION);

    /// `parts` in a billion; `None` above 10⁹.
    #[must_use]
    pub const fn from_parts_per_billion(parts: u32) -> Option<Self> {
        if parts <= BILLION { Some(Probability(parts)) } else { None }
    }

    /// Parts per billion.
    #[must_use]
    pub const fn parts_per_billion(self) -> u32 {
        self.0
    }

    /// Whether it never happens.
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }

    /// Decides with one uniform 64-bit draw: true with exactly this probability (to 2⁻⁶⁴).
    #[must_use]
    pub fn decides(self, draw: u64) -> bool {
        let scaled = (u128::from(draw) * u128::from(BILLION)) >> 64;
        scaled < u128::from(self.0)
    }
}

impl FromStr for Probability {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let parts = quantity::parse(text, "a probability", UNITS)?;
        u32::try_from(parts).ok().and_then(Self::from_parts_per_billion).ok_or_else(|| {
            QuantityError::TooLarge {
                text: text.to_owned(),
                what: "a probability",
                most: "100%".to_owned(),
            }
        })
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / PERCENT, self.0 % PERCENT);
        if rest == 0 {
            return f.pad(&format!("{whole}%"));
        }
        let decimals = format!("{rest:07}");
        f.pad(&format!("{whole}.{}%", decimals.trim_end_matches('0')))
    }
}

quantity::serde_as_text!(Probability, "a probability in percent, such as 0.1%");

const BILLION: u32 = 1_000_000_000;
const PERCENT: u32 = BILLION / 100;
/// The base unit has no text of its own; its name appears only in the message about inexact values.
const UNITS: &[MeasurementUnit] = &[
    MeasurementUnit::shown("%", PERCENT as u64),
    MeasurementUnit::also("ppm", 1_000),
    MeasurementUnit::also("ppb", 1),
];
