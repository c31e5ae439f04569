//! The files of nodes, out of the parts' folders.

use std::fs;
use std::path::Path;

use windtunnel_model::Plan;

use super::parts::Parts;
use crate::folder::{Folder, FolderError, failed};

/// Moves each node's files from its part's folder to the run folder.
pub(super) fn adopt(plan: &Plan, folder: &Folder, parts: &Parts) -> Result<(), FolderError> {
    for (node, place) in plan.nodes.iter().zip(&parts.placement) {
        let Some((_, Ok(part))) = parts.members.get(usize::from(*place)) else { continue };
        let (from, to) = (part.join("nodes").join(&node.name), folder.node(&node.name));
        move_all(&from, &to)?;
    }
    Ok(())
}

fn move_all(from: &Path, to: &Path) -> Result<(), FolderError> {
    for entry in fs::read_dir(from).map_err(failed("read", from))? {
        let entry = entry.map_err(failed("read", from))?;
        let target = to.join(entry.file_name());
        fs::rename(entry.path(), &target).map_err(failed("write", &target))?;
    }
    Ok(())
}
