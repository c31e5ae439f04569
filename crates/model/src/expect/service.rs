//! What can be claimed of a service.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::ValueBounds;
use crate::id::NodeId;
use crate::probability::Probability;
use crate::time::Span;

/// What can be claimed of a service, of the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceFact {
    /// How often a replica was expelled from a connection that others go on with.
    Expelled(ValueBounds<u64>),
    /// How many connections ended with their replica's node.
    Lost(ValueBounds<u64>),
    /// Packets that no replica got.
    Unserved(ValueBounds<u64>),
    /// The share of all connections and flows that began which these replicas got.
    Share(Vec<NodeId>, ValueBounds<Probability>),
    /// The longest time that the client of an expelled replica was sent nothing.
    Gap(ValueBounds<Span>),
}
