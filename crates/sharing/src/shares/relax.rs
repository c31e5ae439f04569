//! The levels that a change reaches.
//!
//! Before the change all levels fitted together. Whoever started or stopped has taken or given back a part of
//! the lanes of its path, so some of these no longer fit. Now one lane at a time gets the level that it should
//! have by what its neighbours have, and its flows with it; lanes whose flows thereby get more or less may no
//! longer fit, and wait for their turn. When all fit, these are *the* levels: there is one such
//! assignment only (see `shares`), so it does not matter where they came from, in which order lanes had their
//! turn, or how often.
//!
//! The order matters for the effort. What a lane should have depends only on flows that stay below its level,
//! and a change of a flow's level is seen only by lanes with levels above the lesser of both. So the lane with
//! the lowest level (before or after, whichever is less) goes first, like the nearest vertex in Dijkstra's
//! algorithm; then nearly every lane that is reached has one turn. Since the level after is only
//! estimated from below while a lane waits, some have more. Should their flows be more than twice
//! those of all lanes together, all levels are found from nothing instead, which also bounds
//! the effort.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::lane::{Fit, Lane};
use super::{Shares, level};

/// Kept to spare allocations. Empty between two uses.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// Lanes that do not fit, by the level at which that shows, then by number.
    queue: BinaryHeap<Reverse<(u128, u32)>>,
    parts: Vec<Part>,
}

/// A flow as one of its lanes sees it.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Where it stays if this lane does not hold it back.
    level: u128,
    weight: u64,
    place: u32,
}

impl<M> Shares<M> {
    /// Makes all lanes fit, from the few that do not. False when that took too long: then nothing fits, but
    /// what `fill` needs is there.
    pub(super) fn relax(&mut self) -> bool {
        let mut effort = 0;
        let most = 2 * self.length + 64;
        self.enqueue();
        while let Some(Reverse((_, index))) = self.scratch.queue.pop() {
            let lane = &mut self.lanes[index as usize];
            lane.queued = false;
            effort += lane.members.len();
            match lane.fit() {
                Fit::Even => continue,
                Fit::Low => self.raise(index),
                Fit::High => self.lower(index),
            }
            if effort > most {
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
                Fit::Even => continue,
                Fit::Low => lane.level,
                Fit::High => lowest(lane),
            };
            if !std::mem::replace(&mut lane.queued, true) {
                self.scratch.queue.push(Reverse((key, index)));
            }
        }
    }

    fn give_up(&mut self) {
        for Reverse((_, index)) in self.scratch.queue.drain() {
            self.lanes[index as usize].queued = false;
        }
    }

    /// The flows that the lane holds back can have more: until they fill it, or until each is held back by
    /// something else.
    fn raise(&mut self, index: u32) {
        let lane = &mut self.lanes[index as usize];
        let members = std::mem::take(&mut lane.members);
        let (capacity, old) = (lane.capacity, lane.level);
        let others = lane.used - u128::from(lane.held) * old;
        let start = lane.held;
        let mut parts = std::mem::take(&mut self.scratch.parts);
        let mut most = others;
        for place in &members {
            let flow = &self.flows[*place as usize];
            if flow.level == old {
                let around = flow.hops.iter().filter(|hop| hop.lane != index);
                let around = around.map(|hop| self.lanes[hop.lane as usize].level);
                let level = around.fold(flow.ceiling, u128::min);
                most += level * u128::from(flow.weight);
                parts.push(Part { level, weight: flow.weight, place: *place });
            }
        }
        let new = if most < capacity {
            level::NONE
        } else {
            let room = capacity - others;
            filling(room, &parts, level::reaching(room, start))
        };
        self.apply(index, new, others, &parts);
        parts.clear();
        self.scratch.parts = parts;
        self.lanes[index as usize].members = members;
    }

    /// The flows of the lane must have less: those that have most.
    fn lower(&mut self, index: u32) {
        let lane = &mut self.lanes[index as usize];
        let members = std::mem::take(&mut lane.members);
        let mut parts = std::mem::take(&mut self.scratch.parts);
        parts.extend(members.iter().map(|place| {
            let flow = &self.flows[*place as usize];
            Part { level: flow.level, weight: flow.weight, place: *place }
        }));
        let new = filling(lane.capacity, &parts, lowest(lane));
        self.apply(index, new, 0, &parts);
        parts.clear();
        self.scratch.parts = parts;
        self.lanes[index as usize].members = members;
    }

    /// Gives a lane its new level, and its flows theirs. `others` is what flows that are no `parts` have.
    fn apply(&mut self, index: u32, new: u128, others: u128, parts: &[Part]) {
        let (mut used, mut held) = (others, 0);
        for part in parts {
            let level = part.level.min(new);
            used += level * u128::from(part.weight);
            held += if level == new { part.weight } else { 0 };
            self.move_to(part.place, level, index);
        }
        let lane = &mut self.lanes[index as usize];
        (lane.level, lane.used, lane.held) = (new, used, held);
        debug_assert_eq!(lane.fit(), Fit::Even, "a lane fits after its turn");
    }

    /// A flow has another level now, as the lanes of its path get to know, except the one that is in turn.
    fn move_to(&mut self, place: u32, level: u128, turn: u32) {
        let flow = &mut self.flows[place as usize];
        let old = std::mem::replace(&mut flow.level, level);
        if old == level {
            return;
        }
        if !std::mem::replace(&mut flow.noted, true) {
            self.noted.push(place);
        }
        let weight = u128::from(flow.weight);
        let (before, after) = (old * weight, level * weight);
        for hop in flow.hops.iter().filter(|hop| hop.lane != turn) {
            let lane = &mut self.lanes[hop.lane as usize];
            if !lane.is_limited() {
                continue;
            }
            lane.used = lane.used - before + after;
            lane.held -= if old == lane.level { flow.weight } else { 0 };
            lane.held += if level == lane.level { flow.weight } else { 0 };
            if !std::mem::replace(&mut lane.touched, true) {
                self.touched.push(hop.lane);
            }
        }
    }
}

/// A level that a lane whose flows have too much will not go below: the one at which it would be full if
/// flows that are below its old level stayed, or if all flows had it.
fn lowest(lane: &Lane) -> u128 {
    let least = level::reaching(lane.capacity, lane.load);
    if lane.held == 0 {
        return least;
    }
    let others = lane.used - u128::from(lane.held) * lane.level;
    match lane.capacity.checked_sub(others) {
        Some(room) => level::reaching(room, lane.held).max(least),
        None => least,
    }
}

/// The least level at which the parts have `room`, which they reach. `level` is not above it.
///
/// Newton's method on a function that rises, ever slower and in straight pieces: from below it never
/// goes too far, and it ends in the right piece.
fn filling(room: u128, parts: &[Part], mut level: u128) -> u128 {
    loop {
        let (mut below, mut rising) = (0, 0);
        for part in parts {
            if part.level < level {
                below += part.level * u128::from(part.weight);
            } else {
                rising += part.weight;
            }
        }
        let next = level::reaching(room - below, rising);
        if next == level {
            return level;
        }
        level = next;
    }
}
