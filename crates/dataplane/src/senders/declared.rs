//! What programs have declared that they will send, until it is met on the network.
//!
//! Datagrams of the same port and digest are alike for everybody who receives them: which of two
//! such is whose cannot be seen from outside, so they are taken in the order in which they were
//! declared. What is dropped on its way through the node leaves an entry behind that is forgotten after
//! a second, and shifts nothing.

use std::collections::{BTreeMap, VecDeque};

use windtunnel_model::record::{EventRecord, sends};
use windtunnel_model::{Span, Time};

/// By what a datagram is found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DatagramDigest {
    /// Its source port.
    pub(super) port: u16,
    pub(super) digest: u64,
}

#[derive(Debug, Default)]
pub(super) struct DeclaredDatagrams {
    /// Of each datagram: when it was declared, and by the program of which class.
    entries: BTreeMap<DatagramDigest, VecDeque<(Time, u32)>>,
    /// All that was declared, as it was received, also what has been found since.
    received: VecDeque<(Time, DatagramDigest)>,
}

impl DeclaredDatagrams {
    /// Takes what the program of a class has declared.
    pub(super) fn take(&mut self, class: u32, record: &EventRecord) {
        let (port, digest) = sends::datagram(record);
        let (datagram, time) = (DatagramDigest { port, digest }, Time::from_nanos(record.time));
        match record.kind {
            sends::SENDING => self.add(datagram, time, class),
            sends::FAILED => self.withdraw(datagram, class),
            _ => {}
        }
    }

    /// The class of whose program has declared this datagram first.
    pub(super) fn find(&mut self, datagram: DatagramDigest) -> Option<u32> {
        let entries = self.entries.get_mut(&datagram)?;
        let (_, class) = entries.pop_front()?;
        if entries.is_empty() {
            self.entries.remove(&datagram);
        }
        Some(class)
    }

    /// Forgets what was declared too long ago.
    pub(super) fn forget(&mut self, now: Time) {
        while let Some((time, datagram)) = self.received.front().copied() {
            if now.since(time) < KEPT && self.received.len() <= ENTRIES_MOST {
                return;
            }
            self.received.pop_front();
            let Some(entries) = self.entries.get_mut(&datagram) else { continue };
            entries.retain(|(declared, _)| *declared != time);
            if entries.is_empty() {
                self.entries.remove(&datagram);
            }
        }
    }

    fn add(&mut self, datagram: DatagramDigest, time: Time, class: u32) {
        let entries = self.entries.entry(datagram).or_default();
        // Rings are read one after the other; what was declared in them is in order.
        let later = entries.iter().rev().take_while(|(other, _)| *other > time).count();
        entries.insert(entries.len() - later, (time, class));
        self.received.push_back((time, datagram));
    }

    fn withdraw(&mut self, datagram: DatagramDigest, class: u32) {
        let Some(entries) = self.entries.get_mut(&datagram) else { return };
        if let Some(last) = entries.iter().rposition(|(_, of)| *of == class) {
            entries.remove(last);
        }
        if entries.is_empty() {
            self.entries.remove(&datagram);
        }
    }
}

/// A datagram that was declared is on the network sooner than that, or never.
const KEPT: Span = Span::from_secs(1);
/// Entries that are kept at a time; the oldest make room.
const ENTRIES_MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    const A: DatagramDigest = datagram(1);
    const B: DatagramDigest = datagram(2);

    const fn datagram(digest: u64) -> DatagramDigest {
        DatagramDigest { port: 7000, digest }
    }

    fn record(at_ms: u64, kind: u8, datagram: DatagramDigest) -> EventRecord {
        sends::entry(at_ms * 1_000_000, kind, datagram.port, datagram.digest)
    }

    fn sending(at_ms: u64, datagram: DatagramDigest) -> EventRecord {
        record(at_ms, sends::SENDING, datagram)
    }

    #[test]
    fn datagrams_that_are_alike_are_found_in_the_order_in_which_they_were_declared() {
        let mut declared = DeclaredDatagrams::default();
        [1, 4, 5].into_iter().for_each(|at| declared.take(0, &sending(at, A)));
        [2, 3, 6].into_iter().for_each(|at| declared.take(1, &sending(at, A)));
        let found: Vec<Option<u32>> = (0..7).map(|_| declared.find(A)).collect();
        assert_eq!(found, [Some(0), Some(1), Some(1), Some(0), Some(0), Some(1), None]);
    }

    #[test]
    fn what_is_lost_on_its_way_shifts_nothing() {
        let mut declared = DeclaredDatagrams::default();
        // Each second one is lost, of either program.
        for at in 0..100 {
            declared.take(u32::from(at % 3 == 0), &sending(at, datagram(at)));
        }
        for at in (0..100).step_by(2) {
            assert_eq!(declared.find(datagram(at)), Some(u32::from(at % 3 == 0)));
        }
    }

    #[test]
    fn a_call_that_failed_takes_back_the_last_entry_of_its_own_program() {
        let mut declared = DeclaredDatagrams::default();
        declared.take(1, &sending(1, A));
        declared.take(0, &sending(2, A));
        declared.take(1, &sending(3, A));
        declared.take(1, &record(4, sends::FAILED, A));
        declared.take(1, &record(4, sends::FAILED, B));
        assert_eq!(
            [declared.find(A), declared.find(A), declared.find(A)],
            [Some(1), Some(0), None]
        );
    }

    #[test]
    fn what_is_not_met_within_a_second_is_forgotten() {
        let mut declared = DeclaredDatagrams::default();
        declared.take(0, &sending(10, A));
        declared.take(1, &sending(500, A));
        declared.forget(Time::from_nanos(1_009_000_000));
        assert_eq!(declared.entries[&A].len(), 2);
        declared.forget(Time::from_nanos(1_010_000_000));
        assert_eq!(declared.find(A), Some(1));
        declared.forget(Time::from_nanos(3_000_000_000));
        assert!(declared.received.is_empty() && declared.entries.is_empty());
    }

    #[test]
    fn more_than_the_most_make_room_and_kinds_that_are_not_known_say_nothing() {
        let mut declared = DeclaredDatagrams::default();
        declared.take(0, &record(1, 77, A));
        for at in 0..70_000 {
            declared.take(0, &sending(1, datagram(at)));
            declared.forget(Time::from_nanos(1_000_000));
        }
        assert_eq!(declared.entries.len(), ENTRIES_MOST);
        assert_eq!((declared.find(datagram(0)), declared.find(datagram(69_999))), (None, Some(0)));
    }
}
