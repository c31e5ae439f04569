//! Ids of flows, changed shares, and their reasons.

use core::fmt;

use windtunnel_model::Rate;

/// The id of a flow, chosen by the table's user. Changes are in the order of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A flow with a share that changed since the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowShareChange {
    /// The flow.
    pub flow: FlowId,
    /// The rate at which it may send, in bits a second of the wire; `None`: nothing limits it.
    pub share: Option<Rate>,
}

/// Why a flow has no more than its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareConstraint {
    /// Nothing: neither its lanes nor its terms.
    Nothing,
    /// Its window or its demand.
    Ceiling,
    /// This lane is full, and no flow there has, for its weight, more.
    Lane(u32),
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
