//! All levels from nothing: progressive filling.
//!
//! The lane that would be full first, if all its flows rose, is taken from a heap. Levels only rise
//! while others are held back, so an entry of the heap is never later than the lane: it is looked
//! at again when it comes. Flows whose ceiling is below that level are held back by it before the
//! lane is. One lane costs a step for each of its flows and for each lane of theirs, so
//! everything is linear in the sum of the lengths of the paths, but for the heap.

use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::flow::{FlowConstraints, FlowState};
use super::lane::{LaneFillLevel, LaneFlows};
use super::{MaxMinShares, level};

impl<M> MaxMinShares<M> {
    /// Finds all levels, and the values derived from them.
    pub(super) fn fill(&mut self) {
        let filling = ProgressiveFilling::new(self);
        let levels = filling.run();
        for (state, level) in self.states.iter_mut().zip(levels) {
            state.level = level;
        }
        self.noted.clear();
        for (place, flow) in (0..).zip(&mut self.flows) {
            flow.noted = true;
            self.noted.push(place);
        }
        // Vacant places have no change.
        for place in &self.vacant {
            self.flows[*place as usize].noted = false;
        }
        self.touched.clear();
        self.add_up();
    }

    /// The use of each lane by its flows. A full lane's level is the greatest of its flows': were
    /// all below it, they would fill the lane one level lower as well.
    fn add_up(&mut self) {
        for (lane, flows_here) in self.lanes.iter_mut().zip(&self.lane_flows) {
            (lane.used, lane.level, lane.held, lane.touched) = (0, level::NONE, 0, false);
            if !lane.is_limited() {
                continue;
            }
            let (mut most, mut held) = (0, 0);
            for place in &flows_here.members {
                let FlowState { level, weight } = self.states[*place as usize];
                lane.used += level * u128::from(weight);
                if level > most {
                    (most, held) = (level, 0);
                }
                held += if level == most { weight } else { 0 };
            }
            if lane.used >= lane.capacity {
                (lane.level, lane.held) = (most, held);
            }
        }
    }
}

/// The levels that are known so far.
struct ProgressiveFilling<'a> {
    lane_flows: &'a [LaneFlows],
    flows: &'a [FlowConstraints],
    states: &'a [FlowState],
    rooms: Vec<ResidualCapacity>,
    /// By place; `level::NONE` while the flow still rises.
    levels: Vec<u128>,
}

/// The capacity of a lane left for flows that still rise.
#[derive(Clone, Copy)]
struct ResidualCapacity {
    grains: u128,
    /// The weights of those flows.
    rising: u64,
}

impl<'a> ProgressiveFilling<'a> {
    fn new<M>(shares: &'a MaxMinShares<M>) -> Self {
        let room = |(lane, flows_here): (&LaneFillLevel, &LaneFlows)| ResidualCapacity {
            grains: lane.capacity,
            rising: if lane.is_limited() { flows_here.load } else { 0 },
        };
        ProgressiveFilling {
            lane_flows: &shares.lane_flows,
            flows: &shares.flows,
            states: &shares.states,
            rooms: shares.lanes.iter().zip(&shares.lane_flows).map(room).collect(),
            levels: vec![level::NONE; shares.flows.len()],
        }
    }

    fn run(mut self) -> Vec<u128> {
        let first = |(lane, room): (u32, &ResidualCapacity)| {
            (room.rising > 0).then(|| Reverse((level::reaching(room.grains, room.rising), lane)))
        };
        let mut heap: BinaryHeap<_> = (0..).zip(&self.rooms).filter_map(first).collect();
        let mut now = 0;
        while let Some(mut top) = heap.peek_mut() {
            let Reverse((key, lane)) = *top;
            let ResidualCapacity { grains, rising } = self.rooms[lane as usize];
            if rising == 0 {
                PeekMut::pop(top);
                continue;
            }
            // A flow that was held back at this very level may have taken the rest.
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

    /// Holds back the flows of a lane whose ceilings are below `level`: all other lanes are full at
    /// that level at the earliest, so nothing but the ceilings holds them. Whether there was
    /// one.
    fn hold_at_ceilings(&mut self, lane: u32, level: u128) -> bool {
        let mut any = false;
        for place in &self.lane_flows[lane as usize].members {
            let place = *place as usize;
            if self.levels[place] == level::NONE && self.flows[place].ceiling < level {
                self.stay(place, self.flows[place].ceiling);
                any = true;
            }
        }
        any
    }

    /// The lane is full: its flows rise no more.
    fn hold(&mut self, lane: u32, level: u128) {
        for place in &self.lane_flows[lane as usize].members {
            if self.levels[*place as usize] == level::NONE {
                self.stay(*place as usize, level);
            }
        }
    }

    fn stay(&mut self, place: usize, level: u128) {
        self.levels[place] = level;
        let weight = self.states[place].weight;
        let part = level * u128::from(weight);
        for lane in self.flows[place].path.lanes() {
            let room = &mut self.rooms[*lane as usize];
            room.grains = room.grains.saturating_sub(part);
            room.rising = room.rising.saturating_sub(weight);
        }
    }
}
