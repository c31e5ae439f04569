//! Names: the node's own, and those that its programs can ask for.

use std::fs;
use std::path::Path;

use windtunnel_sys::mount::{self, BindMountAccess};
use windtunnel_sys::process;

use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::node_set::files::NodeFiles;

pub(super) fn set_host_name(node: &str) -> Result<(), NodeSetupFailure> {
    process::set_host_name(node)
        .map_err(|error| failure(format!("cannot set the host name: {error}")))
}

/// Shows the node's own files in place of the machine's.
pub(super) fn cover_files(
    files: &NodeFiles,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    cover("/etc/hosts", &files.hosts, notes)?;
    cover("/etc/resolv.conf", &files.resolv_conf, notes)?;
    if Path::new("/etc/hostname").exists() {
        cover("/etc/hostname", &files.hostname, notes)?;
    }
    for socket in NAME_SERVICES.iter().filter(|socket| Path::new(socket).exists()) {
        // Connecting to a file that is not a socket is refused, as if no service ran.
        mount::bind("/dev/null", socket, BindMountAccess::Same)
            .map_err(|error| failure(format!("cannot cover {socket}: {error}")))?;
    }
    Ok(())
}

/// Has a file of ours appear in place of another, following links to it (resolv.conf often is one).
fn cover(path: &str, ours: &Path, notes: &mut Vec<String>) -> Result<(), NodeSetupFailure> {
    let Ok(target) = fs::canonicalize(path) else {
        notes.push(format!("{path} does not exist on this machine, so the node has none"));
        return Ok(());
    };
    mount::bind(ours, &target, BindMountAccess::ReadOnly).map_err(|error| {
        failure(format!("cannot show a file of the node's own at {path}: {error}"))
    })
}

fn failure(message: String) -> NodeSetupFailure {
    NodeSetupFailure { stage: NodeSetupStage::Names, message, hint: None }
}

/// Sockets by which the C library asks daemons outside of the node for names.
const NAME_SERVICES: [&str; 3] =
    ["/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve", "/run/avahi-daemon/socket"];
