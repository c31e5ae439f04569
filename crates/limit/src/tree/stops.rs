//! Which processes a tree has stopped and is to continue: what the thread that stops and the one
//! that continues know together.
//!
//! The two work at the same time, and either can be in the middle of its work when this process is
//! killed. So that no process stays stopped:
//!
//! - a process is marked for the [guard](crate::guard) before it is stopped for the first time, and
//!   its mark stays;
//! - it is taken from the list before it is continued, and is on it after each stop: whatever the
//!   two do at once, one that is stopped is on the list, or about to be continued;
//! - the list does not depend on what a walk finds: one that is missed by a walk, as its parent ends
//!   just then, is continued like all others.
//!
//! The tests try every order in which the steps of both can come, with the end of this process after
//! each.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid, Signal};

use super::state::ProcessState;
use crate::guard::ResumeGuardProcess;

/// What the tree does to processes and asks about them, each a step between which others come.
pub(crate) trait ProcessController {
    /// The state of one.
    fn state(&self, pid: Pid) -> Option<ProcessState>;

    /// The processor time that it has used.
    fn used_ns(&self, pid: Pid) -> u64;

    /// Signals of job control that wait for it to go on.
    fn pending_stops(&self, pid: Pid) -> Vec<Signal>;

    /// Has the guard continue it, should this process end.
    fn mark(&self, pid: Pid, began: u64);

    /// Stops the one that began then, and no other that has its number meanwhile.
    fn stop(&self, pid: Pid, began: u64) -> io::Result<()>;

    /// Waits until one is stopped that was to be, or does not for now.
    fn await_stop(&self, _pid: Pid) {}

    /// Waits until one that was taken from the list has been continued, or does not for now.
    fn await_passage(&self, _pid: Pid, _list: &Mutex<StoppedProcessList>) {}

    /// Sends a signal.
    fn signal(&self, pid: Pid, signal: Signal) -> io::Result<()>;

    /// Looks at what both threads know, or changes it.
    fn share<T: fmt::Debug>(
        &self,
        list: &Mutex<StoppedProcessList>,
        step: impl FnOnce(&mut StoppedProcessList) -> T,
    ) -> T {
        // Each change is complete in itself.
        step(&mut list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The processes of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostProcessController<'a> {
    pub(crate) guard: Option<&'a ResumeGuardProcess>,
}

/// The processes that have been stopped, and may be stopped still.
#[derive(Debug, Default)]
pub(super) struct StoppedProcessRegistry {
    list: Mutex<StoppedProcessList>,
}

/// What both threads know.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct StoppedProcessList {
    /// In the order in which they were stopped: parents before their children.
    order: Vec<Pid>,
    /// The processor time that each had used when it was last seen stopped.
    used_ns: HashMap<Pid, u64>,
    /// The one that was taken last, until it has been continued.
    passing: Option<Pid>,
}

impl StoppedProcessRegistry {
    /// Stops those of some processes that run, parents before their children: a shell that runs when its
    /// job is stopped takes that for ^Z. Returns how many these were, and which could not be signalled as
    /// they are another user's.
    pub(super) fn stop(
        &self,
        all: &[Pid],
        processes: &impl ProcessController,
    ) -> (u32, BTreeSet<i32>) {
        let (mut count, mut foreign) = (0, BTreeSet::new());
        // Those that may run still, of those that were stopped now or before.
        let mut parents: HashSet<Pid> = all.iter().copied().collect();
        for pid in all.iter().copied() {
            // One that is about to go on would do so after its children were stopped.
            processes.await_passage(pid, &self.list);
            let Some(ProcessState { began, parent, .. }) = self.is_to_stop(pid, processes) else {
                continue;
            };
            if let Some(parent) = Pid::from_raw(parent).filter(|parent| parents.remove(parent)) {
                processes.await_stop(parent);
            }
            processes.mark(pid, began);
            match processes.stop(pid, began) {
                Ok(()) => {
                    let used_ns = processes.used_ns(pid);
                    processes.share(&self.list, |list| list.note(pid, used_ns));
                    count += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    foreign.insert(pid.as_raw_nonzero().get());
                    parents.remove(&pid);
                }
                // It has ended.
                Err(_) => {}
            }
        }
        (count, foreign)
    }

    /// When a process began that runs, or could, and is to be stopped. One that the tree has stopped
    /// does if something else has continued it.
    fn is_to_stop(&self, pid: Pid, processes: &impl ProcessController) -> Option<ProcessState> {
        if let Some(had_ns) = processes.share(&self.list, |list| list.used_ns.get(&pid).copied()) {
            let used_ns = processes.used_ns(pid);
            // Another process has the number now if it has used less.
            if (had_ns..=had_ns.saturating_add(STILL_NS)).contains(&used_ns) {
                return None;
            }
            processes.share(&self.list, |list| list.see(pid, used_ns));
        }
        processes.state(pid).filter(ProcessState::can_run)
    }

    /// Whether one is about to be continued.
    #[cfg(test)]
    pub(super) fn is_passing(&self, pid: Pid) -> bool {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).is_passing(pid)
    }

    /// Continues what was stopped, the last first, until `is_stopped`.
    pub(super) fn resume(&self, is_stopped: impl Fn() -> bool, processes: &impl ProcessController) {
        while !is_stopped() {
            // What goes on may take the processor from this thread, so the list is free meanwhile.
            let Some(pid) = processes.share(&self.list, StoppedProcessList::take) else { return };
            // A stop that is pending is forgotten by the kernel when a process goes on.
            let pending = processes.pending_stops(pid);
            // One that has ended needs no signal.
            let _ = processes.signal(pid, Signal::CONT);
            processes.share(&self.list, |list| list.passing = None);
            pending.into_iter().for_each(|signal| drop(processes.signal(pid, signal)));
        }
    }
}

/// Continues all that was ever stopped. Of a number that another process has meanwhile, that one is
/// left alone.
pub(crate) fn continue_all(
    marked: impl IntoIterator<Item = (Pid, u64)>,
    processes: &impl ProcessController,
) {
    for (pid, began) in marked {
        if processes.state(pid).is_none_or(|state| state.began == began) {
            // One that has ended needs no signal.
            let _ = processes.signal(pid, Signal::CONT);
        }
    }
}

impl StoppedProcessList {
    /// It has been stopped.
    fn note(&mut self, pid: Pid, used_ns: u64) {
        if self.used_ns.insert(pid, used_ns).is_none() {
            self.order.push(pid);
        }
    }

    /// It has been seen, if it is on the list.
    fn see(&mut self, pid: Pid, used_ns: u64) {
        self.used_ns.entry(pid).and_modify(|had_ns| *had_ns = used_ns);
    }

    /// Whether one was taken and has not been continued yet.
    pub(super) fn is_passing(&self, pid: Pid) -> bool {
        self.passing == Some(pid)
    }

    /// The last that was stopped, which is about to go on.
    fn take(&mut self) -> Option<Pid> {
        let pid = self.order.pop()?;
        self.used_ns.remove(&pid);
        self.passing = Some(pid);
        Some(pid)
    }
}

impl ProcessController for HostProcessController<'_> {
    fn state(&self, pid: Pid) -> Option<ProcessState> {
        ProcessState::of(pid)
    }

    fn used_ns(&self, pid: Pid) -> u64 {
        clock::cpu_ns_of(pid).unwrap_or(0)
    }

    fn pending_stops(&self, pid: Pid) -> Vec<Signal> {
        ProcessState::pending_stops(pid)
    }

    fn mark(&self, pid: Pid, began: u64) {
        self.guard.into_iter().for_each(|guard| guard.note(pid, began));
    }

    fn stop(&self, pid: Pid, began: u64) -> io::Result<()> {
        // The number is that of the same process as long as the descriptor is open.
        let process = process::open_pidfd(pid);
        if ProcessState::of(pid).is_none_or(|state| state.began != began) {
            return Err(io::ErrorKind::NotFound.into());
        }
        match process {
            Ok(process) => process::pidfd_send_signal(process, Signal::STOP),
            // No descriptor is left.
            Err(_) => process::kill(pid, Signal::STOP),
        }
    }

    fn await_stop(&self, pid: Pid) {
        await_while(|| {
            let state = ProcessState::of(pid).filter(ProcessState::can_run)?;
            // One that waits for a disk gets no signal.
            Some(if state.letter == 'D' { DISK_NS_MOST } else { AWAIT_NS_MOST })
        });
    }

    fn await_passage(&self, pid: Pid, list: &Mutex<StoppedProcessList>) {
        await_while(|| self.share(list, |list| list.is_passing(pid)).then_some(AWAIT_NS_MOST));
    }

    fn signal(&self, pid: Pid, signal: Signal) -> io::Result<()> {
        process::kill(pid, signal)
    }
}

/// Waits while there is a longest time to wait for, until that has passed.
fn await_while(most_ns: impl Fn() -> Option<u64>) {
    let begun_ns = clock::monotonic_ns();
    while most_ns().is_some_and(|most_ns| clock::monotonic_ns().saturating_sub(begun_ns) <= most_ns)
    {
        std::thread::yield_now();
    }
}

/// What a process may still use after it was stopped: the signal has to reach all its processors.
const STILL_NS: u64 = 500_000;

/// How long a stop is waited for: what a process needs to get a processor of a busy machine.
const AWAIT_NS_MOST: u64 = 100_000_000;

const DISK_NS_MOST: u64 = 10_000_000;

#[cfg(test)]
mod tests;
