//! When entries' times are over.
//!
//! Each entry is looked at once at a time that is not after its end. If its end has been put off
//! until then, as each packet does, it is looked at again at the new end: so a packet costs nothing
//! here, and an entry ends exactly when its time is over.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use windtunnel_model::Time;

/// Entries in the order in which they are looked at.
#[derive(Debug, Default)]
pub(crate) struct ExpiryQueue {
    looks: BinaryHeap<Reverse<(Time, u32, u32)>>,
    /// Distinguishes entries of one number.
    generation: u32,
}

/// The end of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    /// When its time is over.
    pub(crate) at: Time,
    /// When it is looked at.
    look: Time,
    generation: u32,
}

impl ExpiryQueue {
    /// A new entry ends then.
    pub(crate) fn begin(&mut self, number: u32, at: Time) -> Deadline {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        self.looks.push(Reverse((at, number, generation)));
        Deadline { at, look: at, generation }
    }

    /// An entry ends then instead.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, deadline: &mut Deadline, at: Time) {
        deadline.at = at;
        if at < deadline.look {
            deadline.look = at;
            self.looks.push(Reverse((at, number, deadline.generation)));
        }
    }

    /// When something is to be looked at.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.looks.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next entry that is to be looked at by `now`; it may be gone, or another one now.
    pub(crate) fn look(&mut self, now: Time) -> Option<ExpiryQueueEntry> {
        let Reverse((at, number, generation)) = *self.looks.peek()?;
        if at > now {
            return None;
        }
        self.looks.pop();
        Some(ExpiryQueueEntry { at, number, generation })
    }

    /// Whether the time of the entry is over that has this deadline; else it is looked at again.
    pub(crate) fn is_over(
        &mut self,
        now: Time,
        look: &ExpiryQueueEntry,
        deadline: &mut Deadline,
    ) -> bool {
        if (deadline.generation, deadline.look) != (look.generation, look.at) {
            return false;
        }
        if deadline.at <= now {
            return true;
        }
        deadline.look = deadline.at;
        self.looks.push(Reverse((deadline.at, look.number, look.generation)));
        false
    }
}

/// An entry that is to be looked at.
#[derive(Debug)]
pub(crate) struct ExpiryQueueEntry {
    pub(crate) number: u32,
    at: Time,
    generation: u32,
}

impl Deadline {
    /// Of an entry that has none yet.
    pub(crate) const NEVER: Deadline = Deadline { at: Time::ZERO, look: Time::ZERO, generation: 0 };
}
