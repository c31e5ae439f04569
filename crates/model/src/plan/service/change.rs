//! Changes of services while a run lives.

use serde::{Deserialize, Serialize};

use super::port::ServicePort;
use crate::id::{NodeId, ServiceId};

/// A change of one service at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    /// The service.
    pub service: ServiceId,
    /// What changes.
    pub update: ServiceUpdate,
}

/// What changes. The first four are what is seen of a replica; the others are asked for, by events
/// and by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceUpdate {
    /// A program of the replica listens on this port (UDP: has bound it). That ends a loss.
    Registered {
        /// The replica.
        replica: NodeId,
        /// One of the service's ports.
        port: ServicePort,
    },
    /// None does any longer, and the replica's kernel is still there: established connections stay
    /// with it, and are its kernel's to end. UDP flows go elsewhere at once.
    Withdrawn {
        /// The replica.
        replica: NodeId,
        /// One of the service's ports.
        port: ServicePort,
    },
    /// The replica's node is gone with its kernel: all of its ports are withdrawn, and established
    /// connections are treated as the service says.
    Lost {
        /// The replica.
        replica: NodeId,
    },
    /// What a probe found: an unhealthy replica gets nothing new, and UDP flows go elsewhere at
    /// once.
    Health {
        /// The replica.
        replica: NodeId,
        /// Whether the probe went well.
        healthy: bool,
    },
    /// A replica that drains gets nothing new, and keeps its connections and flows.
    Drain {
        /// The replica.
        replica: NodeId,
        /// Whether it drains from now on, or no longer.
        drain: bool,
    },
    /// Another share of what is new.
    Weight {
        /// The replica.
        replica: NodeId,
        /// At most [`Service::WEIGHT_MAX`](super::Service::WEIGHT_MAX).
        weight: u32,
    },
    /// A node becomes a replica, the last in order, or is one again, at its place.
    Add {
        /// The node.
        replica: NodeId,
    },
    /// A replica is one no longer: it gets nothing new, and keeps its connections; UDP flows go
    /// elsewhere at once.
    Remove {
        /// The replica.
        replica: NodeId,
    },
}

impl ServiceUpdate {
    /// The replica that it is about.
    #[must_use]
    pub const fn replica(&self) -> NodeId {
        match *self {
            ServiceUpdate::Registered { replica, .. }
            | ServiceUpdate::Withdrawn { replica, .. }
            | ServiceUpdate::Lost { replica }
            | ServiceUpdate::Health { replica, .. }
            | ServiceUpdate::Drain { replica, .. }
            | ServiceUpdate::Weight { replica, .. }
            | ServiceUpdate::Add { replica }
            | ServiceUpdate::Remove { replica } => replica,
        }
    }

    /// Whether a file or a person may ask for it; the others are seen.
    #[must_use]
    pub const fn is_asked_for(&self) -> bool {
        matches!(
            self,
            ServiceUpdate::Drain { .. }
                | ServiceUpdate::Weight { .. }
                | ServiceUpdate::Add { .. }
                | ServiceUpdate::Remove { .. }
        )
    }
}
