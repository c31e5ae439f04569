//! A small process that takes a mount away whose process was killed.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Signal};
use windtunnel_sys::{mount, signal};

/// Starts it, before the calling process mounts at `folder`; `is_new`: the folder goes with the mount. To be
/// called before the process has threads. It ends with the caller.
///
/// # Errors
/// `EDEADLK` if it has; what fork(2) says.
pub(super) fn start(folder: &Path, is_new: bool) -> io::Result<()> {
    let watched = process::open_pidfd(process::current())?;
    if let NamespaceFork::Child = namespace::fork_into(NamespaceFlags::NONE)? {
        watch(&watched, folder, is_new);
        process::exit_now(0);
    }
    Ok(())
}

fn watch(watched: &OwnedFd, folder: &Path, is_new: bool) {
    // It works without any of these.
    let _ = process::begin_session();
    let _ = process::set_name("reserve-mount");
    let _ = signal::block(&[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT]);
    // Interrupted: it waits again.
    while poll::wait(&mut [PollFd::new(watched, PollFlags::IN)], None).is_err() {}
    if is_dead(folder) && unmount(folder).is_ok() && is_new {
        // What is not empty is not ours alone.
        let _ = fs::remove_dir(folder);
    }
}

/// Whether a mount is left there whose process has gone.
pub(super) fn is_dead(folder: &Path) -> bool {
    fs::metadata(folder).is_err_and(|error| error.raw_os_error() == Some(ENOTCONN))
}

/// Takes a mount away, by fusermount3 where that needs it.
pub(super) fn unmount(folder: &Path) -> io::Result<()> {
    let Err(error) = mount::detach(folder) else { return Ok(()) };
    let mut command = Command::new("fusermount3");
    command.args(["-u", "-z", "--"]).arg(folder);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err(error) }
}

/// "Transport endpoint is not connected", of errno(3).
const ENOTCONN: i32 = 107;
