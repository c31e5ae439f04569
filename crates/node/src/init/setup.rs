//! What an init is given.

use std::path::{Path, PathBuf};

use windtunnel_model::id::NodeId;
use windtunnel_model::{Plan, plan};
use windtunnel_routing::Routes;
use windtunnel_sys::namespace::IdMap;
use windtunnel_sys::process::UserIdentity;

use crate::node_set::files::NodeFiles;
use crate::node_set::own_root::OwnRoot;
use crate::node_set::recording::ProgramRecordingSetup;
use crate::node_set::tables::TableLimits;

/// What an init knows from the fork, in its copy of the host process's memory.
pub(crate) struct InitSetup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) routes: &'a Routes,
    pub(crate) id: NodeId,
    /// The id maps of the user namespace of its programs, if they have one of their own.
    pub(crate) inside: Option<IdMap>,
    pub(crate) files: NodeFiles,
    /// The run folder, in which its programs may write in the node's folder only.
    pub(crate) run_dir: &'a Path,
    /// What no program may see.
    pub(crate) hidden: &'a [PathBuf],
    /// What a private node sees nevertheless.
    pub(crate) kept: &'a [PathBuf],
    /// For its programs.
    pub(crate) nice: i32,
    /// What its programs leave records by.
    pub(crate) recorded: Option<&'a ProgramRecordingSetup>,
    /// What keeps its limits as they are where it has a table of connections of its own.
    pub(crate) tables: Option<&'a TableLimits>,
    /// Its own file system, if it has one.
    pub(crate) own: Option<&'a OwnRoot>,
    /// The user that its programs become.
    pub(crate) account: Option<UserIdentity>,
}

impl InitSetup<'_> {
    pub(crate) fn node(&self) -> &plan::Node {
        &self.plan.nodes[self.id.index()]
    }
}
