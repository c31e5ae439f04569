//! Text forms of quantities: a number and a unit, exact or refused.
//!
//! A bare number is refused (100 of what?), and so is a text whose value is not a whole number of
//! the quantity's base unit, because rounding would silently change what was asked.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Why a text is not the quantity that was needed. The texts name what was written and what may be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// No number at the start.
    #[error("`{text}` is not {what}: write a number and one of the units {units}")]
    NoNumber {
        /// What was written.
        text: String,
        /// What was needed ("a time").
        what: &'static str,
        /// The units that may be written.
        units: String,
    },
    /// A number with no unit.
    #[error("`{text}` has no unit: {what} needs one of {units}")]
    NoUnit {
        /// What was written.
        text: String,
        /// What was needed.
        what: &'static str,
        /// The units that may be written.
        units: String,
    },
    /// A unit that this quantity does not have.
    #[error("`{unit}` in `{text}` is not a unit of {what}: use one of {units}")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// The part that is not a unit.
        unit: String,
        /// What was needed.
        what: &'static str,
        /// The units that may be written.
        units: String,
    },
    /// The value is finer than the base unit can hold.
    #[error("`{text}` cannot be held exactly: {what} is a whole number of {base}")]
    Inexact {
        /// What was written.
        text: String,
        /// What was needed.
        what: &'static str,
        /// The base unit.
        base: &'static str,
    },
    /// The value does not fit.
    #[error("`{text}` is too large for {what}: the most is {most}")]
    TooLarge {
        /// What was written.
        text: String,
        /// What was needed.
        what: &'static str,
        /// The largest value, printed.
        most: String,
    },
    /// Zero where something must flow.
    #[error("`{text}` is zero: {what} must be more than zero{instead}")]
    Zero {
        /// What was written.
        text: String,
        /// What was needed.
        what: &'static str,
        /// What to write instead, with a leading separator, or nothing.
        instead: &'static str,
    },
}

/// A unit's name and how many base units it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasurementUnit {
    name: &'static str,
    scale: u64,
    /// Whether printing may choose it.
    shown: bool,
}

impl MeasurementUnit {
    pub(crate) const fn shown(name: &'static str, scale: u64) -> Self {
        MeasurementUnit { name, scale, shown: true }
    }

    /// The least difference that printing shows.
    const fn step(&self) -> u64 {
        if self.scale >= DECIMALS && self.is_power_of_ten() {
            self.scale / DECIMALS
        } else {
            self.scale
        }
    }

    const fn is_power_of_ten(&self) -> bool {
        10u64.pow(self.scale.ilog10()) == self.scale
    }

    /// A value that is a multiple of the step, in this unit.
    fn decimal(&self, value: u64) -> String {
        let (whole, rest) = (value / self.scale, value % self.scale);
        if rest == 0 {
            return whole.to_string();
        }
        let thousandths = format!("{:03}", rest / self.step());
        format!("{whole}.{}", thousandths.trim_end_matches('0'))
    }

    /// A unit that is read but never printed.
    pub(crate) const fn also(name: &'static str, scale: u64) -> Self {
        MeasurementUnit { name, scale, shown: false }
    }
}

/// The sum of counts, or the largest number if it does not fit: counts may come from another
/// machine.
pub fn total<N: core::borrow::Borrow<u64>>(counts: impl IntoIterator<Item = N>) -> u64 {
    counts.into_iter().fold(0, |sum: u64, count| sum.saturating_add(*count.borrow()))
}

/// A length in bytes (octets). Units: `B KB MB GB TB` (powers of 1000), `KiB MiB GiB` (powers of
/// 1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, "a size in bytes", BYTE_UNITS).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, BYTE_UNITS)
    }
}

/// A number of packets (MTU segments). Unit: `p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Packets(pub u64);

impl FromStr for Packets {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text, "a number of packets", PACKET_UNITS).map(Packets)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, PACKET_UNITS)
    }
}

const BYTE_UNITS: &[MeasurementUnit] = &[
    MeasurementUnit::shown("B", 1),
    MeasurementUnit::shown("KB", 1_000),
    MeasurementUnit::also("kB", 1_000),
    MeasurementUnit::also("KiB", 1 << 10),
    MeasurementUnit::shown("MB", 1_000_000),
    MeasurementUnit::also("MiB", 1 << 20),
    MeasurementUnit::shown("GB", 1_000_000_000),
    MeasurementUnit::also("GiB", 1 << 30),
    MeasurementUnit::shown("TB", 1_000_000_000_000),
];

const PACKET_UNITS: &[MeasurementUnit] = &[MeasurementUnit::shown("p", 1)];

/// Reads `number unit` into base units (the first unit of `units` with scale 1 is the base).
pub(crate) fn parse(
    text: &str,
    what: &'static str,
    units: &'static [MeasurementUnit],
) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let shown = || shorten(text);
    let Some((digits, decimals)) = decimal(number) else {
        return Err(QuantityError::NoNumber { text: shown(), what, units: list(units) });
    };
    if unit.is_empty() {
        return Err(QuantityError::NoUnit { text: shown(), what, units: list(units) });
    }
    let Some(found) = units.iter().find(|known| known.name == unit) else {
        let unit = shorten(unit);
        return Err(QuantityError::UnknownUnit { text: shown(), unit, what, units: list(units) });
    };
    let too_large = || QuantityError::TooLarge {
        text: shown(),
        what,
        most: format!("{} {}", u64::MAX, base(units)),
    };
    let inexact = || QuantityError::Inexact { text: shown(), what, base: base(units) };
    // What overflows although its whole part fits has more decimals than any unit can make whole.
    let whole = number.split('.').next().and_then(|whole| whole.parse::<u64>().ok());
    let fits = whole.and_then(|whole| whole.checked_mul(found.scale)).is_some();
    let overflow = || if fits { inexact() } else { too_large() };
    let divisor = 10u128.checked_pow(decimals).ok_or_else(overflow)?;
    let digits: u128 = digits.parse().map_err(|_| overflow())?;
    let scaled = digits.checked_mul(u128::from(found.scale)).ok_or_else(overflow)?;
    if !scaled.is_multiple_of(divisor) {
        return Err(inexact());
    }
    u64::try_from(scaled / divisor).map_err(|_| too_large())
}

/// Prints with the largest unit that holds the value exactly with at most three decimals (none for
/// units that are not powers of ten), so that it parses back to itself.
pub(crate) fn print(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[MeasurementUnit],
) -> fmt::Result {
    let fits = |unit: &&MeasurementUnit| {
        unit.shown && value >= unit.scale && value.is_multiple_of(unit.step())
    };
    match units.iter().rfind(fits).or(units.first()) {
        Some(unit) => f.pad(&format!("{}{}", unit.decimal(value), unit.name)),
        None => f.pad(&value.to_string()),
    }
}

/// Printing shows thousandths of a unit.
const DECIMALS: u64 = 1000;

/// Serialises a quantity as its text.
macro_rules! serde_as_text {
    ($type:ty, $expecting:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <alloc::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(
                    deserializer,
                )?;
                text.parse().map_err(|e: $crate::quantity::QuantityError| {
                    serde::de::Error::custom(format_args!("{e} (expected {})", $expecting))
                })
            }
        }
    };
}
pub(crate) use serde_as_text;

serde_as_text!(Bytes, "a size with a unit, such as 256KB");
serde_as_text!(Packets, "a number of packets, such as 100p");

/// The digits without the point and how many of them were decimals; trailing zeros do not count.
fn decimal(number: &str) -> Option<(String, u32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    Some((format!("{whole}{fraction}"), u32::try_from(fraction.len()).ok()?))
}

fn base(units: &'static [MeasurementUnit]) -> &'static str {
    units.iter().find(|unit| unit.scale == 1).map_or("", |unit| unit.name)
}

fn list(units: &[MeasurementUnit]) -> String {
    units.iter().map(|unit| unit.name).collect::<Vec<_>>().join(", ")
}

/// Keeps messages readable when the input is megabytes of nonsense.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
