//! CoDel: when packets have waited too long for too long, some are dropped or marked at the head.
//!
//! - **Parameters**: `target`, the acceptable standing delay (default 5 ms); `interval`, how long
//!   the delay may stay above it (default 100 ms); `ecn`, whether packets of ECN-capable senders
//!   are marked instead of dropped (default true). The queue's limit holds as with drop-tail.
//! - **Time**: unchanged for those that stay. **Order**: unchanged. **Bytes**: the ECN field of
//!   marked ones. Trains stay whole while none of their segments waits as long as the target.
//! - **Drop reasons**: `aqm`; `queue_full` at the limit.
//! - **Model**: RFC 8289, section 5, its pseudo-code turned inside out: the queue asks about one
//!   packet after the other, and `step` remembers why it asks. Marks follow Linux's `codel_impl.h`:
//!   a mark counts as a drop and ends the round. The square root is of integers, rounded down to a
//!   nanosecond.

use windtunnel_model::profile::CodelParameters as Setting;
use windtunnel_model::{Span, Time};

use super::decision::{DequeueVerdict, Head, Overflow};

#[derive(Debug)]
pub(super) struct CodelDiscipline {
    setting: Setting,
    /// When the delay will have been above the target for an interval; `None`: it is below.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u64,
    count_last: u64,
    step: CodelDequeuePhase,
}

/// Why the queue asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodelDequeuePhase {
    /// The line is free.
    Fresh,
    /// A packet was dropped in the dropping state.
    Dropped,
    /// A packet was dropped to enter the dropping state.
    Entering,
}

impl CodelDiscipline {
    pub(super) fn new(setting: Setting) -> Self {
        CodelDiscipline {
            setting,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            count_last: 0,
            step: CodelDequeuePhase::Fresh,
        }
    }

    pub(super) fn overflow(&self) -> Overflow {
        Overflow::Newcomer
    }

    pub(super) fn inspect(&mut self, head: &Head) -> DequeueVerdict {
        let above = self.is_above_for_long(head);
        match core::mem::replace(&mut self.step, CodelDequeuePhase::Fresh) {
            CodelDequeuePhase::Fresh if self.dropping => {
                self.dropping = above;
                self.go_on(head)
            }
            CodelDequeuePhase::Dropped => {
                self.dropping = above;
                if above {
                    self.drop_next = self.control_law(self.drop_next);
                }
                self.go_on(head)
            }
            CodelDequeuePhase::Fresh if above && self.marks(head) => {
                self.enter(head.now);
                DequeueVerdict::Mark
            }
            CodelDequeuePhase::Fresh if above => {
                self.step = CodelDequeuePhase::Entering;
                DequeueVerdict::Drop
            }
            CodelDequeuePhase::Fresh => self.pass(head),
            CodelDequeuePhase::Entering => {
                self.enter(head.now);
                DequeueVerdict::Pass(1)
            }
        }
    }

    /// As if a `dodequeue` of the RFC found nothing.
    pub(super) fn emptied(&mut self, now: Time) {
        self.first_above = None;
        match core::mem::replace(&mut self.step, CodelDequeuePhase::Fresh) {
            CodelDequeuePhase::Entering => self.enter(now),
            CodelDequeuePhase::Fresh | CodelDequeuePhase::Dropped => self.dropping = false,
        }
    }

    /// The second half of the RFC's `dodequeue`: whether it is `ok_to_drop`.
    fn is_above_for_long(&mut self, head: &Head) -> bool {
        if head.waited < self.setting.target || head.behind <= head.packet_max {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(head.now + self.setting.interval);
                false
            }
            Some(time) => head.now >= time,
        }
    }

    /// The loop of the dropping state.
    fn go_on(&mut self, head: &Head) -> DequeueVerdict {
        if !self.dropping || head.now < self.drop_next {
            return self.pass(head);
        }
        self.count += 1;
        if self.marks(head) {
            self.drop_next = self.control_law(self.drop_next);
            return DequeueVerdict::Mark;
        }
        self.step = CodelDequeuePhase::Dropped;
        DequeueVerdict::Drop
    }

    /// Enters the dropping state, with the rate of the last time if that was not long ago.
    fn enter(&mut self, now: Time) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.count_last);
        let recent = self.setting.interval.as_nanos().saturating_mul(16);
        let soon = now.since(self.drop_next).as_nanos() < recent;
        self.count = if delta > 1 && soon { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.count_last = self.count;
    }

    fn pass(&self, head: &Head) -> DequeueVerdict {
        let quiet = !self.dropping && self.first_above.is_none();
        let below = head.waited_last < self.setting.target || head.behind <= head.packet_max;
        DequeueVerdict::Pass(if quiet && below { head.part } else { 1 })
    }

    fn marks(&self, head: &Head) -> bool {
        self.setting.ecn && head.ecn
    }

    /// `from` + interval / √count.
    fn control_law(&self, from: Time) -> Time {
        let interval = u128::from(self.setting.interval.as_nanos());
        let step = (interval * interval / u128::from(self.count.max(1))).isqrt();
        from + Span::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
    }
}
