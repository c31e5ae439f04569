//! Packets that wait for a time: a queue for those in order, and a heap for the few that are not.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Ordering;

use windtunnel_model::Time;

/// Things with the times at which they come out; those of one time come out as they went in.
#[derive(Debug)]
pub(crate) struct TimeQueue<T> {
    /// INVARIANT: times do not decrease.
    queue: VecDeque<TimeQueueEntry<T>>,
    aside: BinaryHeap<TimeQueueEntry<T>>,
    sequence: u64,
}

impl<T> TimeQueue<T> {
    pub(crate) fn new() -> Self {
        TimeQueue { queue: VecDeque::new(), aside: BinaryHeap::new(), sequence: 0 }
    }

    /// Puts something in that comes out at `at`.
    pub(crate) fn push(&mut self, at: Time, item: T) {
        let entry = self.entry(at, item);
        if self.queue.back().is_none_or(|last| last.at <= at) {
            self.queue.push_back(entry);
        } else {
            self.aside.push(entry);
        }
    }

    /// As `push`, for what others are expected to overtake.
    pub(crate) fn push_aside(&mut self, at: Time, item: T) {
        let entry = self.entry(at, item);
        self.aside.push(entry);
    }

    /// When the next comes out.
    pub(crate) fn next(&self) -> Option<Time> {
        let queue = self.queue.front().map(|entry| entry.at);
        let aside = self.aside.peek().map(|entry| entry.at);
        queue.into_iter().chain(aside).min()
    }

    /// Takes the next that comes out at `now` or before.
    pub(crate) fn pop(&mut self, now: Time) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        let aside_first = match (self.queue.front(), self.aside.peek()) {
            (Some(queue), Some(aside)) => aside.key() < queue.key(),
            (queue, _) => queue.is_none(),
        };
        let entry = if aside_first { self.aside.pop() } else { self.queue.pop_front() };
        entry.map(|entry| entry.item)
    }

    fn entry(&mut self, at: Time, item: T) -> TimeQueueEntry<T> {
        self.sequence += 1;
        TimeQueueEntry { at, sequence: self.sequence, item }
    }
}

#[derive(Debug)]
struct TimeQueueEntry<T> {
    at: Time,
    sequence: u64,
    item: T,
}

impl<T> TimeQueueEntry<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl<T> PartialEq for TimeQueueEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for TimeQueueEntry<T> {}

impl<T> PartialOrd for TimeQueueEntry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for TimeQueueEntry<T> {
    /// The other way round: a `BinaryHeap` gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_by_time_and_then_in_order() {
        let at = Time::from_nanos;
        let mut line = TimeQueue::new();
        line.push(at(5), 'a');
        line.push(at(9), 'd');
        line.push(at(5), 'b');
        line.push_aside(at(5), 'c');
        assert_eq!(line.next(), Some(at(5)));
        let out: String = std::iter::from_fn(|| line.pop(at(9))).collect();
        assert_eq!(out, "abcd");
        line.push(at(3), 'x');
        assert_eq!(line.pop(at(2)), None);
        assert_eq!(line.next(), Some(at(3)));
    }
}
