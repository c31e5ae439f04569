//! The table's state of a flow: its place, the fields needed to find levels, and the rest.
//! Separate, since the fields read for every flow of a lane should fit the caches.

use alloc::boxed::Box;

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::{Rate, Span};

use super::{FlowId, level};

/// The level and the weight of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowState {
    /// INVARIANT: the least of the flow's ceiling and of the levels of its lanes, between two
    /// calls.
    pub level: u128,
    pub weight: u64,
}

/// The fields needed to find levels. A vacant place has no lanes. One line of the cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct FlowConstraints {
    /// The least level at which it has all that its terms, or the narrowest of its lanes, allow.
    pub ceiling: u128,
    pub path: LanePath,
    /// Whether its place is in `MaxMinShares::noted`.
    pub noted: bool,
}

/// The lanes of a flow, in order: in place, if they are not many.
#[derive(Debug, Clone)]
pub(super) enum LanePath {
    Short { length: u8, lanes: [u32; SHORT] },
    Long(Box<[u32]>),
}

/// The rest.
#[derive(Debug, Clone)]
pub(super) struct FlowShareRecord {
    pub id: FlowId,
    pub terms: FlowTerms,
    /// The share that was reported last.
    pub reported: Option<Option<Rate>>,
    /// For each lane of its path, where it is among the members.
    pub seats: Box<[u32]>,
}

impl FlowConstraints {
    /// A flow that takes no part yet.
    pub(super) fn new(path: LanePath) -> Self {
        FlowConstraints { ceiling: level::NONE, path, noted: false }
    }

    /// At a vacant place.
    pub(super) fn vacant() -> Self {
        FlowConstraints::new(LanePath::new(&[]))
    }
}

impl LanePath {
    pub(super) fn new(path: &[u32]) -> Self {
        let mut lanes = [0; SHORT];
        match (lanes.get_mut(..path.len()), u8::try_from(path.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(path);
                LanePath::Short { length, lanes }
            }
            _ => LanePath::Long(path.into()),
        }
    }

    pub(super) fn lanes(&self) -> &[u32] {
        match self {
            LanePath::Short { length, lanes } => &lanes[..usize::from(*length)],
            LanePath::Long(lanes) => lanes,
        }
    }
}

impl FlowShareRecord {
    pub(super) fn new(id: FlowId, terms: FlowTerms, seats: Box<[u32]>) -> Self {
        FlowShareRecord { id, terms, reported: None, seats }
    }

    /// Of a vacant place.
    pub(super) fn vacant() -> Self {
        FlowShareRecord::new(FlowId(0), FlowTerms::new(Span::ZERO), Box::default())
    }
}

/// Lanes that fit in place: with them a flow is 64 bytes.
const SHORT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_one_line_of_the_cache() {
        assert_eq!(size_of::<FlowConstraints>(), 64);
    }

    #[test]
    fn paths_of_any_length_are_kept() {
        for length in [0, 1, 7, 8, 9, 300] {
            let lanes: Vec<u32> = (0..length).collect();
            assert_eq!(LanePath::new(&lanes).lanes(), lanes);
        }
    }
}
