//! Which replica each known flow has: an exact table with bounds.
//!
//! Pins lie densely, 40 bytes each, and an index with linear probing finds them: a word for each
//! place has 11 bits of the flow's hash, so that a probe that misses looks at no pin, and the
//! pin's number and one more. Deletion shifts back what follows (Knuth, volume 3, 6.4, algorithm R),
//! so there are no tombstones. The index is at most half full. Nothing is allocated for a flow once
//! as many have been there.

use alloc::vec::Vec;

use super::hash::mix;
use windtunnel_model::{RouterId, Span, Time};

/// About a millisecond (2²⁰ ns) of time, wrapping after 52 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CoarseTime(u32);

/// A number of ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CoarseDuration(u32);

impl CoarseTime {
    /// How long a connection is known after its client's FIN: as long as TIME-WAIT lasts in Linux.
    pub(super) const CLOSING: CoarseDuration = CoarseDuration::of(Span::from_secs(60));
    /// How long the first fragment of a datagram is: as long as Linux waits for the others.
    pub(super) const DATAGRAM: CoarseDuration = CoarseDuration::of(Span::from_secs(30));

    #[expect(clippy::cast_possible_truncation, reason = "it wraps")]
    pub(crate) const fn of(time: Time) -> CoarseTime {
        CoarseTime((time.as_nanos() >> 20) as u32)
    }

    /// None where `earlier` is later: with the model of paths packets are looked at with the times
    /// that they will have at a router.
    pub(super) const fn since(self, earlier: CoarseTime) -> CoarseDuration {
        let passed = self.0.wrapping_sub(earlier.0);
        CoarseDuration(if passed > u32::MAX / 2 { 0 } else { passed })
    }

    /// The later of two.
    pub(super) fn latest(self, other: CoarseTime) -> CoarseTime {
        if self.since(other) == CoarseDuration(0) { other } else { self }
    }
}

impl CoarseDuration {
    #[expect(clippy::cast_possible_truncation, reason = "times here are at most a day")]
    pub(super) const fn of(span: Span) -> CoarseDuration {
        CoarseDuration(span.as_nanos().div_ceil(1 << 20) as u32)
    }

    pub(super) const fn millis(self) -> u64 {
        ((self.0 as u64) << 20) / 1_000_000
    }
}

/// A flow: its client, and the row that it is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PinnedFlowKey {
    pub(super) client: u128,
    pub(super) client_port: u16,
    pub(super) row: u16,
    /// The router that alone knows it; `None`: all do.
    pub(super) router: Option<RouterId>,
}

/// What a flow is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PinnedFlowPhase {
    /// The place is empty.
    Free,
    /// TCP: the client has sent SYNs only.
    Opening,
    /// TCP: it has acknowledged something.
    Open,
    /// TCP: it has sent FIN.
    Closing,
    /// UDP.
    Flow,
}

impl PinnedFlowPhase {
    /// Whether it counts as a live connection.
    pub(super) fn is_connection(self) -> bool {
        matches!(self, PinnedFlowPhase::Opening | PinnedFlowPhase::Open)
    }
}

/// The replica of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplicaPin {
    /// In words, so that it needs no more room than it has bytes.
    client: [u32; 4],
    /// The sequence number of the SYN.
    pub(super) initial: u32,
    /// The last acknowledgement of the client.
    pub(super) acknowledged: u32,
    pub(super) seen: CoarseTime,
    /// The router that redirected it last.
    pub(super) router: RouterId,
    client_port: u16,
    row: u16,
    pub(super) replica: u16,
    /// Whether only that router knows it.
    is_own: bool,
    pub(super) state: PinnedFlowPhase,
}

impl ReplicaPin {
    pub(super) fn new(
        key: PinnedFlowKey,
        replica: u16,
        state: PinnedFlowPhase,
        seen: CoarseTime,
    ) -> ReplicaPin {
        let word = |shift: u32| u32::try_from(key.client >> shift & 0xffff_ffff).unwrap_or(0);
        ReplicaPin {
            client: [word(96), word(64), word(32), word(0)],
            initial: 0,
            acknowledged: 0,
            seen,
            client_port: key.client_port,
            row: key.row,
            replica,
            router: key.router.unwrap_or(RouterId(0)),
            is_own: key.router.is_some(),
            state,
        }
    }

    pub(super) fn key(&self) -> PinnedFlowKey {
        let join = |all, word: &u32| all << 32 | u128::from(*word);
        let client = self.client.iter().fold(0, join);
        let router = self.is_own.then_some(self.router);
        PinnedFlowKey { client, client_port: self.client_port, row: self.row, router }
    }

    fn hash(&self) -> u64 {
        hash(&self.key())
    }
}

/// All pins.
#[derive(Debug)]
pub(super) struct ReplicaPinTable {
    pins: Vec<ReplicaPin>,
    /// A power of two; empty until there is a pin.
    index: Vec<u32>,
    /// Numbers of pins that are free.
    free: Vec<u32>,
    capacity: usize,
    /// Where pins are looked at next: to be evicted, and whether their time is over.
    evicting: usize,
    sweeping: usize,
}

impl ReplicaPinTable {
    /// For at most so many pins, and no more than 2²⁰.
    pub(super) fn new(capacity: usize) -> ReplicaPinTable {
        let capacity = capacity.clamp(1, CAPACITY_MAX);
        ReplicaPinTable {
            pins: Vec::new(),
            index: Vec::new(),
            free: Vec::new(),
            capacity,
            evicting: 0,
            sweeping: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pins.len() - self.free.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn get(&self, number: u32) -> &ReplicaPin {
        &self.pins[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut ReplicaPin {
        &mut self.pins[number as usize]
    }

    /// Every pin that is there.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplicaPin> {
        self.pins.iter().filter(|pin| pin.state != PinnedFlowPhase::Free)
    }

    /// The number of a flow's pin.
    #[inline]
    pub(super) fn find(&self, key: &PinnedFlowKey) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let hash = hash(key);
        let (mut at, tag) = (self.home(hash), tag(hash));
        loop {
            let word = self.index[at];
            let number = (word & NUMBER).checked_sub(1)?;
            if word & !NUMBER == tag && self.pins[number as usize].key() == *key {
                return Some(number);
            }
            at = self.next(at);
        }
    }

    /// Adds a pin for a flow that has none. `None`: the table is full; [`ReplicaPinTable::victim`] frees a place.
    pub(super) fn insert(&mut self, pin: ReplicaPin) -> Option<u32> {
        if self.len() >= self.capacity {
            return None;
        }
        if self.index.is_empty() {
            // Pages of zeros are memory only once something is in them.
            self.index = alloc::vec![0; (self.capacity * 2).next_power_of_two()];
            self.pins.reserve_exact(self.capacity);
            self.free.reserve_exact(self.capacity);
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.pins[number as usize] = pin;
                number
            }
            None => {
                self.pins.push(pin);
                u32::try_from(self.pins.len() - 1).ok()?
            }
        };
        let hash = pin.hash();
        let mut at = self.home(hash);
        while self.index[at] != 0 {
            at = self.next(at);
        }
        self.index[at] = tag(hash) | (number + 1);
        Some(number)
    }

    /// Takes a pin away.
    pub(super) fn remove(&mut self, number: u32) -> ReplicaPin {
        let pin = self.pins[number as usize];
        let mut hole = self.home(pin.hash());
        while self.index[hole] & NUMBER != number + 1 {
            hole = self.next(hole);
        }
        let mut at = self.next(hole);
        while let Some(follower) = (self.index[at] & NUMBER).checked_sub(1) {
            let home = self.home(self.pins[follower as usize].hash());
            // It may lie at the hole if that is not before its home, seen from where it is.
            let mask = self.index.len() - 1;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.index[hole] = 0;
        self.pins[number as usize].state = PinnedFlowPhase::Free;
        self.free.push(number);
        pin
    }

    /// Which pin is to go in a full table: of the next 32, one that is over, else one that closes,
    /// else that which has been silent for longest.
    pub(super) fn victim(
        &mut self,
        now: CoarseTime,
        is_over: impl Fn(&ReplicaPin) -> bool,
    ) -> Option<u32> {
        let count = self.pins.len();
        let rank = |pin: &ReplicaPin| {
            (is_over(pin), pin.state == PinnedFlowPhase::Closing, now.since(pin.seen))
        };
        let numbers = (0..LOOKS.min(count)).map(|step| (self.evicting + step) % count);
        let there = numbers.filter(|number| self.pins[*number].state != PinnedFlowPhase::Free);
        // Of equals, `max_by_key` takes the last: the table is walked all the same.
        let victim = there.max_by_key(|number| rank(&self.pins[*number]))?;
        self.evicting = (self.evicting + LOOKS) % count;
        u32::try_from(victim).ok()
    }

    /// The next pins whose turn it is to be looked at.
    pub(super) fn sweep(&mut self) -> core::ops::Range<u32> {
        let count = self.pins.len();
        let begin = if self.sweeping >= count { 0 } else { self.sweeping };
        let end = (begin + SWEPT_AT_ONCE).min(count);
        self.sweeping = end;
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        number(begin)..number(end)
    }

    /// From one sweep to the next: all pins are looked at in about 8 s.
    pub(super) fn sweep_period(&self) -> Span {
        if self.pins.len() <= SWEPT_AT_ONCE { Span::from_secs(1) } else { Span::from_millis(30) }
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> 32).unwrap_or(0) & (self.index.len() - 1)
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.index.len() - 1)
    }
}

fn hash(key: &PinnedFlowKey) -> u64 {
    let router = key.router.map_or(0, |router| u64::from(router.0) + 1);
    mix(key.client, router << 32 | u64::from(key.client_port) << 16 | u64::from(key.row))
}

/// The part of a hash that is in the index, above the number.
fn tag(hash: u64) -> u32 {
    u32::try_from(hash & 0xffff_ffff).unwrap_or(0) & !NUMBER
}

/// The bits of an index word that are a number.
const NUMBER: u32 = (1 << 21) - 1;
/// The most pins.
pub(super) const CAPACITY_MAX: usize = 1 << 20;
/// Pins that are looked at for one to evict.
const LOOKS: usize = 32;
/// Pins that are looked at in one sweep: about 20 µs.
const SWEPT_AT_ONCE: usize = 4096;

#[cfg(test)]
mod tests;
