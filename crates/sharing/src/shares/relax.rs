//! The levels that a change reaches.
//!
//! Before the change all levels fitted together. A flow that started or stopped has taken or given
//! back a part of the lanes of its path, so some of these no longer fit. Now one lane at a time
//! gets the level that its neighbours' levels imply, and its flows with it; lanes with flows that
//! thereby get more or less may no longer fit, and wait for their turn. When all fit, these are
//! *the* levels: there is one such assignment only (see `shares`), so it does not matter where they
//! came from, in which order lanes had their turn, or how often.
//!
//! The order matters for the effort. The level of a lane depends only on flows that stay below
//! its level, and a change of a flow's level is seen only by lanes with levels above the lesser of
//! both. So the lane with the lowest level (before or after, whichever is less) goes first, like
//! the nearest vertex in Dijkstra's algorithm; then nearly every lane that is reached has one turn.
//! Since the level after is only estimated from below while a lane waits, some have more. Should
//! that take more than twice as many steps as there are flows on lanes, all levels are found from
//! nothing instead, which also bounds the effort.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::flow::FlowState;
use super::lane::{LaneFillLevel, LaneFit};
use super::{MaxMinShares, level};

/// Kept to spare allocations.
#[derive(Debug, Clone, Default)]
pub(super) struct RelaxationScratch {
    /// Lanes that do not fit, by the level at which that shows, then by number.
    queue: BinaryHeap<Reverse<(u128, u32)>>,
    parts: Vec<BottleneckFlow>,
    /// Steps since the shares began to be made to fit.
    effort: usize,
}

/// A flow as the lane that holds it back sees it.
#[derive(Debug, Clone, Copy)]
struct BottleneckFlow {
    /// Where it stays if this lane does not hold it back.
    level: u128,
    weight: u64,
    place: u32,
}

/// The use of a lane by its flows if its level is `level`.
struct LaneLevelUsage {
    level: u128,
    used: u128,
    held: u64,
}

impl<M> MaxMinShares<M> {
    /// Makes all lanes fit, from the few that do not. False when that took too long: then nothing
    /// fits, but the inputs of `fill` are valid.
    pub(super) fn relax(&mut self) -> bool {
        let most = 2 * self.length + 64;
        self.scratch.effort = 0;
        self.enqueue();
        while let Some(Reverse((_, index))) = self.scratch.queue.pop() {
            let lane = &mut self.lanes[index as usize];
            lane.queued = false;
            match lane.fit() {
                LaneFit::Even => continue,
                LaneFit::Low => self.raise(index),
                LaneFit::High => self.lower(index),
            }
            if self.scratch.effort > most {
                self.give_up();
                return false;
            }
            self.enqueue();
        }
        true
    }

    /// Lanes that were touched and do not fit wait for their turn.
    fn enqueue(&mut self) {
        for index in self.touched.drain(..) {
            let lane = &mut self.lanes[index as usize];
            lane.touched = false;
            let key = match lane.fit() {
                LaneFit::Even => continue,
                LaneFit::Low => lane.level,
                LaneFit::High => lowest(lane, self.lane_flows[index as usize].load),
            };
            lane.queued = true;
            self.scratch.queue.push(Reverse((key, index)));
        }
    }

    fn give_up(&mut self) {
        for Reverse((_, index)) in self.scratch.queue.drain() {
            self.lanes[index as usize].queued = false;
        }
    }

    /// The flows that the lane holds back can have more: until they fill it, or until each is held
    /// back by something else.
    fn raise(&mut self, index: u32) {
        let lane = &self.lanes[index as usize];
        let (capacity, old, held) = (lane.capacity, lane.level, lane.held);
        let others = lane.used - u128::from(held) * old;
        let mut parts = core::mem::take(&mut self.scratch.parts);
        let mut used = others;
        let members = &self.lane_flows[index as usize].members;
        self.scratch.effort += members.len();
        for place in members.iter().filter(|place| self.states[**place as usize].level == old) {
            let flow = &self.flows[*place as usize];
            let weight = self.states[*place as usize].weight;
            let around = flow.path.lanes().iter().filter(|lane| **lane != index);
            let around = around.map(|lane| self.lanes[*lane as usize].level);
            let level = around.fold(flow.ceiling, u128::min);
            used += level * u128::from(weight);
            parts.push(BottleneckFlow { level, weight, place: *place });
        }
        let new = if used < capacity {
            LaneLevelUsage { level: level::NONE, used, held: 0 }
        } else {
            let start = level::reaching(capacity - others, held);
            let each = || parts.iter().map(|part| (part.level, part.weight));
            filling(capacity, others, start, each)
        };
        for part in &parts {
            self.move_to(part.place, part.level.min(new.level), index);
        }
        parts.clear();
        self.scratch.parts = parts;
        self.set(index, &new);
    }

    /// The flows of the lane must have less: those that have most.
    fn lower(&mut self, index: u32) {
        let lane = &self.lanes[index as usize];
        let members = core::mem::take(&mut self.lane_flows[index as usize].members);
        let start = lowest(lane, self.lane_flows[index as usize].load);
        let states = &self.states;
        let state = |place: &u32| states[*place as usize];
        let each = || members.iter().map(state).map(|FlowState { level, weight }| (level, weight));
        let new = filling(lane.capacity, 0, start, each);
        self.scratch.effort += members.len();
        for place in &members {
            if self.states[*place as usize].level > new.level {
                self.move_to(*place, new.level, index);
            }
        }
        self.lane_flows[index as usize].members = members;
        self.set(index, &new);
    }

    fn set(&mut self, index: u32, new: &LaneLevelUsage) {
        let lane = &mut self.lanes[index as usize];
        (lane.level, lane.used, lane.held) = (new.level, new.used, new.held);
        debug_assert_eq!(lane.fit(), LaneFit::Even, "a lane fits after its turn");
    }

    /// A flow has another level now, as the lanes of its path get to know, except the one that is
    /// in turn.
    fn move_to(&mut self, place: u32, level: u128, turn: u32) {
        let state = &mut self.states[place as usize];
        let weight = state.weight;
        let old = core::mem::replace(&mut state.level, level);
        if old == level {
            return;
        }
        let flow = &mut self.flows[place as usize];
        if !core::mem::replace(&mut flow.noted, true) {
            self.noted.push(place);
        }
        let path = flow.path.lanes();
        self.scratch.effort += path.len();
        // Modulo 2^128: the level may be less than it was.
        let more = level.wrapping_sub(old).wrapping_mul(u128::from(weight));
        for index in path.iter().filter(|lane| **lane != turn) {
            let lane = &mut self.lanes[*index as usize];
            if !lane.is_limited() {
                continue;
            }
            lane.used = lane.used.wrapping_add(more);
            lane.held -= if old == lane.level { weight } else { 0 };
            lane.held += if level == lane.level { weight } else { 0 };
            if !(lane.touched || lane.queued) {
                lane.touched = true;
                self.touched.push(*index);
            }
        }
    }
}

/// A level that an overfull lane will not go below: the one at which it would be
/// full if flows that are below its old level stayed, or if all flows had it.
fn lowest(lane: &LaneFillLevel, load: u64) -> u128 {
    if lane.held > 0 {
        let others = lane.used - u128::from(lane.held) * lane.level;
        if others < lane.capacity {
            return level::reaching(lane.capacity - others, lane.held);
        }
    }
    level::reaching(lane.capacity, load)
}

/// The least level at which a lane is full, if its flows would else have the levels that `each`
/// gives with their weights, which fill it, and others have `others`. `level` is not above it.
///
/// Newton's method on a function that rises, ever slower and in straight pieces: from below it
/// never goes too far, and it ends in the right piece.
fn filling<I: Iterator<Item = (u128, u64)>>(
    capacity: u128,
    others: u128,
    mut level: u128,
    each: impl Fn() -> I,
) -> LaneLevelUsage {
    loop {
        // Without a branch, which no predictor could foresee.
        let (mut used, mut held) = (others, 0);
        for (its, weight) in each() {
            used += its.min(level) * u128::from(weight);
            held += if its < level { 0 } else { weight };
        }
        // One division less where the level is right, as it is most often.
        if used >= capacity {
            return LaneLevelUsage { level, used, held };
        }
        let below = used - level * u128::from(held);
        level = level::reaching(capacity - below, held);
    }
}
