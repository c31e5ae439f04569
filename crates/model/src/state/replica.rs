//! The state of a replica of a service, and what changes make of it.

use alloc::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::plan::{ServicePort, ServiceUpdate};
use crate::word::ReplicaAvailability;

/// What is known of a replica of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaState {
    /// Its node.
    pub node: NodeId,
    /// Its share of what is new, with weights.
    pub weight: u32,
    /// The ports of the service on which a program listens.
    pub registered: BTreeSet<ServicePort>,
    /// Whether its node is gone.
    pub is_lost: bool,
    /// Whether its probes go well; without probes, too.
    pub is_healthy: bool,
    /// Whether it gets nothing new, as somebody wishes.
    pub is_draining: bool,
    /// Whether it is a replica no longer.
    pub is_removed: bool,
}

impl ReplicaState {
    /// That of a node on which nothing listens yet.
    #[must_use]
    pub const fn new(node: NodeId, weight: u32) -> Self {
        ReplicaState {
            node,
            weight,
            registered: BTreeSet::new(),
            is_lost: false,
            is_healthy: true,
            is_draining: false,
            is_removed: false,
        }
    }

    /// Takes a change over.
    pub fn apply(&mut self, update: &ServiceUpdate) {
        match *update {
            ServiceUpdate::Registered { port, .. } => {
                self.registered.insert(port);
                self.is_lost = false;
            }
            ServiceUpdate::Withdrawn { port, .. } => {
                self.registered.remove(&port);
            }
            ServiceUpdate::Lost { .. } => {
                self.registered.clear();
                self.is_lost = true;
            }
            ServiceUpdate::Health { healthy, .. } => self.is_healthy = healthy,
            ServiceUpdate::Drain { drain, .. } => self.is_draining = drain,
            ServiceUpdate::Weight { weight, .. } => self.weight = weight,
            ServiceUpdate::Add { .. } => self.is_removed = false,
            ServiceUpdate::Remove { .. } => self.is_removed = true,
        }
    }

    /// Whether programs there serve the ports on which they listen.
    #[inline]
    #[must_use]
    pub const fn is_there(&self) -> bool {
        !self.is_lost && !self.is_removed && self.is_healthy
    }

    /// Whether it gets new connections, or why not.
    #[must_use]
    pub fn availability(&self) -> ReplicaAvailability {
        match self {
            ReplicaState { is_removed: true, .. } => ReplicaAvailability::Removed,
            ReplicaState { is_lost: true, .. } => ReplicaAvailability::Lost,
            _ if self.registered.is_empty() => ReplicaAvailability::Waiting,
            ReplicaState { is_healthy: false, .. } => ReplicaAvailability::Unhealthy,
            ReplicaState { is_draining: true, .. } => ReplicaAvailability::Draining,
            _ => ReplicaAvailability::Registered,
        }
    }
}
