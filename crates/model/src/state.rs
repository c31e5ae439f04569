//! What changes make of a network: the state of its lanes, and of the replicas of its services.
//!
//! What has to know that state keeps it by these types, beside what is its own: the engine beside
//! packets and flows, the main loop of a run for the log and for clients. Both apply the same
//! changes in the same order, so both know the same.

mod lane;
mod replica;

pub use lane::{LaneChange, LaneCut, LaneState};
pub use replica::ReplicaState;
