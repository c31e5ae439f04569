//! A process that continues what was stopped when the process that stopped it is no more.
//!
//! It is a fork of the one that it guards, with nothing to do but to wait for that one's end, which
//! even SIGKILL cannot hide: a pidfd shows it. (A socket that closes would not do alone: a
//! command that is stopped before it has become another program holds its other end.) What was ever
//! stopped is in memory that both share, and stays there: whatever the other process was just doing
//! when it was killed, nothing that it has stopped is forgotten. The guard has a session of its own,
//! so that no terminal's signal reaches it.
//!
//! Source: pidfd_open(2).

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::marks::ProcessMarkTable;
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::process::{self, Pid};
use windtunnel_sys::unix;

use crate::outliving;
use crate::tree::stops::{HostProcessController, continue_all};

/// The guard of the calling process. Dropping it ends it.
#[derive(Debug)]
pub struct ResumeGuardProcess {
    marks: ProcessMarkTable,
    pid: Pid,
    /// Closed when this process ends.
    alive: Option<OwnedFd>,
}

impl ResumeGuardProcess {
    /// Starts it. To be called before the process has threads.
    ///
    /// # Errors
    /// `EDEADLK` if it has; what fork(2) says.
    pub fn start() -> io::Result<ResumeGuardProcess> {
        ResumeGuardProcess::start_with(|| {})
    }

    /// The same; in the end it does something more, in memory as it is now, unless it was dismissed.
    ///
    /// # Errors
    /// As [`ResumeGuardProcess::start`].
    pub fn start_with(last: impl FnOnce()) -> io::Result<ResumeGuardProcess> {
        let marks = ProcessMarkTable::new()?;
        let (alive, theirs) = unix::seqpacket_pair()?;
        // Without it the socket has to do.
        let guarded = process::open_pidfd(process::current()).ok();
        match namespace::fork_into(NamespaceFlags::NONE)? {
            NamespaceFork::Child => {
                drop(alive);
                outliving::begin("limit-guard");
                if !is_dismissed(&theirs, guarded.as_ref()) {
                    continue_all(marks.marked(), &HostProcessController { guard: None });
                    last();
                }
                process::exit_now(0)
            }
            NamespaceFork::Parent { pid, .. } => {
                Ok(ResumeGuardProcess { marks, pid, alive: Some(alive) })
            }
        }
    }

    /// The process that guards.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// There is nothing to guard any more.
    pub fn dismiss(&self) {
        if let Some(alive) = &self.alive {
            // One that has been killed does nothing either.
            let _ = unix::send(alive, &[0], &[]);
        }
    }

    /// This process is about to stop another one for the first time, which began then.
    pub fn note(&self, process: Pid, began: u64) {
        self.marks.set(process, began);
    }
}

impl Drop for ResumeGuardProcess {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Another part of this process may have waited for it.
        let _ = process::wait_pid(self.pid, false);
    }
}

/// Waits until the other end is closed, the guarded process has ended, or says that there is
/// nothing to do.
fn is_dismissed(theirs: &OwnedFd, guarded: Option<&OwnedFd>) -> bool {
    loop {
        let mut events = vec![PollFd::new(theirs, PollFlags::IN)];
        events.extend(guarded.map(|guarded| PollFd::new(guarded, PollFlags::IN)));
        // Interrupted: it looks again.
        if poll::wait(&mut events, None).is_err() {
            continue;
        }
        if events[0].revents().is_empty() {
            // It has ended, and has said nothing.
            return false;
        }
        match unix::receive(theirs, &mut [0; 1]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.is_ok_and(|received| received.bytes > 0),
        }
    }
}
