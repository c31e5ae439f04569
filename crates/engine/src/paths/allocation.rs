//! Which flow has how much of which lane, and what is left.
//!
//! **What is left** of a lane may be used by flows that have a share and turn out to want more,
//! until the shares know (50 ms at the most). On one machine every path may take all of it, as it
//! always has. Where flows of other machines are on the lane too, a machine may take the part of it
//! that its modest flows, those with a demand, are of all modest ones there; the others are held
//! back by some lane that has nothing left. As every machine knows the same flows, the parts add up
//! to what is left at the most.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::{Lane, Rate};
use windtunnel_sharing::{FlowId, MaxMinShares, SharingModelKind};

/// The shares of all flows, here and elsewhere.
#[derive(Debug)]
pub(crate) struct Allocation {
    shares: MaxMinShares<SharingModelKind>,
    members: BTreeMap<FlowId, FlowAllocation>,
    /// By lane.
    lanes: Vec<LaneAllocation>,
    touched: AllocationChanges,
}

/// Lanes and paths whose rates may be other ones since the last time.
#[derive(Debug, Default)]
pub(crate) struct AllocationChanges {
    pub(crate) lanes: Vec<usize>,
    pub(crate) paths: Vec<usize>,
}

#[derive(Debug)]
struct FlowAllocation {
    lanes: Vec<Lane>,
    /// The path that it goes; `None`: it is another machine's.
    path: Option<usize>,
    /// As last reported; 0 where nothing limits it.
    share: u64,
    /// Whether it has a demand.
    modest: bool,
}

/// The flows of a lane.
#[derive(Debug, Clone, Default)]
struct LaneAllocation {
    /// What their shares add up to, and those of the flows here.
    given: u64,
    own: u64,
    /// How many are other machines'.
    away: u32,
    /// How many want no more than they say: here, and on other machines.
    modest: [u32; 2],
    /// Whether it is in `AllocationChanges`.
    touched: bool,
}

impl Allocation {
    /// No flows yet, on lanes of these capacities.
    pub(crate) fn new(sharing: SharingModelKind, capacities: &[Option<Rate>]) -> Self {
        let shares = MaxMinShares::new(sharing, capacities);
        Allocation {
            shares: shares.expect("a plan's links and their rates are bounded"),
            members: BTreeMap::new(),
            lanes: vec![LaneAllocation::default(); capacities.len()],
            touched: AllocationChanges::default(),
        }
    }

    pub(crate) fn set_capacity(&mut self, lane: Lane, capacity: Option<Rate>) {
        let changed = self.shares.set_capacity(number(lane), capacity);
        debug_assert!(changed.is_ok(), "rates of links are bounded");
    }

    /// A flow takes part from now on, unless there are too many.
    pub(crate) fn start(
        &mut self,
        id: FlowId,
        path: Option<usize>,
        lanes: Vec<Lane>,
        terms: FlowTerms,
    ) -> bool {
        let numbers: Vec<u32> = lanes.iter().copied().map(number).collect();
        if self.shares.start(id, &numbers, terms).is_err() {
            return false;
        }
        let member = FlowAllocation { lanes, path, share: 0, modest: terms.demand.is_some() };
        self.account(&member, true);
        self.members.insert(id, member);
        true
    }

    /// A flow is no more; whether it took part.
    pub(crate) fn stop(&mut self, id: FlowId) -> bool {
        let Some(member) = self.members.remove(&id) else { return false };
        let stopped = self.shares.stop(id);
        debug_assert!(stopped.is_ok(), "members are in the table");
        self.account(&member, false);
        true
    }

    /// A flow goes on under other terms, perhaps over other lanes.
    pub(crate) fn renew(&mut self, id: FlowId, lanes: Vec<Lane>, terms: FlowTerms) {
        let Some(member) = self.members.get(&id) else { return };
        if member.lanes == lanes {
            return self.change(id, terms);
        }
        let path = member.path;
        self.stop(id);
        let started = self.start(id, path, lanes, terms);
        debug_assert!(started, "there is the room that it had");
    }

    /// A flow goes on under other terms.
    pub(crate) fn change(&mut self, id: FlowId, terms: FlowTerms) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let changed = self.shares.change(id, terms);
        debug_assert!(changed.is_ok(), "members are in the table");
        let modest = terms.demand.is_some();
        if core::mem::replace(&mut member.modest, modest) != modest {
            let side = usize::from(member.path.is_none());
            for lane in &member.lanes {
                let load = &mut self.lanes[lane.index()];
                count(&mut load.modest[side], modest);
                self.touched.note(lane.index(), load);
            }
        }
    }

    /// Allocates the bandwidth anew; the lanes and paths that may be concerned.
    pub(crate) fn settle(&mut self) -> AllocationChanges {
        for change in self.shares.settle() {
            let Some(member) = self.members.get_mut(&change.flow) else { continue };
            let share = change.share.map_or(0, Rate::bits_per_second);
            let had = core::mem::replace(&mut member.share, share);
            for lane in &member.lanes {
                let load = &mut self.lanes[lane.index()];
                load.given = load.given - had + share;
                if member.path.is_some() {
                    load.own = load.own - had + share;
                }
                self.touched.note(lane.index(), load);
            }
            self.touched.paths.extend(member.path);
        }
        for lane in &self.touched.lanes {
            self.lanes[*lane].touched = false;
        }
        core::mem::take(&mut self.touched)
    }

    /// The share of a flow, as last reported; 0 where nothing limits it.
    pub(crate) fn share(&self, id: FlowId) -> Option<u64> {
        self.members.get(&id).map(|member| member.share)
    }

    /// The share of a flow, where one has been reported and something limits it.
    pub(crate) fn rate(&self, id: FlowId) -> Option<Rate> {
        Rate::from_bits_per_second(self.share(id)?)
    }

    pub(crate) fn terms(&self, id: FlowId) -> Option<FlowTerms> {
        self.shares.terms(id)
    }

    /// The lanes of a flow that takes part.
    pub(crate) fn lanes(&self, id: FlowId) -> &[Lane] {
        self.members.get(&id).map_or(&[], |member| &member.lanes)
    }

    /// What a path here may take of a lane beside the shares of its flows.
    pub(crate) fn spare(&self, lane: Lane, capacity: Rate) -> u64 {
        let load = &self.lanes[lane.index()];
        let left = capacity.bits_per_second().saturating_sub(load.given);
        if load.away == 0 {
            return left;
        }
        let [here, away] = load.modest.map(u128::from);
        let part = (u128::from(left) * here).checked_div(here + away).unwrap_or(0);
        u64::try_from(part).unwrap_or(left)
    }

    /// What flows here may give a lane of this capacity, and whether flows of other machines are on
    /// it: its capacity, or the shares of the flows here and their part of what is left.
    pub(crate) fn available(&self, lane: Lane, capacity: Option<Rate>) -> (Option<Rate>, bool) {
        let load = &self.lanes[lane.index()];
        let Some(rate) = capacity.filter(|_| load.away > 0) else { return (capacity, false) };
        (Rate::from_bits_per_second(load.own.saturating_add(self.spare(lane, rate))), true)
    }

    fn account(&mut self, member: &FlowAllocation, comes: bool) {
        let is_away = member.path.is_none();
        for lane in &member.lanes {
            let load = &mut self.lanes[lane.index()];
            load.given -= member.share;
            load.own -= if is_away { 0 } else { member.share };
            if is_away {
                count(&mut load.away, comes);
            }
            if member.modest {
                count(&mut load.modest[usize::from(is_away)], comes);
            }
            self.touched.note(lane.index(), load);
        }
        self.touched.paths.extend(member.path);
    }
}

impl AllocationChanges {
    fn note(&mut self, lane: usize, load: &mut LaneAllocation) {
        if !core::mem::replace(&mut load.touched, true) {
            self.lanes.push(lane);
        }
    }
}

/// One more, or one less.
fn count(number: &mut u32, comes: bool) {
    *number = if comes { *number + 1 } else { *number - 1 };
}

/// The number of a lane, as the shares have it.
fn number(lane: Lane) -> u32 {
    u32::try_from(lane.index()).unwrap_or(u32::MAX)
}
