//! Values of cells: sorted by value and shown as text.

use std::cmp::Ordering;

use windtunnel_model::Probability;

use crate::render::quantity;

/// A value of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiveTableCell {
    /// Words.
    Text(String),
    /// A number; nothing is shown as `-`.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Bits a second.
    Rate(u64),
    /// Nanoseconds.
    Time(u64),
    /// Parts per billion.
    Loss(u32),
    /// Thousandths of a processor.
    Share(u64),
    /// A figure behind a word that says where it comes from: `trace 4mbit`.
    Traced(Box<LiveTableCell>),
    /// There is no such thing.
    Missing,
}

impl LiveTableCell {
    /// As it is shown.
    pub(super) fn text(&self) -> String {
        match self {
            LiveTableCell::Text(text) => text.clone(),
            LiveTableCell::Count(0)
            | LiveTableCell::Bytes(0)
            | LiveTableCell::Rate(0)
            | LiveTableCell::Time(0)
            | LiveTableCell::Loss(0) => "-".to_owned(),
            LiveTableCell::Share(millis) => quantity::processors(*millis),
            LiveTableCell::Count(count) => count.to_string(),
            LiveTableCell::Bytes(bytes) => quantity::bytes(*bytes),
            LiveTableCell::Rate(rate) => quantity::rate(*rate),
            LiveTableCell::Time(nanos) => quantity::nanos(*nanos),
            LiveTableCell::Loss(parts) => Probability::from_parts_per_billion(*parts)
                .map_or_else(|| parts.to_string(), quantity::loss),
            LiveTableCell::Traced(mean) => format!("trace {}", mean.text()),
            LiveTableCell::Missing => "-".to_owned(),
        }
    }

    /// Which comes first: numbers by size, words as people count (`client-2` before `client-10`).
    pub(super) fn order(&self, other: &LiveTableCell) -> Ordering {
        match (self, other) {
            (LiveTableCell::Text(one), LiveTableCell::Text(two)) => natural(one, two),
            _ => self.number().cmp(&other.number()),
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            LiveTableCell::Count(number)
            | LiveTableCell::Bytes(number)
            | LiveTableCell::Rate(number)
            | LiveTableCell::Time(number)
            | LiveTableCell::Share(number) => Some(*number),
            LiveTableCell::Loss(parts) => Some(u64::from(*parts)),
            LiveTableCell::Traced(mean) => mean.number(),
            LiveTableCell::Text(_) | LiveTableCell::Missing => None,
        }
    }
}

fn natural(one: &str, two: &str) -> Ordering {
    let (mut one, mut two) = (one.chars().peekable(), two.chars().peekable());
    loop {
        let (Some(a), Some(b)) = (one.peek().copied(), two.peek().copied()) else {
            return one.peek().is_some().cmp(&two.peek().is_some());
        };
        let order = if a.is_ascii_digit() && b.is_ascii_digit() {
            digits(&mut one).cmp(&digits(&mut two))
        } else {
            one.next();
            two.next();
            a.cmp(&b)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// The number that comes next: of more digits is larger, then digit by digit.
fn digits(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> (usize, String) {
    let mut number = String::new();
    while let Some(digit) = text.next_if(char::is_ascii_digit) {
        number.push(digit);
    }
    let number = number.trim_start_matches('0').to_owned();
    (number.len(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = ["client-10", "client-2", "b", "client-2a", "client", "client-002"];
        names.sort_by(|one, two| natural(one, two));
        assert_eq!(names, ["b", "client", "client-2", "client-002", "client-2a", "client-10"]);
    }

    #[test]
    fn figures_are_short_and_nothing_is_a_dash() {
        let texts = [
            LiveTableCell::Rate(48_712_345),
            LiveTableCell::Bytes(305_500),
            LiveTableCell::Time(231_900_000),
            LiveTableCell::Loss(10_000_000),
            LiveTableCell::Count(0),
            LiveTableCell::Traced(Box::new(LiveTableCell::Rate(4_000_000))),
            LiveTableCell::Missing,
        ]
        .map(|cell| cell.text());
        let wanted = ["48.71mbit", "305.5KB", "231.9ms", "1%", "-", "trace 4mbit", "-"];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn a_missing_value_comes_before_every_number() {
        assert_eq!(LiveTableCell::Missing.order(&LiveTableCell::Rate(0)), Ordering::Less);
        assert_eq!(
            LiveTableCell::Rate(2).order(&LiveTableCell::Traced(Box::new(LiveTableCell::Rate(1)))),
            Ordering::Greater
        );
    }
}
