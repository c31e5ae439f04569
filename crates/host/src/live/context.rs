//! What all parts of the main loop share.

use std::sync::Arc;

use windtunnel_model::Plan;

use super::journal::Journal;
use super::nodes::Nodes;
use crate::folder::Folder;
use crate::output::ProgramKey;

/// The plan, the run folder, the nodes here, and where events go.
pub(super) struct Context {
    pub(super) plan: Arc<Plan>,
    pub(super) folder: Folder,
    pub(super) nodes: Nodes,
    pub(super) journal: Journal,
}

impl Context {
    /// The name of a program's node.
    pub(super) fn node_of(&self, key: ProgramKey) -> String {
        self.plan.nodes[key.node].name.clone()
    }
}
