//! What happens in a run at given times.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::partition::PartitionMode;
use super::route::FixedRoute;
use super::service::ServiceChange;
use crate::demand::Demand;
use crate::id::{Lane, NetworkVertex, NodeId};
use crate::profile::LinkPatch;
use crate::time::Span;

/// A change at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    /// After the run began.
    pub at: Span,
    /// What happens.
    pub action: EventAction,
}

/// What an event does; all of it at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventAction {
    /// Sets properties and/or the state of links.
    Link(LinkChange),
    /// One phase of a flap: cuts lanes or mends them. A lane carries packets only if no flap holds
    /// it cut; every cut is followed by one mend.
    Flap {
        /// The lanes.
        lanes: Vec<Lane>,
        /// Whether they are mended (`true`) or cut.
        up: bool,
    },
    /// Does something to the programs of nodes.
    Node {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// What is done.
        verb: NodeVerb,
    },
    /// Churn: nodes go and come at one instant. A node in both lists is started afresh.
    Churn {
        /// The nodes whose programs end.
        leave: Vec<NodeId>,
        /// How they end: [`NodeVerb::Kill`] or [`NodeVerb::Stop`].
        by: NodeVerb,
        /// The nodes whose programs start.
        join: Vec<NodeId>,
    },
    /// Nodes that churn will bring: their programs do not start before they join.
    Absent {
        /// The nodes.
        nodes: Vec<NodeId>,
    },
    /// Gives nodes other limits, or their first.
    Limit {
        /// The nodes.
        nodes: Vec<NodeId>,
        /// Of these, processor time, memory and processes; what is `None` stays as it is.
        limits: Demand,
    },
    /// Cuts links between groups, until healed. Vertices in no group keep their links.
    Partition {
        /// By two, where they are pairs.
        groups: Vec<Vec<NetworkVertex>>,
        /// Which of the links.
        #[serde(default, skip_serializing_if = "PartitionMode::is_between")]
        cut: PartitionMode,
    },
    /// Ends the partition.
    Heal,
    /// Fixes routes, or sets them free again.
    Route(RouteChange),
    /// Computes all shortest routes again, for the latencies and states that lanes have now.
    Reroute,
    /// Changes what replicas of a service get.
    Service(Vec<ServiceChange>),
}

/// Routes that change at one instant. What is under way goes on by the new ones, so it may be
/// reordered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouteChange {
    /// Pairs of source and destination that use the shortest route again. Done first.
    pub release: Vec<(NodeId, NodeId)>,
    /// Routes that are fixed from now on, each instead of an earlier one between the same ends.
    pub fix: Vec<FixedRoute>,
}

impl EventAction {
    /// Whether it is about programs; everything else is about the network.
    #[must_use]
    pub const fn is_about_programs(&self) -> bool {
        matches!(
            self,
            EventAction::Node { .. }
                | EventAction::Churn { .. }
                | EventAction::Absent { .. }
                | EventAction::Limit { .. }
        )
    }
}

/// A change of lanes at one instant. `up`/`down` of [`LinkChange::state`] are independent of
/// partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChange {
    /// The lanes and what changes on each.
    pub patches: Vec<(Lane, LinkPatch)>,
    /// Lanes taken down (`false`) or up (`true`).
    pub state: Vec<(Lane, bool)>,
}

/// What can be done to a node's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeVerb {
    /// SIGKILL; they are not restarted.
    Kill,
    /// SIGTERM; they are not restarted.
    Stop,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    /// SIGKILL, then started again.
    Restart,
}

impl NodeVerb {
    /// The word for it in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            NodeVerb::Kill => "kill",
            NodeVerb::Stop => "stop",
            NodeVerb::Pause => "pause",
            NodeVerb::Resume => "resume",
            NodeVerb::Restart => "restart",
        }
    }
}
