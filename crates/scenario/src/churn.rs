//! Churn: which nodes leave and join when, as a pure function of a description and a seed.
//!
//! Members are numbered from 0; a [`PopulationChange`] says what happens at one instant. Three descriptions
//! come to moves: a rate ([`by_rate`]), statements in the churn language ([`ChurnScript`]), and a trace
//! ([`ChurnTrace`]).

mod ledger;
mod rate;
mod script;
mod statement;
#[cfg(test)]
mod tests;
mod token;
mod trace;

use windtunnel_model::Span;

pub(crate) use rate::{ChurnRate, by_rate};
pub(crate) use script::ChurnScript;
pub(crate) use trace::ChurnTrace;

/// The changes at one instant. A member in both lists leaves and joins again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PopulationChange {
    pub(crate) at: Span,
    /// In ascending order.
    pub(crate) leave: Vec<usize>,
    /// In ascending order.
    pub(crate) join: Vec<usize>,
}

/// Where in a text something is wrong, and what. Lines and columns count from 1, columns in
/// characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl TextError {
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// How many times faster time passes than a text says, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speed(u64);

impl Speed {
    const ONE: u64 = 1_000_000;

    /// A positive decimal number with at most six decimals.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let millionths = decimal(text, 6)?;
        (millionths > 0).then_some(Speed(millionths))
    }

    /// When something happens that the text has `at`.
    pub(crate) fn apply(self, at: Span) -> Span {
        let nanos = u128::from(at.as_nanos()) * u128::from(Self::ONE) / u128::from(self.0);
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed(Self::ONE)
    }
}

/// `12.5` as a whole number of its `places`-th decimals; `None` if it is not a number, or finer.
pub(crate) fn decimal(text: &str, places: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let spare = places.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    if whole.is_empty() || !digits(whole) || !digits(fraction) || text.ends_with('.') {
        return None;
    }
    let fraction: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let whole: u64 = whole.parse().ok()?;
    let unit = 10u64.checked_pow(places)?;
    whole.checked_mul(unit)?.checked_add(fraction.checked_mul(10u64.checked_pow(spare)?)?)
}

/// The i-th of `count` instants in the middles of equal parts of a span that begins at `from`.
fn middle(from: Span, length: Span, i: u64, count: u64) -> Span {
    from + part(length, u128::from(i) * 2 + 1, u128::from(count) * 2)
}

/// `span` · `numerator` / `denominator`.
fn part(span: Span, numerator: u128, denominator: u128) -> Span {
    let nanos = u128::from(span.as_nanos()).saturating_mul(numerator) / denominator.max(1);
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
