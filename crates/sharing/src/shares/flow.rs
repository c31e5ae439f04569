//! What the table keeps of a flow, beside its level: what is needed to find levels, and the rest.

use windtunnel_model::{Rate, Span};

use super::{FlowId, level};
use crate::Terms;

/// What is needed to find levels. A vacant place has no lanes.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// The least level at which it has all that its terms, or the narrowest of its lanes, allow.
    pub ceiling: u128,
    pub weight: u64,
    /// Its lanes, in order.
    pub path: Box<[u32]>,
    /// Whether its place is in `Shares::noted`.
    pub noted: bool,
}

/// The rest.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub id: FlowId,
    pub terms: Terms,
    /// The share that was said last.
    pub told: Option<Option<Rate>>,
    /// For each lane of its path, where it is among the members.
    pub seats: Box<[u32]>,
}

impl Flow {
    /// A flow that takes no part yet.
    pub(super) fn new(path: Box<[u32]>) -> Self {
        Flow { ceiling: level::NONE, weight: 1, path, noted: false }
    }
}

impl Record {
    pub(super) fn new(id: FlowId, terms: Terms, seats: Box<[u32]>) -> Self {
        Record { id, terms, told: None, seats }
    }

    /// Of a vacant place.
    pub(super) fn vacant() -> Self {
        Record::new(FlowId(0), Terms::new(Span::ZERO), Box::default())
    }
}
