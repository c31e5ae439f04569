//! The user that the programs of a node are.

use std::path::Path;

use windtunnel_image::{Account, Ids, Merged};
use windtunnel_model::plan::{Node, Root, User};
use windtunnel_node::Namespaces;
use windtunnel_sys::process;

use super::RootError;

/// The user that programs become, if they are neither the invoker nor root, and their home.
pub(super) fn of(
    node: &Node,
    root: &Root,
    files: &Merged,
    namespaces: &Namespaces,
) -> Result<(Option<process::User>, String), RootError> {
    let invoker = namespaces.invoker().uid.to_string();
    let text = match (node.user, &root.user) {
        (User::Invoker, _) => invoker.as_str(),
        (User::Image, Some(user)) => user,
        _ => "0",
    };
    let read = |path: &str| {
        let bytes = files.read(Path::new(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let found = Account::find(text, &read("etc/passwd"), &read("etc/group"));
    let found = found.map_err(|source| RootError::Account { node: node.name.clone(), source })?;
    let Account { uid, gid, home } = found;
    let home = home.unwrap_or_else(|| if uid == 0 { "/root" } else { "/" }.to_owned());
    if node.user != User::Image || node.programs_are_root() {
        return Ok((None, home));
    }
    let ids = namespaces.owners();
    if ids != Ids::One && ids.owner(uid.into(), gid.into()).is_none() {
        return Err(RootError::Beyond { node: node.name.clone(), uid, gid });
    }
    Ok((Some(process::User { uid, gid }), home))
}
