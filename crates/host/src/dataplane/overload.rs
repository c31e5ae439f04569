//! When the packet loop has fallen behind: more work than the machine gives it processor time for.

use serde::{Deserialize, Serialize};
use windtunnel_model::{Span, Time};

/// Tells overload from a stall. After a stall (a late wake-up, a lost processor) the loop has caught up
/// after a turn or two; under overload each turn begins as far behind as the one before, or further.
#[derive(Debug)]
pub(super) struct Overload {
    /// Behind by more than this counts.
    bound: Span,
    /// Turns in a row that began too far behind.
    turns: u32,
    /// When the present overload began.
    since: Option<Time>,
    totals: Overloads,
}

/// All overloads of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overloads {
    /// How many there were.
    pub times: u64,
    /// How long they lasted together.
    pub lasted: Span,
    /// How far the loop was behind at the worst.
    pub furthest: Span,
}

/// What has changed with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// An overload has begun, so far behind.
    Began(Span),
    /// It is over; it lasted so long.
    Ended(Span),
}

impl Overload {
    /// Half of what makes a packet late: there must be time to do something about it.
    pub(super) fn new(late_above: Span) -> Self {
        Overload {
            bound: Span::from_nanos(late_above.as_nanos() / 2),
            turns: 0,
            since: None,
            totals: Overloads::default(),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Overload { bound: self.bound, ..Overload::new(Span::ZERO) };
    }

    /// A turn has begun at `now`, so far `behind` its oldest work; [`Span::ZERO`]: there was none.
    pub(super) fn turn(&mut self, now: Time, behind: Span) -> Option<Change> {
        if behind <= self.bound {
            self.turns = 0;
            let since = self.since.take()?;
            let lasted = now.since(since);
            self.totals.lasted = self.totals.lasted + lasted;
            return Some(Change::Ended(lasted));
        }
        self.totals.furthest = self.totals.furthest.max(behind);
        self.turns = self.turns.saturating_add(1);
        if self.since.is_some() || self.turns < TURNS {
            return None;
        }
        self.since = Some(now);
        self.totals.times += 1;
        Some(Change::Began(behind))
    }

    /// What there was until `now`.
    pub(super) fn totals(&self, now: Time) -> Overloads {
        let open = self.since.map_or(Span::ZERO, |since| now.since(since));
        Overloads { lasted: self.totals.lasted + open, ..self.totals }
    }
}

/// A stall leaves work for two turns: what waited, and what arrived while that was done.
const TURNS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    #[test]
    fn a_stall_that_two_turns_make_good_is_no_overload() {
        let mut overload = Overload::new(Span::from_millis(1));
        assert_eq!(overload.turn(at(0), Span::from_millis(9)), None);
        assert_eq!(overload.turn(at(100), Span::from_millis(4)), None);
        assert_eq!(overload.turn(at(200), Span::from_micros(499)), None);
        assert_eq!(overload.turn(at(300), Span::from_millis(9)), None);
        assert_eq!(overload.totals(at(400)).times, 0);
    }

    #[test]
    fn an_overload_begins_once_with_the_third_turn_too_far_behind_and_ends_with_the_first_that_is_not()
     {
        let mut overload = Overload::new(Span::from_millis(1));
        let behind = Span::from_micros(501);
        assert_eq!(overload.turn(at(0), behind), None);
        assert_eq!(overload.turn(at(100), behind), None);
        assert_eq!(overload.turn(at(200), behind), Some(Change::Began(behind)));
        assert_eq!(overload.turn(at(300), Span::from_millis(7)), None);
        assert_eq!(overload.turn(at(1200), Span::ZERO), Some(Change::Ended(Span::from_millis(1))));
        let totals = overload.totals(at(5000));
        let expected =
            Overloads { times: 1, lasted: Span::from_millis(1), furthest: Span::from_millis(7) };
        assert_eq!(totals, expected);
    }

    #[test]
    fn an_overload_that_lasts_until_the_end_counts_to_the_end() {
        let mut overload = Overload::new(Span::from_millis(1));
        for turn in 0..5 {
            overload.turn(at(turn * 100), Span::from_millis(2));
        }
        assert_eq!(overload.totals(at(700)).lasted, Span::from_micros(500));
        overload.clear();
        assert_eq!(overload.totals(at(900)), Overloads::default());
    }
}
