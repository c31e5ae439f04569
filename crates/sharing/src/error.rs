//! Errors of the table.

use windtunnel_model::Rate;

use crate::FlowId;

/// Why the table refused a call. It is then as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SharesError {
    /// A flow period, or a capacity of, a lane that the table does not have.
    #[error("no lane {lane}: the table has {lanes}")]
    UnknownLane {
        /// The lane named.
        lane: u32,
        /// How many lanes there are, numbered from 0.
        lanes: usize,
    },
    /// A flow that has not started, or has stopped.
    #[error("no flow {0}")]
    UnknownFlow(FlowId),
    /// A flow that has started already.
    #[error("flow {0} has started already")]
    KnownFlow(FlowId),
    /// More flows at a time than the arithmetic is exact for.
    #[error("flow {0} is one too many: at most {most} at a time", most = crate::shares::FLOWS_MAX)]
    TooManyFlows(FlowId),
    /// More lanes than can be numbered.
    #[error("{0} lanes are too many: at most 2^32")]
    TooManyLanes(usize),
    /// A capacity that the arithmetic has no room for.
    #[error(
        "{capacity} for lane {lane} is too much: a limited lane has less than 2^48 bit/s (281 tbit)"
    )]
    CapacityTooLarge {
        /// The lane.
        lane: u32,
        /// The capacity requested.
        capacity: Rate,
    },
}
