//! The files that replace those of `/etc` in each node.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use windtunnel_model::Plan;

use super::error::CreateError;
use crate::hosts;

/// Where a node finds its files.
#[derive(Debug, Clone)]
pub(crate) struct NodeFiles {
    /// Covered for a moment while a node mounts what it needs.
    pub(crate) stage: PathBuf,
    pub(crate) hosts: PathBuf,
    pub(crate) resolv_conf: PathBuf,
    pub(crate) hostname: PathBuf,
}

impl NodeFiles {
    /// Those of a node, which asks the machine's outside for names if it can.
    pub(crate) fn of(run_dir: &Path, node: &str, asks_outside: bool) -> Self {
        let resolv_conf = if asks_outside { ASKING } else { SILENT };
        NodeFiles {
            stage: run_dir.into(),
            hosts: run_dir.join("hosts"),
            resolv_conf: run_dir.join(resolv_conf),
            hostname: run_dir.join("nodes").join(node).join("hostname"),
        }
    }
}

/// Writes the files of all nodes.
pub(super) fn write(plan: &Plan, run_dir: &Path) -> Result<(), CreateError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| CreateError::File { path, source }
    };
    fs::create_dir_all(run_dir).map_err(failed(run_dir))?;
    let shared = NodeFiles::of(run_dir, "", false);
    let write = |path: &Path, text: &str| write_readable(path, text).map_err(failed(path));
    write(&shared.hosts, &hosts::hosts_file(plan))?;
    write(&shared.resolv_conf, hosts::RESOLV_CONF)?;
    if let Some(outside) = plan.internet() {
        let servers = plan.nodes[outside.index()].interfaces.first().into_iter();
        let servers = servers.flat_map(windtunnel_model::plan::NodeInterface::addresses);
        // A machine without one searches nothing.
        let machine = fs::read("/etc/resolv.conf").unwrap_or_default();
        let text = hosts::resolv_conf(servers, &String::from_utf8_lossy(&machine));
        write(&NodeFiles::of(run_dir, "", true).resolv_conf, &text)?;
    }
    for node in &plan.nodes {
        let path = NodeFiles::of(run_dir, &node.name, false).hostname;
        let folder = path.parent().unwrap_or(run_dir);
        fs::create_dir_all(folder).map_err(failed(folder))?;
        write(&path, &format!("{}\n", node.name))?;
    }
    Ok(())
}

const SILENT: &str = "resolv.conf";
const ASKING: &str = "resolv.internet.conf";

/// Whatever the umask: a node's programs may run as other users.
fn write_readable(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())
}
