//! When the packet loop has fallen behind: more work than the machine gives it processor time for.

use serde::{Deserialize, Serialize};
use windtunnel_model::{Span, Time};

/// Distinguishes overload from a stall. After a stall (a late wake-up, a lost processor) the loop
/// has caught up after a turn or two; under overload each turn begins as far behind as the one
/// before, or further.
#[derive(Debug)]
pub(super) struct Overload {
    /// Behind by more than this counts.
    bound: Span,
    /// Turns in a row that began too far behind.
    turns: u32,
    /// The furthest behind of these.
    behind: Span,
    /// When the last of these began.
    last: Time,
    /// When the present overload began.
    since: Option<Time>,
    origin: Time,
    totals: OverloadSummary,
    stalls: PacketLoopStalls,
}

/// All overloads of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverloadSummary {
    /// How many there were.
    pub times: u64,
    /// How long they lasted together.
    pub lasted: Span,
    /// How far the loop was behind at the worst.
    pub furthest: Span,
}

/// All stalls of a run: the loop stood still for longer than makes a packet late, and caught up at
/// once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLoopStalls {
    /// How many there were.
    pub times: u64,
    pub longest: Span,
    /// When that was over, after the run began.
    pub at: Time,
}

impl PacketLoopStalls {
    /// Adds those of another machine.
    pub fn add(&mut self, other: &PacketLoopStalls) {
        self.times = self.times.saturating_add(other.times);
        if other.longest > self.longest {
            (self.longest, self.at) = (other.longest, other.at);
        }
    }
}

/// What has changed with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverloadTransition {
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
            behind: Span::ZERO,
            last: Time::ZERO,
            since: None,
            origin: Time::ZERO,
            totals: OverloadSummary::default(),
            stalls: PacketLoopStalls::default(),
        }
    }

    /// Forgets everything: a run begins at `origin`.
    pub(super) fn begin(&mut self, origin: Time) {
        *self = Overload { bound: self.bound, origin, ..Overload::new(Span::ZERO) };
    }

    /// A turn has begun at `now`, so far `behind` its oldest work; [`Span::ZERO`]: there was none.
    pub(super) fn turn(&mut self, now: Time, behind: Span) -> Option<OverloadTransition> {
        if behind <= self.bound {
            return self.caught_up(now);
        }
        self.behind = self.behind.max(behind);
        self.last = now;
        self.turns = self.turns.saturating_add(1);
        if self.since.is_some() || self.turns < TURNS {
            return None;
        }
        self.since = Some(now);
        self.totals.times += 1;
        Some(OverloadTransition::Began(behind))
    }

    /// What there was until `now`.
    pub(super) fn totals(&self, now: Time) -> (OverloadSummary, PacketLoopStalls) {
        let (mut overloads, mut stalls) = (self.totals, self.stalls);
        match self.since {
            Some(since) => {
                overloads.lasted = overloads.lasted + now.since(since);
                overloads.furthest = overloads.furthest.max(self.behind);
            }
            None => stalls.add(&self.stall()),
        }
        (overloads, stalls)
    }

    fn caught_up(&mut self, now: Time) -> Option<OverloadTransition> {
        let stall = self.stall();
        let behind = std::mem::take(&mut self.behind);
        self.turns = 0;
        let Some(since) = self.since.take() else {
            self.stalls.add(&stall);
            return None;
        };
        let lasted = now.since(since);
        self.totals.lasted = self.totals.lasted + lasted;
        self.totals.furthest = self.totals.furthest.max(behind);
        Some(OverloadTransition::Ended(lasted))
    }

    /// What the last turns were, if they were not an overload.
    fn stall(&self) -> PacketLoopStalls {
        let longest = self.behind;
        let times = u64::from(longest.as_nanos() > self.bound.as_nanos().saturating_mul(2));
        match times {
            0 => PacketLoopStalls::default(),
            _ => PacketLoopStalls { times, longest, at: Time::ZERO + self.last.since(self.origin) },
        }
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
    fn a_stall_that_two_turns_make_good_is_not_an_overload() {
        let mut overload = Overload::new(Span::from_millis(1));
        assert_eq!(overload.turn(at(0), Span::from_millis(9)), None);
        assert_eq!(overload.turn(at(100), Span::from_millis(4)), None);
        assert_eq!(overload.turn(at(200), Span::from_micros(499)), None);
        assert_eq!(overload.turn(at(300), Span::from_millis(9)), None);
        let (overloads, stalls) = overload.totals(at(400));
        assert_eq!(overloads, OverloadSummary::default());
        let longest = Span::from_millis(9);
        assert_eq!(stalls, PacketLoopStalls { times: 2, longest, at: at(100) });
    }

    #[test]
    fn reports_of_overloads_and_of_stalls_agree() {
        let mut overload = Overload::new(Span::from_millis(1));
        overload.begin(at(1000));
        // Half a bound behind makes nothing late: it is not a stall.
        overload.turn(at(1500), Span::from_micros(900));
        overload.turn(at(1600), Span::ZERO);
        assert_eq!(overload.totals(at(1700)), Default::default());
        overload.turn(at(901_000), Span::from_millis(900));
        let (overloads, stalls) = overload.totals(at(901_100));
        assert_eq!((overloads.times, overloads.furthest), (0, Span::ZERO));
        assert_eq!(
            stalls,
            PacketLoopStalls { times: 1, longest: Span::from_millis(900), at: at(900_000) }
        );
    }

    #[test]
    fn an_overload_begins_once_with_the_third_turn_too_far_behind_and_ends_with_the_first_that_is_not()
     {
        let mut overload = Overload::new(Span::from_millis(1));
        let behind = Span::from_micros(501);
        assert_eq!(overload.turn(at(0), behind), None);
        assert_eq!(overload.turn(at(100), behind), None);
        assert_eq!(overload.turn(at(200), behind), Some(OverloadTransition::Began(behind)));
        assert_eq!(overload.turn(at(300), Span::from_millis(7)), None);
        assert_eq!(
            overload.turn(at(1200), Span::ZERO),
            Some(OverloadTransition::Ended(Span::from_millis(1)))
        );
        let (totals, stalls) = overload.totals(at(5000));
        let expected = OverloadSummary {
            times: 1,
            lasted: Span::from_millis(1),
            furthest: Span::from_millis(7),
        };
        assert_eq!((totals, stalls), (expected, PacketLoopStalls::default()));
    }

    #[test]
    fn an_overload_that_lasts_until_the_end_counts_to_the_end() {
        let mut overload = Overload::new(Span::from_millis(1));
        for turn in 0..5 {
            overload.turn(at(turn * 100), Span::from_millis(2));
        }
        let (overloads, stalls) = overload.totals(at(700));
        assert_eq!(overloads.lasted, Span::from_micros(500));
        assert_eq!((overloads.furthest, stalls.times), (Span::from_millis(2), 0));
        overload.begin(at(800));
        assert_eq!(overload.totals(at(900)), Default::default());
    }
}
