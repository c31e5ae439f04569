//! The files of nodes, kept volumes, and records, out of the parts' folders.

use std::fs;
use std::path::Path;

use windtunnel_folder::{FolderError, RECORDS, RunOutputFolder, VOLUMES, failed};
use windtunnel_model::Plan;
use windtunnel_model::plan::{Node, NodeFilesystem, VolumeSource};

use super::parts::RunPartFolders;

/// Moves each node's files, its volumes that are kept, and all records, from the parts' folders to the
/// run folder.
pub(super) fn adopt(
    plan: &Plan,
    folder: &RunOutputFolder,
    parts: &RunPartFolders,
) -> Result<(), FolderError> {
    for (node, place) in plan.nodes.iter().zip(&parts.placement) {
        let Some((_, Ok(part))) = parts.members.get(usize::from(*place)) else { continue };
        let (from, to) = (part.join("nodes").join(&node.name), folder.node(&node.name));
        move_all(&from, &to)?;
        adopt_volumes(node, folder, part)?;
    }
    // Their names begin with the number of the member.
    for part in parts.members.iter().filter_map(|(_, part)| part.as_ref().ok()) {
        let from = part.join(RECORDS);
        if from.is_dir() {
            let to = folder.file(RECORDS);
            fs::create_dir_all(&to).map_err(failed("make", &to))?;
            move_all(&from, &to)?;
        }
    }
    Ok(())
}

/// All nodes of a volume are on one machine.
fn adopt_volumes(node: &Node, folder: &RunOutputFolder, part: &Path) -> Result<(), FolderError> {
    let Some(root) = node.root.as_ref().filter(|root| root.keep) else { return Ok(()) };
    for name in named_volumes(root) {
        let from = part.join(VOLUMES).join(name);
        let to = folder.file(VOLUMES).join(name);
        // Another node has brought it, or it had no files.
        if from.is_dir() {
            fs::create_dir_all(&to).map_err(failed("make", &to))?;
            move_all(&from, &to)?;
        }
    }
    Ok(())
}

/// Names of the volumes that are not folders of the machine.
fn named_volumes(root: &NodeFilesystem) -> impl Iterator<Item = &String> {
    root.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Named(name) => Some(name),
        VolumeSource::Path(_) => None,
    })
}

fn move_all(from: &Path, to: &Path) -> Result<(), FolderError> {
    for entry in fs::read_dir(from).map_err(failed("read", from))? {
        let entry = entry.map_err(failed("read", from))?;
        let target = to.join(entry.file_name());
        fs::rename(entry.path(), &target).map_err(failed("write", &target))?;
    }
    Ok(())
}
