//! A process that continues what was stopped when the process that stopped it is no more.
//!
//! It is a fork of the one that it guards, with nothing to do but to wait for that one's end, which
//! even SIGKILL cannot hide: then the other end of a socket closes. What is stopped is in memory
//! that both share. It has a session of its own, so that no terminal's signal reaches it.

use std::io;
use std::os::fd::OwnedFd;

use windtunnel_sys::marks::Marks;
use windtunnel_sys::namespace::{self, Flags, Fork};
use windtunnel_sys::process::{self, Pid, Signal};
use windtunnel_sys::unix;

use crate::outliving;

/// The guard of the calling process. Dropping it ends it.
#[derive(Debug)]
pub struct Guard {
    marks: Marks,
    pid: Pid,
    /// Closed when this process ends.
    alive: Option<OwnedFd>,
}

impl Guard {
    /// Starts it. To be called before the process has threads.
    ///
    /// # Errors
    /// `EDEADLK` if it has; what fork(2) says.
    pub fn start() -> io::Result<Guard> {
        Guard::start_with(|| {})
    }

    /// The same; in the end it does something more, in memory as it is now, unless it was dismissed.
    ///
    /// # Errors
    /// As [`Guard::start`].
    pub fn start_with(last: impl FnOnce()) -> io::Result<Guard> {
        let marks = Marks::new()?;
        let (alive, theirs) = unix::seqpacket_pair()?;
        match namespace::fork_into(Flags::NONE)? {
            Fork::Child => {
                drop(alive);
                if !guard(&theirs, &marks) {
                    last();
                }
                process::exit_now(0)
            }
            Fork::Parent { pid, .. } => Ok(Guard { marks, pid, alive: Some(alive) }),
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

    /// This process is about to stop another one, or has continued it.
    pub fn note(&self, process: Pid, stopped: bool) {
        self.marks.set(process, stopped);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Another part of this process may have waited for it.
        let _ = process::wait_pid(self.pid, false);
    }
}

/// The guard's life: whether it was dismissed.
fn guard(theirs: &OwnedFd, marks: &Marks) -> bool {
    outliving::begin("limit-guard");
    let is_dismissed = loop {
        match unix::receive(theirs, &mut [0; 1]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.is_ok_and(|received| received.bytes > 0),
        }
    };
    for stopped in marks.marked() {
        // One that is gone needs no signal.
        let _ = process::kill(stopped, Signal::CONT);
    }
    is_dismissed
}
