//! Places of flows: taken, entered on the lanes of the path, and left.

use super::flow::{FlowConstraints, FlowShareRecord, FlowState};
use super::{FLOWS_MAX, FlowShareChange, MaxMinShares, level};
use crate::SharingModel;

impl<M: SharingModel> MaxMinShares<M> {
    /// A place for one more flow.
    pub(super) fn vacate(&mut self) -> Option<u32> {
        if let Some(place) = self.vacant.pop() {
            return Some(place);
        }
        let place = u32::try_from(self.flows.len()).ok().filter(|place| *place < FLOWS_MAX)?;
        self.states.push(FlowState { level: level::NONE, weight: 1 });
        self.flows.push(FlowConstraints::vacant());
        self.records.push(FlowShareRecord::vacant());
        Some(place)
    }

    /// A flow has another seat among the members of a lane.
    pub(super) fn reseat(&mut self, place: u32, lane: u32, seat: u32) {
        let at = self.flows[place as usize].path.lanes().binary_search(&lane);
        let at = at.expect("a member of a lane has the lane on its path");
        self.records[place as usize].seats[at] = seat;
    }

    /// Lets a flow take part: at once at the levels that its lanes have, as if they could carry it
    /// too.
    pub(super) fn enter(&mut self, place: u32) {
        let (flow, record) = (&mut self.flows[place as usize], &self.records[place as usize]);
        let weight = self.model.weight(&record.terms).value();
        let path = flow.path.lanes();
        let least = path.iter().map(|lane| self.lanes[*lane as usize].capacity).min();
        let ceiling = self.model.ceiling(&record.terms).map_or(level::NONE, level::grains);
        flow.ceiling = level::reaching(ceiling.min(least.unwrap_or(level::NONE)), weight);
        let around = path.iter().map(|lane| self.lanes[*lane as usize].level);
        let level = around.fold(flow.ceiling, u128::min);
        self.states[place as usize] = FlowState { level, weight };
        for lane in path {
            self.lane_flows[*lane as usize].load += weight;
            self.lanes[*lane as usize].add(weight, level);
        }
        self.touch(place);
    }

    /// Removes a flow's part from its lanes.
    pub(super) fn leave(&mut self, place: u32) {
        let FlowState { level, weight } = self.states[place as usize];
        for lane in self.flows[place as usize].path.lanes() {
            self.lane_flows[*lane as usize].load -= weight;
            self.lanes[*lane as usize].remove(weight, level);
        }
        self.touch(place);
    }

    /// The flow's share may be another one, and its lanes may not fit.
    pub(super) fn touch(&mut self, place: u32) {
        let flow = &mut self.flows[place as usize];
        if !core::mem::replace(&mut flow.noted, true) {
            self.noted.push(place);
        }
        for index in flow.path.lanes() {
            let lane = &mut self.lanes[*index as usize];
            if !core::mem::replace(&mut lane.touched, true) {
                self.touched.push(*index);
            }
        }
    }

    /// The noted flows with a share that differs from the reported one.
    pub(super) fn collect(&mut self) -> &[FlowShareChange] {
        self.news = 0;
        self.changes.clear();
        for place in self.noted.drain(..) {
            let flow = &mut self.flows[place as usize];
            if !core::mem::take(&mut flow.noted) {
                continue;
            }
            let FlowState { level, weight } = self.states[place as usize];
            let share = level::rate(level, weight);
            let record = &mut self.records[place as usize];
            if record.reported != Some(share) {
                record.reported = Some(share);
                self.changes.push(FlowShareChange { flow: record.id, share });
            }
        }
        self.changes.sort_unstable_by_key(|change| change.flow);
        &self.changes
    }
}
