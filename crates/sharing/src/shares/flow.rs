//! What the table keeps of a flow.

use windtunnel_model::{Rate, Span};

use super::{FlowId, level};
use crate::Terms;

/// A flow, or a vacant place. What is needed to find levels comes first.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Flow {
    /// INVARIANT: the least of the ceiling and of the levels of its lanes, except within a step of `relax`.
    pub level: u128,
    /// The least level at which it has all that its terms, or the narrowest of its lanes, allow.
    pub ceiling: u128,
    pub weight: u64,
    /// Its lanes, by number. Empty for a vacant place.
    pub hops: Box<[Hop]>,
    /// Whether its place is in `Shares::noted`.
    pub noted: bool,
    /// The share that was said last.
    pub told: Option<Option<Rate>>,
    pub id: FlowId,
    pub terms: Terms,
}

/// A lane on a flow's path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub lane: u32,
    /// Where the flow is among the lane's members.
    pub at: u32,
}

impl Flow {
    /// A flow that takes no part yet.
    pub(super) fn new(id: FlowId, hops: Box<[Hop]>, terms: Terms) -> Self {
        Flow {
            level: level::NONE,
            ceiling: level::NONE,
            weight: 1,
            hops,
            noted: false,
            told: None,
            id,
            terms,
        }
    }

    pub(super) fn share(&self) -> Option<Rate> {
        level::rate(self.level, self.weight)
    }

    /// It took the other's place among the members of a lane.
    pub(super) fn moved(&mut self, other: Hop) {
        let hop = self.hops.iter_mut().find(|hop| hop.lane == other.lane);
        hop.expect("a member of a lane has the lane on its path").at = other.at;
    }
}

impl Default for Flow {
    /// A vacant place.
    fn default() -> Self {
        Flow::new(FlowId(0), Box::default(), Terms::new(Span::ZERO))
    }
}
