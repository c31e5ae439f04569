//! One heap of wake-ups for all lanes, with one entry for each activity of a lane.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;

use windtunnel_model::Time;

/// What a lane may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneActivity {
    /// The next packet that is offered but not there yet.
    Ingress,
    /// The rate's next end of a transmission.
    Server,
    /// The next packet to come out of the delay.
    Delay,
    /// The next question of the router that sends by this lane to a LAN, or the end of its
    /// patience.
    Ask,
}

/// A wake-up that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneWakeUp {
    pub(crate) at: Time,
    /// Lane index.
    pub(crate) lane: u32,
    pub(crate) activity: LaneActivity,
}

/// When each activity of one lane is to be woken; what the heap holds besides is stale.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LaneWakeUpTimes([Option<Time>; 4]);

impl LaneWakeUpTimes {
    /// Wakes `activity` of `lane` at `at`, and no more at another time.
    #[inline]
    pub(crate) fn set(
        &mut self,
        timers: &mut TimerHeap,
        lane: u32,
        activity: LaneActivity,
        at: Time,
    ) {
        let slot = &mut self.0[activity as usize];
        if *slot != Some(at) {
            *slot = Some(at);
            timers.push(LaneWakeUp { at, lane, activity });
        }
    }

    /// Whether this wake-up is the one that was set; then it is no more.
    #[inline]
    pub(crate) fn take(&mut self, due: &LaneWakeUp) -> bool {
        let slot = &mut self.0[due.activity as usize];
        let real = *slot == Some(due.at);
        if real {
            *slot = None;
        }
        real
    }

    #[inline]
    fn expects(&self, due: &LaneWakeUp) -> bool {
        self.0[due.activity as usize] == Some(due.at)
    }
}

/// The heap, by time and then by the order in which the wake-ups were set.
///
/// A lane that is woken mostly waits for something else at once. So the place of the wake-up that
/// was taken stays open, and the next one that is set goes there: one way down the heap instead of
/// two.
#[derive(Debug, Default)]
pub(crate) struct TimerHeap {
    heap: BinaryHeap<TimerHeapEntry>,
    sequence: u64,
    /// Whether the top has been taken. INVARIANT: not between two calls of the engine.
    open: bool,
}

impl TimerHeap {
    /// Takes the next wake-up that is due at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<LaneWakeUp> {
        self.close();
        let due = self.heap.peek()?.due;
        self.open = due.at <= now;
        self.open.then_some(due)
    }

    /// When the next wake-up is due.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.due.at)
    }

    /// Removes stale wake-ups from the top, so that no wake-up is in vain.
    pub(crate) fn prune<'a>(&mut self, alarms: impl Fn(u32) -> &'a LaneWakeUpTimes) {
        self.close();
        while let Some(TimerHeapEntry { due, .. }) = self.heap.peek() {
            if alarms(due.lane).expects(due) {
                return;
            }
            self.heap.pop();
        }
    }

    /// Wake-ups in the heap.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Wake-ups that were ever set.
    #[cfg(test)]
    pub(crate) fn ever_set(&self) -> u64 {
        self.sequence
    }

    /// Gives up the place of the wake-up that was taken.
    fn close(&mut self) {
        if core::mem::take(&mut self.open) {
            self.heap.pop();
        }
    }

    fn push(&mut self, due: LaneWakeUp) {
        let entry = TimerHeapEntry { due, sequence: self.sequence };
        self.sequence += 1;
        if core::mem::take(&mut self.open)
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = entry;
            return;
        }
        self.heap.push(entry);
    }
}

/// A wake-up in the heap.
#[derive(Debug, Clone, Copy)]
struct TimerHeapEntry {
    due: LaneWakeUp,
    sequence: u64,
}

impl TimerHeapEntry {
    /// One number, so that to compare is one step.
    fn key(&self) -> u128 {
        u128::from(self.due.at.as_nanos()) << 64 | u128::from(self.sequence)
    }
}

impl PartialEq for TimerHeapEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for TimerHeapEntry {}

impl PartialOrd for TimerHeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimerHeapEntry {
    /// The other way round: a `BinaryHeap` gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
