//! The table's state of a lane: its use, and its flows.

use alloc::vec::Vec;

use super::level;

/// A lane and its use by flows. Sums are kept for limited lanes only. One line of the cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct LaneFillLevel {
    /// In grains; `level::NONE` without limit.
    pub capacity: u128,
    /// The sum over its flows: Σ weight · level.
    pub used: u128,
    /// The level of the flows that it holds back; `level::NONE` when it holds back none.
    pub level: u128,
    /// The weights of the flows at its level.
    pub held: u64,
    /// Whether it is in `MaxMinShares::touched`.
    pub touched: bool,
    /// Whether it waits for its turn.
    pub queued: bool,
}

/// The flows of a lane.
#[derive(Debug, Clone, Default)]
pub(super) struct LaneFlows {
    /// Their places, in no order.
    pub members: Vec<u32>,
    /// Their weights in all.
    pub load: u64,
}

/// How a lane's level fits to the use by its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneFit {
    /// It fits.
    Even,
    /// Its flows could have more.
    Low,
    /// They have more than there is, even one level lower.
    High,
}

impl LaneFillLevel {
    pub(super) fn new(capacity: u128) -> Self {
        let level = level::NONE;
        LaneFillLevel { capacity, used: 0, level, held: 0, touched: false, queued: false }
    }

    /// See the proof in `shares`: U − S < C ≤ U, or no level and U < C.
    pub(super) fn fit(&self) -> LaneFit {
        if self.used >= self.capacity {
            let one_less = self.used - u128::from(self.held);
            if one_less < self.capacity { LaneFit::Even } else { LaneFit::High }
        } else if self.level == level::NONE {
            LaneFit::Even
        } else {
            LaneFit::Low
        }
    }

    /// Another capacity, while no flow has any of the lane.
    pub(super) fn limit(&mut self, capacity: u128) {
        debug_assert_eq!((self.used, self.held), (0, 0), "no flow has a part");
        self.capacity = capacity;
        self.level = level::NONE;
    }

    pub(super) fn is_limited(&self) -> bool {
        self.capacity != level::NONE
    }

    /// A flow takes a part of it.
    pub(super) fn add(&mut self, weight: u64, level: u128) {
        if self.is_limited() {
            self.used += u128::from(weight) * level;
            self.held += if level == self.level { weight } else { 0 };
        }
    }

    /// A flow gives back its part.
    pub(super) fn remove(&mut self, weight: u64, level: u128) {
        if self.is_limited() {
            self.used -= u128::from(weight) * level;
            self.held -= if level == self.level { weight } else { 0 };
        }
    }
}

impl LaneFlows {
    /// One more member; where it is.
    pub(super) fn join(&mut self, place: u32) -> u32 {
        let seat = u32::try_from(self.members.len()).expect("fewer flows than 2^19");
        self.members.push(place);
        seat
    }

    /// One member less; the place of the one that has its seat now.
    pub(super) fn part(&mut self, seat: u32) -> Option<u32> {
        self.members.swap_remove(seat as usize);
        self.members.get(seat as usize).copied()
    }
}
