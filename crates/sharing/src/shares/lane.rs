//! What the table keeps of a lane.

use super::level;

/// A lane, its flows, and what they have of it. Sums are kept for limited lanes only.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Lane {
    /// In grains; `level::NONE` without limit.
    pub capacity: u128,
    /// What its flows have in all: Σ weight · level.
    pub used: u128,
    /// The level of the flows that it holds back; `level::NONE` when it holds back none.
    pub level: u128,
    /// The weights of the flows at its level.
    pub held: u64,
    /// The weights of all its flows.
    pub load: u64,
    /// The places of its flows, in no order.
    pub members: Vec<u32>,
    /// Whether it is in `Shares::touched`.
    pub touched: bool,
    /// Whether it waits to be looked at.
    pub queued: bool,
}

/// How a lane's level fits to what its flows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It fits.
    Even,
    /// Its flows could have more.
    Low,
    /// They have more than there is, even one level lower.
    High,
}

impl Lane {
    pub(super) fn new(capacity: u128) -> Self {
        Lane {
            capacity,
            used: 0,
            level: level::NONE,
            held: 0,
            load: 0,
            members: Vec::new(),
            touched: false,
            queued: false,
        }
    }

    /// See the proof in `shares`: U − S < C ≤ U, or no level and U < C.
    pub(super) fn fit(&self) -> Fit {
        if self.used >= self.capacity {
            let one_less = self.used - u128::from(self.held);
            if one_less < self.capacity { Fit::Even } else { Fit::High }
        } else if self.level == level::NONE {
            Fit::Even
        } else {
            Fit::Low
        }
    }

    /// Another capacity, while no flow has any of the lane.
    pub(super) fn limit(&mut self, capacity: u128) {
        debug_assert_eq!((self.used, self.held, self.load), (0, 0, 0), "no flow has a part");
        self.capacity = capacity;
        self.level = level::NONE;
    }

    pub(super) fn is_limited(&self) -> bool {
        self.capacity != level::NONE
    }

    /// A flow takes a part of it.
    pub(super) fn add(&mut self, weight: u64, level: u128) {
        if self.is_limited() {
            self.load += weight;
            self.used += u128::from(weight) * level;
            self.held += if level == self.level { weight } else { 0 };
        }
    }

    /// A flow gives back its part.
    pub(super) fn remove(&mut self, weight: u64, level: u128) {
        if self.is_limited() {
            self.load -= weight;
            self.used -= u128::from(weight) * level;
            self.held -= if level == self.level { weight } else { 0 };
        }
    }

    /// One more member; where it is.
    pub(super) fn join(&mut self, place: u32) -> u32 {
        let at = u32::try_from(self.members.len()).expect("fewer flows than 2^19");
        self.members.push(place);
        at
    }

    /// One member less; who took its place.
    pub(super) fn part(&mut self, at: u32) -> Option<u32> {
        self.members.swap_remove(at as usize);
        self.members.get(at as usize).copied()
    }
}
