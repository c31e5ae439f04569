//! What events are resolved against.

use std::collections::BTreeSet;

use windtunnel_model::{Lane, NodeId, Plan, Span};

use super::directory::Directory;
use super::lanes::lanes;
use crate::decode::PathModelReason;
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::source::ReadFile;

/// What events are resolved against.
pub(super) struct Scene<'a> {
    pub(super) directory: &'a Directory,
    pub(super) plan: &'a Plan,
    /// Why the plan's network model is paths, if it is.
    pub(super) why: PathModelReason,
    /// The text in which the events stand, for places inside of it.
    pub(super) text: &'a str,
    pub(super) files: &'a ReadFile<'a>,
    /// When the events are seen: the beginning of the run, or now.
    pub(super) now: Span,
    /// The nodes outside the population now; `None`: the run has not begun.
    pub(super) absent: Option<&'a BTreeSet<NodeId>>,
    /// The nodes that events make replicas, each with its service.
    pub(super) added: &'a [(String, NodeId)],
}

impl Scene<'_> {
    /// The lanes of several links.
    pub(super) fn lanes(
        &self,
        found: &mut Diagnostics,
        links: &[LocatedValue<String>],
        direction: Option<&LocatedValue<String>>,
    ) -> Option<Vec<Lane>> {
        let mut all = Vec::new();
        for name in links {
            all.extend(lanes(found, self.directory, self.plan, name, direction)?);
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// All nodes of these names; `verb` says what their programs are needed for.
    pub(super) fn members(
        &self,
        found: &mut Diagnostics,
        names: &[LocatedValue<String>],
        verb: &str,
    ) -> Option<Vec<NodeId>> {
        let mut nodes = Vec::new();
        for name in names {
            let these = self.directory.nodes(found, name)?;
            if these.iter().all(|id| self.plan.nodes[id.index()].programs.is_empty()) {
                let message = format!("`{}` has no program to {verb}", name.value);
                found.mistake(name.place, message);
                return None;
            }
            nodes.extend(these);
        }
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }
}
