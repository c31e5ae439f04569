//! What the keeper has to know once the process that limits programs has gone: calls that were taken
//! from a listener and are not answered, which no other process can find any more, and streams that the
//! kernel paces.
//!
//! It is in memory that both share. Numbers of calls rise by one at each listener (`next_id` of the
//! kernel's kernel/seccomp.c), so that those which a process had just taken when it was killed are
//! among the next few after the last that it noted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windtunnel_sys::shared_words::SharedWords;

/// The ledger.
#[derive(Debug, Clone)]
pub struct SeccompCallLedger(Arc<SharedWords>);

/// The part of the process that answers calls.
#[derive(Debug)]
pub struct SeccompCallLedgerWriter {
    ledger: SeccompCallLedger,
    /// Places for calls that are free.
    free: Vec<usize>,
    /// Where a call is noted.
    places: std::collections::BTreeMap<(usize, u64), usize>,
    /// The same of streams.
    free_paced: Vec<usize>,
    paced: std::collections::BTreeMap<u64, usize>,
}

impl SeccompCallLedger {
    /// An empty one.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<SeccompCallLedger> {
        let words = LISTENERS_MAX + 2 * CALLS_MAX + 2 * PACED_MAX;
        Ok(SeccompCallLedger(Arc::new(SharedWords::new(words)?)))
    }

    /// For the process that answers calls.
    #[must_use]
    pub fn notes(&self) -> SeccompCallLedgerWriter {
        let (places, paced) = Default::default();
        SeccompCallLedgerWriter {
            ledger: self.clone(),
            free: (0..CALLS_MAX).rev().collect(),
            places,
            free_paced: (0..PACED_MAX).rev().collect(),
            paced,
        }
    }

    /// The last call that was taken from a listener.
    pub(super) fn last(&self, listener: usize) -> u64 {
        self.0.get(listener).map_or(0, |word| word.load(Ordering::Acquire))
    }

    pub(super) fn set_last(&self, listener: usize, id: u64) {
        if let Some(word) = self.0.get(listener) {
            word.store(id, Ordering::Release);
        }
    }

    /// Calls that are not answered: at which listener, and their numbers.
    pub(super) fn calls(&self) -> Vec<(usize, u64)> {
        let pairs = (0..CALLS_MAX).map(|place| self.pair(LISTENERS_MAX, place));
        let noted = pairs.filter_map(|[key, id]| {
            let listener = usize::try_from(key.load(Ordering::Acquire)).ok()?.checked_sub(1)?;
            Some((listener, id.load(Ordering::Acquire)))
        });
        noted.collect()
    }

    /// Streams that the kernel paces, by the cookie of their socket, with the rate.
    pub(super) fn paced(&self) -> Vec<(u64, u64)> {
        let pairs = (0..PACED_MAX).map(|place| self.pair(LISTENERS_MAX + 2 * CALLS_MAX, place));
        let both = pairs.map(|[a, b]| (a.load(Ordering::Acquire), b.load(Ordering::Acquire)));
        both.filter(|(cookie, rate)| *cookie != 0 && *rate != 0).collect()
    }

    fn pair(&self, from: usize, place: usize) -> [&AtomicU64; 2] {
        [&self.0[from + 2 * place], &self.0[from + 2 * place + 1]]
    }
}

impl SeccompCallLedgerWriter {
    /// A call was taken from a listener, by the order in which they came.
    pub fn take(&mut self, listener: usize, id: u64) {
        self.ledger.set_last(listener, id);
        // Without room a call would wait for ever if this process were killed meanwhile.
        let Some(place) = self.free.pop() else { return };
        let [key, number] = self.ledger.pair(LISTENERS_MAX, place);
        number.store(id, Ordering::Release);
        key.store(listener as u64 + 1, Ordering::Release);
        self.places.insert((listener, id), place);
    }

    /// A call is answered.
    pub fn answer(&mut self, listener: usize, id: u64) {
        if let Some(place) = self.places.remove(&(listener, id)) {
            let [key, _] = self.ledger.pair(LISTENERS_MAX, place);
            key.store(0, Ordering::Release);
            self.free.push(place);
        }
    }

    /// The kernel paces the stream of a socket by this rate; 0: it does not any more, or the socket is
    /// closed.
    pub fn pace(&mut self, cookie: u64, rate: u64) {
        let place = match self.paced.get(&cookie) {
            Some(place) => *place,
            None if rate == 0 => return,
            None => {
                // Without room it stays paced where this process is killed.
                let Some(place) = self.free_paced.pop() else { return };
                *self.paced.entry(cookie).or_insert(place)
            }
        };
        let [key, value] = self.ledger.pair(LISTENERS_MAX + 2 * CALLS_MAX, place);
        value.store(rate, Ordering::Release);
        if rate == 0 {
            key.store(0, Ordering::Release);
            self.paced.remove(&cookie);
            self.free_paced.push(place);
        } else {
            key.store(cookie, Ordering::Release);
        }
    }
}

/// The most processes that can be attached at once.
pub(super) const LISTENERS_MAX: usize = 4096;
/// The most calls that are noted.
const CALLS_MAX: usize = 1 << 15;
/// The most streams that are noted.
const PACED_MAX: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_noted_until_they_are_answered() {
        let ledger = SeccompCallLedger::new().unwrap();
        let mut notes = ledger.notes();
        notes.take(0, 70);
        notes.take(3, 80);
        notes.take(3, 81);
        notes.answer(3, 80);
        notes.answer(3, 99);
        assert_eq!(ledger.calls(), [(0, 70), (3, 81)]);
        assert_eq!((ledger.last(0), ledger.last(3), ledger.last(4)), (70, 81, 0));
    }

    #[test]
    fn more_calls_than_there_is_room_for_are_not_noted_and_no_other_is_lost() {
        let ledger = SeccompCallLedger::new().unwrap();
        let mut notes = ledger.notes();
        let count = CALLS_MAX as u64 + 5;
        (1..=count).for_each(|id| notes.take(0, id));
        assert_eq!((ledger.calls().len(), ledger.last(0)), (CALLS_MAX, count));
        (1..=count).for_each(|id| notes.answer(0, id));
        assert_eq!(ledger.calls(), []);
    }

    #[test]
    fn streams_that_are_paced_no_more_make_room_for_others() {
        let ledger = SeccompCallLedger::new().unwrap();
        let mut notes = ledger.notes();
        notes.pace(1, 10);
        for cookie in 2..2 * PACED_MAX as u64 {
            notes.pace(cookie, 20);
            notes.pace(cookie, 0);
        }
        assert_eq!(ledger.paced(), [(1, 10)]);
        (2..2 * PACED_MAX as u64).for_each(|cookie| notes.pace(cookie, 30));
        let paced = ledger.paced();
        assert_eq!((paced.len(), paced[0]), (PACED_MAX, (1, 10)), "no other is lost");
    }

    #[test]
    fn a_stream_is_paced_by_its_last_rate_until_it_is_not() {
        let ledger = SeccompCallLedger::new().unwrap();
        let mut notes = ledger.notes();
        notes.pace(7, 1000);
        notes.pace(8, 500);
        notes.pace(7, 2000);
        assert_eq!(ledger.paced(), [(7, 2000), (8, 500)]);
        notes.pace(7, 0);
        assert_eq!(ledger.paced(), [(8, 500)]);
    }
}
