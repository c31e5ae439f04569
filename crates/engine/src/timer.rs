//! One heap of wake-ups for all lanes, with one entry for each activity of a lane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windtunnel_model::Time;

/// What a lane may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    /// The next packet that is offered but not there yet.
    Ingress,
    /// The rate's next end of a transmission.
    Server,
    /// The next packet to come out of the delay.
    Delay,
    /// The next question of the router that sends by this lane to a LAN, or the end of its patience.
    Ask,
}

/// A wake-up that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) at: Time,
    /// Lane index.
    pub(crate) lane: u32,
    pub(crate) activity: Activity,
}

/// When each activity of one lane is to be woken; what the heap holds besides is stale.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Alarms([Option<Time>; 4]);

impl Alarms {
    /// Wakes `activity` of `lane` at `at`, and no more at another time.
    pub(crate) fn set(&mut self, timers: &mut Timers, lane: u32, activity: Activity, at: Time) {
        let slot = &mut self.0[activity as usize];
        if *slot != Some(at) {
            *slot = Some(at);
            timers.push(Due { at, lane, activity });
        }
    }

    /// Whether this wake-up is the one that was set; then it is no more.
    pub(crate) fn take(&mut self, due: &Due) -> bool {
        let slot = &mut self.0[due.activity as usize];
        let real = *slot == Some(due.at);
        if real {
            *slot = None;
        }
        real
    }

    fn expects(&self, due: &Due) -> bool {
        self.0[due.activity as usize] == Some(due.at)
    }
}

/// The heap, by time and then by the order in which the wake-ups were set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, u32, Activity)>>,
    sequence: u64,
}

impl Timers {
    /// Takes the next wake-up that is due at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Due> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        let Reverse((at, _, lane, activity)) = self.heap.pop()?;
        Some(Due { at, lane, activity })
    }

    /// When the next wake-up is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Removes stale wake-ups from the top, so that nobody is woken for nothing.
    pub(crate) fn prune<'a>(&mut self, alarms: impl Fn(u32) -> &'a Alarms) {
        while let Some(Reverse((at, _, lane, activity))) = self.heap.peek() {
            let due = Due { at: *at, lane: *lane, activity: *activity };
            if alarms(due.lane).expects(&due) {
                return;
            }
            self.heap.pop();
        }
    }

    fn push(&mut self, due: Due) {
        self.heap.push(Reverse((due.at, self.sequence, due.lane, due.activity)));
        self.sequence += 1;
    }
}
