//! The table of flows and lanes, and its changed shares.
//!
//! # Which shares
//!
//! Every flow has a *level*, and gets its weight times its level. Levels rise together from zero;
//! when the flows of a lane fill it, they stay at the level that they have (the lane is their
//! bottleneck), and the others rise on; a flow that has reached its ceiling stays there. That is
//! weighted max-min.
//!
//! In whole numbers: rates are counted in *grains*, 2⁻⁶⁰ bit/s; levels, in grains for each unit of
//! weight, are whole numbers; a flow's ceiling is the least level at which its weight gives what it
//! may have at the most; and
//!
//! > the level of a lane is the least one at which its flows fill it: the least L for which
//! > Σ wᵢ · min(yᵢ, L) ≥ C, where yᵢ is the least of flow i's ceiling and of the levels of the
//! > *other* lanes
//! > of its path. A lane that its flows do not fill has no level.
//!
//! The level xᵢ of a flow is the least of its ceiling and of the levels of its lanes.
//!
//! **There is exactly one such assignment of levels.** By induction on L: suppose it is known which
//! flows stay below L, and where. Whether Σ wᵢ · min(yᵢ, L) reaches C depends on nothing else,
//! since a flow that is not below L adds wᵢ · L wherever it stays. So it is known which lanes have
//! the level L, thus which flows stay at L. Hence however the levels were found, they are the right
//! ones if they fit together, and two tables with the same flows and capacities agree to the grain.
//! `fill` finds them from nothing, `relax` from those that fitted before a change; tests hold both
//! against each other and against a solver in fractions.
//!
//! Whether they fit together can be seen lane by lane. Let U be what the flows of a lane get in
//! all, and S the weights of those that have the lane's level. One level less would give U − S. So
//! a lane fits if **U − S < C ≤ U**, or if U < C and it has no level. (Had levels been rounded
//! down, a lane that looks as if it fitted would have to look at its neighbours: two lanes with the
//! same level can each leave the other the remainder.)
//!
//! # How exact
//!
//! As U < C + S, what is given away is max-min to the grain for capacities that are greater than
//! the asked ones by less than S grains each: 6·10⁻⁶ bit/s for 1000 flows with round trips of 1 ms,
//! less than half a bit a second ever (this bounds the number of flows: S < 2¹⁹ · 2⁴⁰ grains).
//! Then each share is rounded down to a whole bit a second, except that a share that lacks less
//! than 2⁻²⁰ is made whole. So
//!
//! - the shares of a lane's n < 2¹⁹ flows add up to its capacity at most, to the bit a second: they
//!   are less than U + n · 2⁻²⁰ < C + 1/2 + 1/2, and whole;
//! - a bottleneck has less than one bit a second left over for each of its flows;
//! - a share that is a whole number in theory is that number, where S stays below 2⁴⁰: with 150
//!   flows of 1 ms, 15 000 of 100 ms.
//!
//! A share is never less than 1 bit/s, as [`Rate`] has no zero: where it is less in theory, the
//! shares may add up to more than there is, by less than one bit a second for each such flow.

mod change;
mod fill;
mod flow;
mod lane;
mod level;
mod places;
mod relax;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::Rate;
use windtunnel_model::flow::FlowTerms;

use crate::{SharesError, SharingModel};
pub use change::{FlowId, FlowShareChange, ShareConstraint};
use flow::{FlowConstraints, FlowShareRecord, FlowState, LanePath};
use lane::{LaneFillLevel, LaneFlows};
use relax::RelaxationScratch;

/// Flows at a time, at the most: their weights then add up to less than 2⁵⁹, half a bit a second in
/// grains.
pub(crate) const FLOWS_MAX: u32 = (1 << 19) - 1;

/// The shares of all flows over a fixed number of lanes (directions of links, numbered densely from
/// 0, such as by `windtunnel_model::Lane::index`).
///
/// Pass it changes, in any order; then [`MaxMinShares::settle`] makes the shares fit again, and returns
/// those that changed. Between the two, getters return the shares of the last time.
///
/// Cost: to start, stop or change a flow, a step for each lane of its path, and the
/// logarithm of the number of flows; to settle, a step for each flow on each lane whose level
/// changes, or as much as all shares from nothing where that is less.
#[derive(Debug, Clone)]
pub struct MaxMinShares<M> {
    model: M,
    lanes: Vec<LaneFillLevel>,
    lane_flows: Vec<LaneFlows>,
    /// By place; a place is given again when its flow has stopped.
    states: Vec<FlowState>,
    flows: Vec<FlowConstraints>,
    records: Vec<FlowShareRecord>,
    places: BTreeMap<FlowId, u32>,
    vacant: Vec<u32>,
    /// Lanes to look at, each once (`Lane::touched`).
    touched: Vec<u32>,
    /// Places of flows with shares that may have changed (`FlowConstraints::noted`). A place may occur twice.
    noted: Vec<u32>,
    /// Changes since shares were settled last.
    news: usize,
    /// The lengths of all paths together.
    length: usize,
    changes: Vec<FlowShareChange>,
    scratch: RelaxationScratch,
}

impl<M: SharingModel> MaxMinShares<M> {
    /// A table without flows. `capacities` are those of the lanes, in bits a second of the wire;
    /// `None` is a lane without limit. (A lane that carries nothing at all is not a matter of
    /// shares.)
    ///
    /// # Errors
    /// If a capacity is 2⁴⁸ bit/s or more.
    pub fn new(model: M, capacities: &[Option<Rate>]) -> Result<Self, SharesError> {
        if u32::try_from(capacities.len()).is_err() {
            return Err(SharesError::TooManyLanes(capacities.len()));
        }
        let lanes =
            (0..).zip(capacities).map(|(lane, rate)| checked(lane, *rate).map(LaneFillLevel::new));
        Ok(MaxMinShares {
            model,
            lanes: lanes.collect::<Result<_, _>>()?,
            lane_flows: vec![LaneFlows::default(); capacities.len()],
            states: Vec::new(),
            flows: Vec::new(),
            records: Vec::new(),
            places: BTreeMap::new(),
            vacant: Vec::new(),
            touched: Vec::new(),
            noted: Vec::new(),
            news: 0,
            length: 0,
            changes: Vec::new(),
            scratch: RelaxationScratch::default(),
        })
    }

    /// A flow begins, over these lanes in any order (one named twice counts once).
    ///
    /// # Errors
    /// If there is such a flow already, no such lane, or no room for one more flow.
    pub fn start(
        &mut self,
        id: FlowId,
        lanes: &[u32],
        terms: FlowTerms,
    ) -> Result<(), SharesError> {
        if let Some(&lane) = lanes.iter().find(|lane| **lane as usize >= self.lanes.len()) {
            return Err(SharesError::UnknownLane { lane, lanes: self.lanes.len() });
        }
        if self.places.contains_key(&id) {
            return Err(SharesError::KnownFlow(id));
        }
        let place = self.vacate().ok_or(SharesError::TooManyFlows(id))?;
        let mut path = lanes.to_vec();
        path.sort_unstable();
        path.dedup();
        let seats = path.iter().map(|lane| self.lane_flows[*lane as usize].join(place)).collect();
        self.length += path.len();
        self.flows[place as usize] = FlowConstraints::new(LanePath::new(&path));
        self.records[place as usize] = FlowShareRecord::new(id, terms, seats);
        self.places.insert(id, place);
        self.news += 1;
        self.enter(place);
        Ok(())
    }

    /// A flow ends.
    ///
    /// # Errors
    /// If there is no such flow.
    pub fn stop(&mut self, id: FlowId) -> Result<(), SharesError> {
        let place = self.places.remove(&id).ok_or(SharesError::UnknownFlow(id))?;
        self.news += 1;
        self.leave(place);
        let flow = core::mem::replace(&mut self.flows[place as usize], FlowConstraints::vacant());
        let record =
            core::mem::replace(&mut self.records[place as usize], FlowShareRecord::vacant());
        let path = flow.path.lanes();
        self.length -= path.len();
        for (lane, seat) in path.iter().zip(record.seats) {
            if let Some(moved) = self.lane_flows[*lane as usize].part(seat) {
                self.reseat(moved, *lane, seat);
            }
        }
        self.vacant.push(place);
        Ok(())
    }

    /// A flow goes on under other terms.
    ///
    /// # Errors
    /// If there is no such flow.
    pub fn change(&mut self, id: FlowId, terms: FlowTerms) -> Result<(), SharesError> {
        let place = self.place(id).ok_or(SharesError::UnknownFlow(id))?;
        if self.records[place as usize].terms != terms {
            self.news += 1;
            self.leave(place);
            self.records[place as usize].terms = terms;
            self.enter(place);
        }
        Ok(())
    }

    /// A lane has another capacity from now on.
    ///
    /// # Errors
    /// If there is no such lane, or if the capacity is 2⁴⁸ bit/s or more.
    pub fn set_capacity(&mut self, lane: u32, capacity: Option<Rate>) -> Result<(), SharesError> {
        let lanes = self.lanes.len();
        let index = lane as usize;
        if index >= lanes {
            return Err(SharesError::UnknownLane { lane, lanes });
        }
        let capacity = checked(lane, capacity)?;
        if self.lanes[index].capacity == capacity {
            return Ok(());
        }
        self.news += 1;
        // The ceiling of a flow depends on it too.
        let places = self.lane_flows[index].members.clone();
        for place in &places {
            self.leave(*place);
        }
        self.lanes[index].limit(capacity);
        for place in &places {
            self.enter(*place);
        }
        Ok(())
    }

    /// Makes the shares fit again, and returns the changed ones in the order of flow ids: those of
    /// flows that started, and those that changed by a bit a second or more. A flow that has
    /// stopped is not among them.
    pub fn settle(&mut self) -> &[FlowShareChange] {
        if self.news > FEW + self.places.len() / MANY || !self.relax() {
            self.fill();
        }
        self.collect()
    }

    /// The same, with all shares found from nothing: the reference for measurements and tests of
    /// [`MaxMinShares::settle`].
    pub fn settle_from_nothing(&mut self) -> &[FlowShareChange] {
        self.fill();
        self.collect()
    }

    /// The share of a flow; the inner `None` is without limit. `None`: no such flow, or not
    /// settled yet.
    #[must_use]
    pub fn share(&self, id: FlowId) -> Option<Option<Rate>> {
        self.records[self.place(id)? as usize].reported
    }

    /// The terms of a flow.
    #[must_use]
    pub fn terms(&self, id: FlowId) -> Option<FlowTerms> {
        Some(self.records[self.place(id)? as usize].terms)
    }

    /// Why the flow has no more, as of the last time shares were settled (of several lanes, the
    /// first). `None`: no such flow.
    #[must_use]
    pub fn limit(&self, id: FlowId) -> Option<ShareConstraint> {
        let place = self.place(id)? as usize;
        let level = self.states[place].level;
        if level == level::NONE {
            return Some(ShareConstraint::Nothing);
        }
        let full = |lane: &&u32| self.lanes[**lane as usize].level == level;
        let lane = self.flows[place].path.lanes().iter().find(full);
        Some(lane.map_or(ShareConstraint::Ceiling, |lane| ShareConstraint::Lane(*lane)))
    }

    /// The sum of the shares of a lane's flows, in bits a second, those without limit left out.
    #[must_use]
    pub fn given(&self, lane: u32) -> u64 {
        let members =
            self.lane_flows.get(lane as usize).map_or(&[][..], |flows_here| &flows_here.members);
        let records = members.iter().map(|place| &self.records[*place as usize]);
        let shares = records.filter_map(|record| record.reported.flatten());
        shares.fold(0, |sum, share| sum.saturating_add(share.bits_per_second()))
    }

    /// The flows, in the order of their ids.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.places.keys().copied()
    }

    /// How many flows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn place(&self, id: FlowId) -> Option<u32> {
        self.places.get(&id).copied()
    }
}

/// The shares of flows that all run at a time, in their order: [`MaxMinShares`] for once.
///
/// # Errors
/// As [`MaxMinShares::new`] and [`MaxMinShares::start`].
pub fn allocate<M: SharingModel>(
    model: M,
    capacities: &[Option<Rate>],
    flows: &[(&[u32], FlowTerms)],
) -> Result<Vec<Option<Rate>>, SharesError> {
    let mut shares = MaxMinShares::new(model, capacities)?;
    for (id, (lanes, terms)) in (0..).zip(flows) {
        shares.start(FlowId(id), lanes, *terms)?;
    }
    Ok(shares.settle_from_nothing().iter().map(|change| change.share).collect())
}

/// Where more than so many flows and one in so many are new, all shares are found from nothing.
const FEW: usize = 64;
const MANY: usize = 16;

fn checked(lane: u32, capacity: Option<Rate>) -> Result<u128, SharesError> {
    match capacity {
        Some(capacity) if capacity.bits_per_second() >= level::CAPACITY_END => {
            Err(SharesError::CapacityTooLarge { lane, capacity })
        }
        capacity => Ok(capacity.map_or(level::NONE, level::grains)),
    }
}
