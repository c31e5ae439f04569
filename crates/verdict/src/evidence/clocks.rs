//! How well the clocks of the other machines of a run are known on this one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windtunnel_control::part::MemberClock;
use windtunnel_model::Span;
use windtunnel_model::word::ClockSource;

/// By member: the worst of what was known of its clock during the run; before, the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberClockBounds(#[serde(with = "crate::pairs")] BTreeMap<u16, MemberClockBound>);

/// What is known of another machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberClockBound {
    /// Nanoseconds by which it is ahead, about.
    pub ahead_ns: i64,
    /// That is wrong by no more than this.
    pub error: Span,
    pub by: ClockSource,
}

impl MemberClockBounds {
    /// The agent has said how clocks stand. `has_begun`: packets are given their times by them.
    pub fn note(&mut self, clocks: &[MemberClock], has_begun: bool) {
        for &MemberClock { member, ahead_ns, error_ns, by } in clocks {
            let bound = MemberClockBound { ahead_ns, error: Span::from_nanos(error_ns), by };
            let known = self.0.entry(member).or_insert(bound);
            if !has_begun || bound.error > known.error {
                *known = bound;
            }
        }
    }

    /// What is known of a member's clock.
    pub fn of(&self, member: u16) -> Option<MemberClockBound> {
        self.0.get(&member).copied()
    }

    /// Members whose clocks are known.
    pub fn members(&self) -> impl Iterator<Item = u16> {
        self.0.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bound_before_the_run_and_the_worst_in_it_count() {
        let mut clocks = MemberClockBounds::default();
        let mut note = |error_ns, has_begun| {
            let by = ClockSource::Exchanges;
            clocks.note(&[MemberClock { member: 2, ahead_ns: 7, error_ns, by }], has_begun);
            clocks.of(2).unwrap().error.as_nanos()
        };
        assert_eq!(note(9_000, false), 9_000);
        assert_eq!(note(300, false), 300, "first exchanges are coarse");
        assert_eq!(note(200, true), 300);
        assert_eq!(note(400, true), 400);
        assert_eq!(clocks.of(1), None);
    }
}
