//! What several nodes have together of their machine.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::id::ReservationId;

/// Limits, minimum and weight of several nodes together, or of other reservations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ResourceReservation {
    /// Unique among reservations, nodes and groups of these.
    pub name: String,
    /// The one that it is part of; `None`: of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ReservationId>,
    /// What all that is within has together.
    pub demand: Demand,
}
