//! Calls that are held, by the time at which they are looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use crate::watcher::WaitingCall;

/// A call that is held.
#[derive(Debug)]
pub(crate) struct HeldCall {
    pub(crate) call: WaitingCall,
    pub(crate) until_ns: u64,
    pub(crate) readable: Option<OwnedFd>,
}

/// All of them, each by a number of its own.
#[derive(Debug, Default)]
pub(crate) struct HeldCallQueue {
    calls: BTreeMap<u64, HeldCall>,
    by_time: BTreeSet<(u64, u64)>,
}

impl HeldCallQueue {
    pub(crate) fn add(&mut self, number: u64, held: HeldCall) {
        self.by_time.insert((held.until_ns, number));
        self.calls.insert(number, held);
    }

    /// Takes out the call of a number.
    pub(crate) fn take(&mut self, number: u64) -> Option<HeldCall> {
        let held = self.calls.remove(&number)?;
        self.by_time.remove(&(held.until_ns, number));
        Some(held)
    }

    /// Takes out those whose time has come, the earliest first.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Vec<HeldCall> {
        let due = self.by_time.iter().take_while(|(until_ns, _)| *until_ns <= now_ns);
        let numbers: Vec<u64> = due.map(|(_, number)| *number).collect();
        numbers.into_iter().filter_map(|number| self.take(number)).collect()
    }

    /// Takes out those that were shown at a listener.
    pub(crate) fn take_of(&mut self, listener: u64) -> Vec<HeldCall> {
        let of = self.calls.iter().filter(|(_, held)| held.call.listener == listener);
        let numbers: Vec<u64> = of.map(|(number, _)| *number).collect();
        numbers.into_iter().filter_map(|number| self.take(number)).collect()
    }

    /// When the first is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.by_time.first().map(|(until_ns, _)| *until_ns)
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_sys::seccomp::Notification;

    use super::*;

    fn held(until_ns: u64) -> HeldCall {
        let shown = Notification { id: until_ns, thread: 1, call: 0, arguments: [0; 6] };
        let call = WaitingCall { listener: 1, door: 0, shown, since_ns: 0 };
        HeldCall { call, until_ns, readable: None }
    }

    fn due(queue: &mut HeldCallQueue, now_ns: u64) -> Vec<u64> {
        queue.take_due(now_ns).iter().map(|it| it.call.shown.id).collect()
    }

    #[test]
    fn calls_are_due_in_the_order_of_their_times() {
        let mut queue = HeldCallQueue::default();
        for (number, until_ns) in [30, 10, 20, 40].into_iter().enumerate() {
            queue.add(number as u64, held(until_ns));
        }
        assert_eq!(queue.next_ns(), Some(10));
        assert_eq!(due(&mut queue, 30), [10, 20, 30]);
        assert!(due(&mut queue, 39).is_empty());
        assert_eq!(due(&mut queue, u64::MAX), [40]);
        assert_eq!(queue.next_ns(), None);
    }

    #[test]
    fn a_call_can_be_taken_out_by_its_number() {
        let mut queue = HeldCallQueue::default();
        queue.add(7, held(10));
        assert!(queue.take(8).is_none());
        assert!(queue.take(7).is_some());
        assert!(queue.take(7).is_none());
        queue.add(8, held(10));
        assert_eq!(due(&mut queue, 10), [10]);
        assert!(queue.take(8).is_none());
    }

    #[test]
    fn the_calls_of_a_listener_can_be_taken_out() {
        let mut queue = HeldCallQueue::default();
        queue.add(1, held(10));
        queue.add(2, held(20));
        assert!(queue.take_of(7).is_empty());
        assert_eq!(queue.take_of(1).len(), 2);
        assert_eq!(queue.next_ns(), None);
    }
}
