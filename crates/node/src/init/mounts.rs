//! The node's own view of processes and devices; everything else of the file system is the
//! machine's.

use std::io;
use std::path::Path;

use windtunnel_model::plan::Node;
use windtunnel_sys::mount::{self, BindMountAccess, Propagation};

use crate::hint;
use crate::message::{NodeSetupFailure, NodeSetupStage};
use crate::node_set::files::NodeFiles;

pub(super) fn mount(files: &NodeFiles, notes: &mut Vec<String>) -> Result<(), NodeSetupFailure> {
    mount::set_propagation("/", Propagation::Private).map_err(|error| NodeSetupFailure {
        stage: NodeSetupStage::Mounts,
        message: format!("cannot make the mounts private: {error}"),
        hint: Some("windtunnel cannot run where / is not a mount point (chroot)".into()),
    })?;
    // Containers hide parts of /proc and /sys, and then the kernel refuses a fresh, whole one.
    if let Err(error) = mount::proc("/proc") {
        notes.push(format!("/proc shows the processes outside of the node ({error})"));
    }
    if let Err(error) = mount_sys(&files.stage) {
        notes.push(format!("/sys/class/net shows the devices outside of the node ({error})"));
    }
    Ok(())
}

/// A new sysfs in place of the whole /sys would hide the control groups, which run-times look at to
/// learn how many processors they may use. So only the network's parts are replaced. The new sysfs
/// needs a place for a moment, where it covers `stage`.
fn mount_sys(stage: &Path) -> io::Result<()> {
    mount::sysfs(stage)?;
    let bound = NETWORK_IN_SYS.iter().try_for_each(|part| {
        mount::bind(stage.join(part), Path::new("/sys").join(part), BindMountAccess::Same)
    });
    bound.and(mount::detach(stage))
}

/// Has programs only read the run folder, but for the folder of their node in it if they may leave
/// results there.
pub(super) fn protect(run: &Path, node: &Node, notes: &mut Vec<String>) {
    let own = run.join("nodes").join(&node.name);
    let read = || mount::bind(run, run, BindMountAccess::ReadOnly);
    let protected = match node.results {
        false => read(),
        // Its copy stays as it was; what is bound from below a mount that is read is read, too.
        true => mount::copy(&own).and_then(|copy| read().and_then(|()| mount::attach(copy, &own))),
    };
    if let Err(error) = protected {
        notes.push(format!("programs may write in the run folder ({error})"));
    }
}

/// The devices, and the links to them.
const NETWORK_IN_SYS: [&str; 2] = ["class/net", "devices/virtual/net"];

/// What to say when a setting cannot be written because of the mounts.
pub(super) fn read_only_hint(error: &io::Error) -> Option<String> {
    matches!(error.raw_os_error(), Some(hint::ERRNO_EROFS)).then(|| hint::PROC_SYS.into())
}
