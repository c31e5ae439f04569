//! What can be claimed of a service.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Bounds;
use crate::id::NodeId;
use crate::probability::Probability;
use crate::time::Span;

/// What can be claimed of a service, of the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceFact {
    /// How often a replica was expelled from a connection that others go on with.
    Expelled(Bounds<u64>),
    /// How many connections ended with their replica's node.
    Lost(Bounds<u64>),
    /// Packets that no replica got.
    Unserved(Bounds<u64>),
    /// The share of all connections and flows that began which these replicas got.
    Share(Vec<NodeId>, Bounds<Probability>),
    /// The longest time that the client of an expelled replica was sent nothing.
    Gap(Bounds<Span>),
}
