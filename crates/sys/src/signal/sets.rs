//! The sets of signals of any thread. Source: proc_pid_status(5), "SigPnd" and after.

use std::fs;
use std::io;

use rustix::process::Pid;

/// Sets of signals, each a mask of the kernel's: bit 0 is signal 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSignalSets {
    /// Those that wait for the thread.
    pub pending: u64,
    /// Those that wait for any thread of its process.
    pub pending_for_process: u64,
    pub blocked: u64,
    /// Those that the program handles.
    pub handled: u64,
}

impl ThreadSignalSets {
    /// Those of a thread now.
    ///
    /// # Errors
    /// `NotFound`: there is none.
    pub fn of(thread: Pid) -> io::Result<ThreadSignalSets> {
        let status = fs::read_to_string(format!("/proc/{}/status", thread.as_raw_nonzero()))?;
        Ok(ThreadSignalSets::parse(&status))
    }

    /// Those of the text of such a file. A set that is missing is empty.
    #[must_use]
    pub fn parse(status: &str) -> ThreadSignalSets {
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
        };
        ThreadSignalSets {
            pending: set("SigPnd:"),
            pending_for_process: set("ShdPnd:"),
            blocked: set("SigBlk:"),
            handled: set("SigCgt:"),
        }
    }

    /// Those that are about to be handled by the thread.
    #[must_use]
    pub fn due(&self) -> u64 {
        (self.pending | self.pending_for_process) & self.handled & !self.blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_handled_and_not_blocked_is_due() {
        let sets = ThreadSignalSets::parse(
            "Name:\tx\nSigPnd:\t0000000000000003\nShdPnd:\t000000000000000c\nSigBlk:\t0000000000000002\n\
             SigIgn:\t00000000000000f0\nSigCgt:\t0000000000000007\n",
        );
        assert_eq!((sets.pending, sets.pending_for_process), (3, 12));
        assert_eq!((sets.blocked, sets.handled, sets.due()), (2, 7, 0b101));
        assert_eq!(ThreadSignalSets::parse(""), ThreadSignalSets::default());
    }

    #[test]
    fn the_calling_thread_blocks_what_it_has_blocked() {
        use rustix::process::Signal;

        let thread = rustix::thread::gettid();
        crate::signal::block(&[Signal::USR2]).unwrap();
        let usr2 = 1 << (Signal::USR2.as_raw() - 1);
        assert_eq!(ThreadSignalSets::of(thread).unwrap().blocked & usr2, usr2);
        crate::signal::unblock(&[Signal::USR2]).unwrap();
        assert_eq!(ThreadSignalSets::of(thread).unwrap().blocked & usr2, 0);
    }
}
