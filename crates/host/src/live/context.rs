//! What all parts of the main loop share.

use std::cell::RefCell;
use std::sync::Arc;

use windtunnel_folder::RunOutputFolder;
use windtunnel_model::{Plan, Span};
use windtunnel_verdict::evidence::ProgramKey;

use super::journal::Journal;
use super::nodes::RunNodeTable;
use super::punctuality::{PunctualityMonitor, ScheduledOccurrence};

/// The plan, the run folder, the nodes here, and where events go.
pub(super) struct RunContext {
    pub(super) plan: Arc<Plan>,
    pub(super) folder: RunOutputFolder,
    pub(super) nodes: RunNodeTable,
    pub(super) journal: Journal,
    pub(super) punctuality: RefCell<PunctualityMonitor>,
}

impl RunContext {
    /// Something that was planned for a time of the run happened `at` another.
    pub(super) fn happened(&self, what: ScheduledOccurrence<'_>, intended: Span, at: Span) {
        self.punctuality.borrow_mut().happened(what, intended, at);
    }

    /// The name of a program's node.
    pub(super) fn node_of(&self, key: ProgramKey) -> String {
        self.plan.nodes[key.node].name.clone()
    }
}
