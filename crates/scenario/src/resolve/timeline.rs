//! Events while they are worked out.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::ScheduledEvent;
use windtunnel_model::{NodeId, Span};

use crate::position::SourceLocation;

/// Events while they are worked out.
#[derive(Debug, Default)]
pub(super) struct EventTimeline {
    pub(super) events: Vec<ScheduledEvent>,
    /// The nodes that take part in a churn, and whether it is by a script or a trace.
    pub(super) churned: BTreeMap<NodeId, bool>,
    /// By their times, the places of events that begin a partition.
    pub(super) parted: BTreeMap<Span, SourceLocation>,
    /// Events of which it has been said that they undo another one's partition.
    pub(super) replaces: BTreeSet<SourceLocation>,
}
