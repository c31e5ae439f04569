//! All levels from nothing: progressive filling.
//!
//! The lane that would be full first, if all its flows rose, is taken from a heap. Levels only rise while
//! others are held back, so an entry of the heap is never later than the lane: it is looked at again when
//! it comes. Flows whose ceiling is below that level are held back by it before the lane is. What one lane
//! costs is a step for each of its flows and for each lane of theirs, so everything is linear in the sum of
//! the lengths of the paths, but for the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::flow::Flow;
use super::lane::Lane;
use super::{Shares, level};

impl<M> Shares<M> {
    /// Finds all levels, and what follows from them.
    pub(super) fn fill(&mut self) {
        let levels = Filling::new(&self.lanes, &self.flows).run();
        self.noted.clear();
        for (place, (flow, level)) in (0..).zip(self.flows.iter_mut().zip(levels)) {
            flow.level = level;
            flow.noted = true;
            self.noted.push(place);
        }
        for place in &self.vacant {
            self.flows[*place as usize].noted = false;
        }
        self.touched.clear();
        add_up(&mut self.lanes, &self.flows);
    }
}

/// The levels that are known so far.
struct Filling<'a> {
    lanes: &'a [Lane],
    flows: &'a [Flow],
    rooms: Vec<Room>,
    /// By place; `level::NONE` while the flow still rises.
    levels: Vec<u128>,
}

/// What of a lane is left for flows that still rise.
#[derive(Clone, Copy)]
struct Room {
    grains: u128,
    /// The weights of those flows.
    rising: u64,
}

impl<'a> Filling<'a> {
    fn new(lanes: &'a [Lane], flows: &'a [Flow]) -> Self {
        let room = |lane: &Lane| Room { grains: lane.capacity, rising: lane.load };
        let rooms = lanes.iter().map(room).collect();
        Filling { lanes, flows, rooms, levels: vec![level::NONE; flows.len()] }
    }

    fn run(mut self) -> Vec<u128> {
        let first = |(lane, room): (u32, &Room)| {
            (room.rising > 0).then(|| Reverse((level::reaching(room.grains, room.rising), lane)))
        };
        let mut heap: BinaryHeap<_> = (0..).zip(&self.rooms).filter_map(first).collect();
        let mut now = 0;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((key, lane)) = *top;
            let Room { grains, rising } = self.rooms[lane as usize];
            if rising == 0 {
                PeekMut::pop(top);
                continue;
            }
            // A flow that was held back at this very level may have taken what was left.
            let level = level::reaching(grains, rising).max(now);
            if level > key {
                *top = Reverse((level, lane));
                continue;
            }
            if self.hold_at_ceilings(lane, level) {
                continue;
            }
            PeekMut::pop(top);
            now = level;
            self.hold(lane, level);
        }
        for (level, flow) in self.levels.iter_mut().zip(self.flows) {
            *level = (*level).min(flow.ceiling);
        }
        self.levels
    }

    /// Holds back the flows of a lane whose ceilings are below `level`: all other lanes are full at that level
    /// at the earliest, so nothing but the ceilings holds them. Whether there was one.
    fn hold_at_ceilings(&mut self, lane: u32, level: u128) -> bool {
        let mut any = false;
        for place in &self.lanes[lane as usize].members {
            let ceiling = self.flows[*place as usize].ceiling;
            if ceiling < level && self.levels[*place as usize] == level::NONE {
                self.stay(*place, ceiling);
                any = true;
            }
        }
        any
    }

    /// The lane is full: its flows rise no more.
    fn hold(&mut self, lane: u32, level: u128) {
        for place in &self.lanes[lane as usize].members {
            if self.levels[*place as usize] == level::NONE {
                self.stay(*place, level);
            }
        }
    }

    fn stay(&mut self, place: u32, level: u128) {
        self.levels[place as usize] = level;
        let flow = &self.flows[place as usize];
        let part = level * u128::from(flow.weight);
        for hop in &flow.hops {
            let room = &mut self.rooms[hop.lane as usize];
            room.grains = room.grains.saturating_sub(part);
            room.rising = room.rising.saturating_sub(flow.weight);
        }
    }
}

/// What the flows have of each lane. A full lane's level is the greatest of its flows': were all below
/// it, they would fill the lane one level lower as well.
fn add_up(lanes: &mut [Lane], flows: &[Flow]) {
    for lane in lanes.iter_mut() {
        (lane.used, lane.level, lane.held, lane.touched) = (0, 0, 0, false);
    }
    for flow in flows {
        let part = flow.level.wrapping_mul(u128::from(flow.weight));
        for hop in &flow.hops {
            let lane = &mut lanes[hop.lane as usize];
            if !lane.is_limited() {
                continue;
            }
            lane.used += part;
            if flow.level > lane.level {
                (lane.level, lane.held) = (flow.level, 0);
            }
            lane.held += if flow.level == lane.level { flow.weight } else { 0 };
        }
    }
    for lane in lanes.iter_mut().filter(|lane| lane.used < lane.capacity) {
        (lane.level, lane.held) = (level::NONE, 0);
    }
}
