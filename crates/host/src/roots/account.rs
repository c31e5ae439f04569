//! The user that the programs of a node are.

use std::path::Path;

use windtunnel_image::{ImageOwnerMapping, ImageUserAccount, MergedLayerTree};
use windtunnel_model::plan::{Node, NodeFilesystem, ProgramUser};
use windtunnel_node::Namespaces;
use windtunnel_sys::process;

use super::RootError;

/// What the programs of a node are.
pub(super) struct ProgramUserAccount {
    /// The user that they become, if they are neither the invoker nor root.
    pub(super) user: Option<process::UserIdentity>,
    /// Its supplementary groups; `None`: as they are.
    pub(super) groups: Option<Vec<u32>>,
    pub(super) home: String,
}

/// What the programs of a node are. Groups that there are not here go to `notes`.
pub(super) fn of(
    node: &Node,
    root: &NodeFilesystem,
    files: &MergedLayerTree,
    namespaces: &Namespaces,
    notes: &mut Vec<String>,
) -> Result<ProgramUserAccount, RootError> {
    let invoker = namespaces.invoker().uid.to_string();
    let text = match (node.user, &root.user) {
        (ProgramUser::Invoker, _) => invoker.as_str(),
        (ProgramUser::Image, Some(user)) => user,
        _ => "0",
    };
    let read = |path: &str| {
        let bytes = files.read(Path::new(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let found = ImageUserAccount::find(text, &read("etc/passwd"), &read("etc/group"));
    let found = found.map_err(|source| RootError::Account { node: node.name.clone(), source })?;
    let ImageUserAccount { uid, gid, groups, home } = found;
    let home = home.unwrap_or_else(|| if uid == 0 { "/root" } else { "/" }.to_owned());
    let ids = namespaces.owners();
    if node.user == ProgramUser::Invoker {
        return Ok(ProgramUserAccount { user: None, groups: None, home });
    }
    let (there, missing): (Vec<u32>, Vec<u32>) =
        groups.into_iter().partition(|group| ids.owner(0, (*group).into()).is_some());
    if !missing.is_empty() && ids != ImageOwnerMapping::One {
        notes.push(format!(
            "node {}: its user is not in the groups {missing:?} of its image, which are beyond the \
             subordinate identities here",
            node.name
        ));
    }
    let groups = namespaces.has_other_users().then_some(there);
    // As which each program starts; root with another group has to take that.
    if uid == 0 && gid == 0 {
        return Ok(ProgramUserAccount { user: None, groups, home });
    }
    if ids != ImageOwnerMapping::One && ids.owner(uid.into(), gid.into()).is_none() {
        return Err(RootError::Beyond { node: node.name.clone(), uid, gid });
    }
    Ok(ProgramUserAccount { user: Some(process::UserIdentity { uid, gid }), groups, home })
}
