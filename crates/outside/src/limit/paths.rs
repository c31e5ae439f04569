//! Files and folders that a command and all that it starts may not see: they are covered in a mount
//! namespace of its own. An ordinary user needs a user namespace for that, in which it stays the same
//! user and gains nothing: programs there have no capability, and the kernel lets no process below take
//! the covers away (mount_namespaces(7), locked mounts).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_node::MaskedPathCover;
use windtunnel_sys::mount::{self, Propagation};
use windtunnel_sys::namespace::{self, IdMap, IdRange, NamespaceFlags, UserNamespaceTarget};
use windtunnel_sys::{capability, process};

use super::error::LimitError;
use crate::own_folder::OwnFolder;

/// What is denied, by its own name: no symbolic links.
pub(super) fn resolve(paths: &[PathBuf]) -> Result<Vec<PathBuf>, LimitError> {
    let failed = |path: &Path, source| LimitError::Deny { path: path.to_owned(), source };
    let resolved = paths.iter().map(|path| fs::canonicalize(path).map_err(|e| failed(path, e)));
    let resolved: Vec<PathBuf> = resolved.collect::<Result<_, _>>()?;
    // It would go on in what it may not see.
    let here = std::env::current_dir().and_then(fs::canonicalize).unwrap_or_default();
    match resolved.iter().find(|path| here.starts_with(path)) {
        Some(path) => Err(LimitError::DenyHere(path.clone())),
        None => Ok(resolved),
    }
}

/// Has the calling process, and all that it starts, not see what is at these paths. It must have one
/// thread. Returns what is not denied by that.
pub(super) fn deny(paths: &[PathBuf]) -> Result<Vec<String>, LimitError> {
    enter().map_err(LimitError::NoNamespace)?;
    let folder = OwnFolder::make().map_err(LimitError::NoNamespace)?;
    // What is mounted needs no name.
    cover(paths, folder.path())
}

fn cover(paths: &[PathBuf], folder: &Path) -> Result<Vec<String>, LimitError> {
    let file = folder.join("denied");
    let made = fs::write(&file, "")
        .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o000)));
    made.map_err(LimitError::NoNamespace)?;
    let mut notes = Vec::new();
    for path in paths {
        let cover = MaskedPathCover { folder_mode: "000", file: &file };
        windtunnel_node::hide(std::slice::from_ref(path), cover, &mut notes).map_err(|error| {
            LimitError::Deny { path: path.clone(), source: io::Error::other(error.message) }
        })?;
    }
    Ok(notes)
}

/// A mount namespace, in which mounts reach no other process.
fn enter() -> io::Result<()> {
    if capability::effective().is_ok_and(|has| has.sys_admin) {
        namespace::unshare(NamespaceFlags::MOUNT)?;
    } else {
        let user = process::current_user();
        namespace::unshare(NamespaceFlags::USER | NamespaceFlags::MOUNT)?;
        let one = |id: u32| vec![IdRange { inside: id, outside: id, count: 1 }];
        let maps = IdMap { users: one(user.uid), groups: one(user.gid) };
        namespace::write_id_maps(UserNamespaceTarget::Current, &maps, true)?;
    }
    mount::set_propagation("/", Propagation::Private)
}
