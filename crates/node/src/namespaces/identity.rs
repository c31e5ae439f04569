//! A user namespace that maps several users to themselves.
//!
//! Only a process outside may map more than its own user. So a helper is forked first, which stays
//! outside, waits until its parent is inside, and writes the parent's maps.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::namespace::{self, IdMap, IdRange, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process::{self, Pid, ProcessExitStatus};
use windtunnel_sys::unix;

pub(super) enum IdentityError {
    /// Nothing has happened.
    Denied(io::Error),
    /// The process is in a user namespace without maps, where it can do nothing.
    Unmapped(io::Error),
}

/// Moves the process into a user namespace with these maps, which `write` writes from outside.
pub(super) fn unshare_user(
    maps: &IdMap,
    write: impl FnOnce(Pid, &IdMap) -> io::Result<()>,
) -> Result<(), IdentityError> {
    let parent = process::current();
    let (ours, theirs) = unix::seqpacket_pair().map_err(IdentityError::Denied)?;
    match namespace::fork_into(NamespaceFlags::NONE).map_err(IdentityError::Denied)? {
        NamespaceFork::Child => help(&theirs, ours, || write(parent, maps)),
        NamespaceFork::Parent { pid, .. } => {
            drop(theirs);
            let outcome = namespace::unshare(NamespaceFlags::USER).map_err(IdentityError::Denied);
            if outcome.is_ok() {
                // Should the helper have died, its status says so.
                let _ = unix::send(&ours, b"inside", &[]);
            }
            drop(ours);
            let status = process::wait_pid(pid, false).map_err(IdentityError::Unmapped)?;
            outcome.and_then(|()| mapped(status))
        }
    }
}

/// The helper's life. Without a word from the parent it ends, having done nothing.
fn help(channel: &OwnedFd, other_end: OwnedFd, write: impl FnOnce() -> io::Result<()>) -> ! {
    drop(other_end);
    let may_write = unix::receive(channel, &mut [0; 16]).is_ok_and(|received| received.bytes > 0);
    if may_write && let Err(error) = write() {
        process::exit_now(error.raw_os_error().unwrap_or(i32::from(u8::MAX)));
    }
    process::exit_now(0)
}

/// What a map's identities are called inside is what they are called for the namespace to come.
pub(super) fn same(maps: &IdMap) -> IdMap {
    let same = |ranges: &[IdRange]| {
        ranges.iter().map(|range| IdRange { outside: range.inside, ..*range }).collect()
    };
    IdMap { users: same(&maps.users), groups: same(&maps.groups) }
}

fn mapped(status: Option<ProcessExitStatus>) -> Result<(), IdentityError> {
    match status {
        Some(ProcessExitStatus::Exited(0)) => Ok(()),
        Some(ProcessExitStatus::Exited(errno)) => {
            Err(IdentityError::Unmapped(io::Error::from_raw_os_error(errno)))
        }
        _ => Err(IdentityError::Unmapped(io::Error::from(io::ErrorKind::Interrupted))),
    }
}
