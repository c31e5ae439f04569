//! Processes that are born stopped, although all were let go on.
//!
//! A signal to many processes at once is given to children, too, whose forks are under way: they get
//! it when they begin. The kernel leaves SIGCONT out of that, as it discards it where its receiver
//! has no handler. So a child whose fork began before SIGSTOP and ended after SIGCONT stays stopped,
//! beside a parent that runs: one of five where SIGCONT follows at once, and on a busy machine also
//! after milliseconds. Signals to single processes do not have this.
//!
//! Source: `__send_signal_locked`, `prepare_signal` and `copy_process` of the kernel's
//! `kernel/signal.c` and `kernel/fork.c`.

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid, Signal};

use crate::tree::ProcessState;

/// Processes that were seen for the first time, until they have begun.
#[derive(Debug, Default)]
pub(crate) struct NewProcessTracker {
    beginning: Vec<Pid>,
}

/// How a process begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewProcessState {
    /// It may still be stopped when it begins.
    UnderWay,
    /// It has been stopped before it did anything.
    Stopped,
    /// It has begun, or has ended.
    Over,
}

/// Continues those of some processes that were born stopped. A process that was stopped later, by
/// itself or by another, stays stopped.
pub fn resume(processes: impl IntoIterator<Item = Pid>) {
    for pid in processes {
        resume_one(pid);
    }
}

fn resume_one(pid: Pid) -> NewProcessState {
    let birth = NewProcessState::of(pid);
    if birth == NewProcessState::Stopped {
        // It may have been killed.
        let _ = process::kill(pid, Signal::CONT);
    }
    birth
}

impl NewProcessTracker {
    /// These were seen for the first time.
    pub(crate) fn add(&mut self, new: &[Pid]) {
        self.beginning.extend_from_slice(new);
    }

    /// Continues those that were born stopped. To be called only while all may run.
    pub(crate) fn resume(&mut self) {
        self.beginning.retain(|pid| resume_one(*pid) != NewProcessState::Over);
    }
}

impl NewProcessState {
    fn of(pid: Pid) -> NewProcessState {
        let Some(state) = ProcessState::of(pid) else { return NewProcessState::Over };
        match state.letter {
            // It has begun if it runs another program than its parent.
            _ if !state.is_forked_without_exec() => NewProcessState::Over,
            // Where that cannot be read it is continued, as with SIGCONT to all.
            'T' if process::is_in_fork(pid).unwrap_or(true) => NewProcessState::Stopped,
            'R' | 'D' if clock::cpu_ns_of(pid).is_ok_and(|ns| ns < BEGINNING_NS) => {
                NewProcessState::UnderWay
            }
            _ => NewProcessState::Over,
        }
    }
}

/// More processor time than it takes a process to leave the fork that made it.
const BEGINNING_NS: u64 = 10_000_000;
