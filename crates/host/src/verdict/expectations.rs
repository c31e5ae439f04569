//! What the file expects, beside what was seen.

mod link;
mod path;
mod program;

use windtunnel_model::expect::{Bounds, Claim, Expectation as Asked};
use windtunnel_model::{Rate, Span, Time};
use windtunnel_trace::rate::Stretch;
use windtunnel_trace::report::Expectation;

use super::{Evidence, rounded};
pub(super) use program::ending;

/// What was seen, in words, and whether it is what was asked.
struct Found {
    /// What it is about, the figure included.
    about: String,
    asked: String,
    seen: String,
    met: bool,
    look: String,
}

/// Every expectation of the plan, checked.
pub(super) fn check(evidence: &Evidence<'_>) -> Vec<Expectation> {
    let asked = evidence.plan.expectations.iter().enumerate();
    asked.map(|(index, asked)| check_one(evidence, index, asked)).collect()
}

fn check_one(evidence: &Evidence<'_>, index: usize, asked: &Asked) -> Expectation {
    let window = asked.window;
    let mut found = match &asked.claim {
        Claim::Program { nodes, fact } => program::check(evidence, index, nodes, fact),
        Claim::Path { from, to, fact, .. } => path::check(evidence, asked, (*from, *to), fact),
        Claim::Link { lane, fact } => link::check(evidence, window, *lane, fact),
    };
    if let Some(window) = window {
        found.about.push_str(&format!(", {window}"));
        let elapsed = evidence.elapsed;
        if elapsed <= window.from {
            let ended = rounded(elapsed);
            (found.met, found.seen) = (false, format!("the run ended at {ended}, before that"));
            found.look = "events.jsonl: the last lines tell why the run ended".to_owned();
        } else if window.to.is_some_and(|to| elapsed + EARLY < to) {
            found.seen.push_str(&format!("; the run ended at {}", rounded(elapsed)));
        }
    }
    let Found { about, asked: bounds, seen, met, look } = found;
    Expectation { line: asked.line, about, asked: bounds, seen, met, look }
}

/// Whether a rate is within bounds; nothing at all is zero.
fn allows(bounds: &Bounds<Rate>, bits_per_second: u64) -> bool {
    match Rate::from_bits_per_second(bits_per_second) {
        Some(rate) => bounds.allow(&rate),
        None => bounds.min.is_none(),
    }
}

fn megabits(bits_per_second: u64) -> String {
    let kilobits = bits_per_second / 1000;
    format!("{}.{:03}mbit", kilobits / 1000, kilobits % 1000)
}

/// A share in parts per billion, as percent with three decimals.
fn percent(ppb: u64) -> String {
    let thousandths = ppb / 10_000;
    format!("{}.{:03}%", thousandths / 1000, thousandths % 1000)
}

/// `part` of `whole` in parts per billion; `None` of nothing.
fn share(part: u64, whole: u64) -> Option<u64> {
    let scaled = u128::from(part) * 1_000_000_000;
    scaled.checked_div(u128::from(whole)).and_then(|ppb| u64::try_from(ppb).ok())
}

/// Whether a share in parts per billion is within bounds.
fn allows_share(bounds: &Bounds<windtunnel_model::Probability>, ppb: u64) -> bool {
    let of = |bound: windtunnel_model::Probability| u64::from(bound.parts_per_billion());
    Bounds { min: bounds.min.map(of), max: bounds.max.map(of) }.allow(&ppb)
}

/// A time of the run: `12.300`.
fn seconds(at: Span) -> String {
    windtunnel_trace::moment::seconds(at.as_nanos())
}

/// When a stretch was.
fn when(stretch: &Stretch) -> String {
    let at = |time: Time| seconds(time.since(Time::ZERO));
    format!("{}s to {}s", at(stretch.from), at(stretch.to))
}

/// A run that ends so little before a window's end has filled it.
const EARLY: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_with_the_digits_that_bounds_need() {
        assert_eq!(percent(10_000_000), "1.000%");
        assert_eq!(percent(1_234_567), "0.123%");
        assert_eq!(share(1, 3), Some(333_333_333));
        assert_eq!(share(0, 0), None);
    }

    #[test]
    fn a_rate_of_nothing_meets_only_what_has_no_least() {
        let bounds = |min: Option<&str>, max: Option<&str>| Bounds {
            min: min.map(|text| text.parse().unwrap()),
            max: max.map(|text| text.parse().unwrap()),
        };
        assert!(allows(&bounds(None, Some("1mbit")), 0));
        assert!(!allows(&bounds(Some("1bit"), None), 0));
        assert!(allows(&bounds(Some("1mbit"), Some("1mbit")), 1_000_000));
    }
}
