//! The time of a request, attributed from its end backwards.
//!
//! INVARIANT: what is attributed and what is left make up the whole: [`LatencyAttribution::back_to`] is the only
//! way to attribute, it goes on where it stopped, and it never goes beyond the begin.

use super::part::LatencyComponent;

/// A stretch of time with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencySegment {
    pub from: u64,
    pub to: u64,
    pub part: LatencyComponent,
}

/// A walk from the end of a request to its begin.
#[derive(Debug)]
pub(crate) struct LatencyAttribution {
    begin: u64,
    now: u64,
    /// The latest first.
    stretches: Vec<LatencySegment>,
}

impl LatencyAttribution {
    /// At the end of `begin..end`.
    pub(crate) fn new(begin: u64, end: u64) -> LatencyAttribution {
        LatencyAttribution { begin: begin.min(end), now: end, stretches: Vec::new() }
    }

    /// Attributes the time from `time` to where the walk is. Times that lie later than that change
    /// nothing; those before the begin lead to the begin.
    pub(crate) fn back_to(&mut self, time: u64, part: LatencyComponent) {
        let time = time.max(self.begin);
        if time >= self.now {
            return;
        }
        match self.stretches.last_mut() {
            Some(last) if last.part == part => last.from = time,
            _ => self.stretches.push(LatencySegment { from: time, to: self.now, part }),
        }
        self.now = time;
    }

    /// Where it is.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        self.now <= self.begin
    }

    /// Attributes the rest, and returns all stretches, the earliest first.
    pub(crate) fn finish(mut self, part: LatencyComponent) -> Vec<LatencySegment> {
        self.back_to(self.begin, part);
        self.stretches.reverse();
        self.stretches
    }
}
