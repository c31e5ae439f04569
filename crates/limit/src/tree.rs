//! All processes below the calling one, which inherits their orphans (`PR_SET_CHILD_SUBREAPER`), so
//! that none of them ever leaves; or a process that runs already with all below it ([`ProcessTree::of`]),
//! which others inherit: what has been seen once is known by its number and when it began, and what
//! was not seen while its parent lived is looked for (`orphans`).
//!
//! They are found from parent to child (`children` of proc_pid_task(5)), or where the kernel does
//! not have these files, by the parents of all processes. There is no signal to a tree: it is
//! walked until a walk finds no process that is not stopped. Parents are stopped before their
//! children and continued after them, so that a shell does not see its jobs stop. What was stopped
//! by something else stays stopped: job control works as without a limit.
//!
//! Source: proc_pid_stat(5), proc_pid_status(5).

mod members;
mod orphans;
mod state;
pub(crate) mod stops;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use windtunnel_sys::clock;
use windtunnel_sys::process::Pid;

use crate::guard::ResumeGuardProcess;
use members::{ProcessTreeMembers, Walker};
pub(crate) use state::ProcessState;
use stops::{HostProcessController, StoppedProcessRegistry};

/// The tree below the calling process.
#[derive(Debug)]
pub struct ProcessTree {
    walker: Walker,
    members: Mutex<ProcessTreeMembers>,
    stops: StoppedProcessRegistry,
    /// Processes that may not be signalled.
    foreign: Mutex<BTreeSet<i32>>,
    guard: OnceLock<ResumeGuardProcess>,
}

impl ProcessTree {
    /// The tree, which is stopped and continued only with a guard; the guard is no part of it.
    #[must_use]
    pub fn new(guard: Option<ResumeGuardProcess>) -> ProcessTree {
        let walker = Walker::new(guard.as_ref().map(ResumeGuardProcess::pid));
        ProcessTree {
            guard: guard.map(OnceLock::from).unwrap_or_default(),
            ..ProcessTree::found_by(walker)
        }
    }

    /// A process that is no child of this one, with all below it. It is stopped and continued only with
    /// a guard, which it may be given later.
    #[must_use]
    pub fn of(root: Pid) -> ProcessTree {
        let walker = Walker::of(root);
        let members = Mutex::new(ProcessTreeMembers::of_other(&walker));
        ProcessTree { members, ..ProcessTree::found_by(walker) }
    }

    fn found_by(walker: Walker) -> ProcessTree {
        ProcessTree {
            walker,
            members: Mutex::default(),
            stops: StoppedProcessRegistry::default(),
            foreign: Mutex::default(),
            guard: OnceLock::new(),
        }
    }

    /// It has a guard from now on, unless it had one.
    pub fn set_guard(&self, guard: ResumeGuardProcess) {
        let _ = self.guard.set(guard);
    }

    /// All processes below one that inherits the orphans among them, such as the init of a PID
    /// namespace.
    #[must_use]
    pub fn below(root: Pid) -> Vec<Pid> {
        let mut all = Walker::of(root).walk(&[]);
        all.retain(|pid| *pid != root);
        all
    }

    /// The shell with job control whose foreground job a process is: where the process is stopped, such
    /// a shell takes its terminal back, as after ^Z.
    #[must_use]
    pub fn shell_of(process: Pid) -> Option<Pid> {
        ProcessState::shell_of(process)
    }

    /// Whether other processes inherit its orphans.
    pub(crate) fn is_of_other(&self) -> bool {
        self.walker.is_of_other()
    }

    /// Whether no process is left that runs.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.processes().into_iter().all(has_ended)
    }

    /// Its processes: those of a moment ago, if no longer has passed than they could do much in.
    #[must_use]
    pub fn processes(&self) -> Vec<Pid> {
        let mut members = self.members();
        if members.is_old(clock::monotonic_ns()) {
            members.walk(&self.walker);
        }
        members.all.iter().map(|member| member.pid).collect()
    }

    /// Its processes now.
    #[must_use]
    pub fn walk(&self) -> Vec<Pid> {
        let mut members = self.members();
        members.walk(&self.walker);
        members.all.iter().map(|member| member.pid).collect()
    }

    /// Nothing is stopped, and nothing is to be undone should this process be killed.
    pub fn dismiss_guard(&self) {
        if let Some(guard) = self.guard.get() {
            guard.dismiss();
        }
    }

    /// How many processes could not be signalled, as they are another user's.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        lock(&self.foreign).len() as u64
    }

    /// Stops what is not stopped.
    pub(crate) fn stop(&self) {
        let mut members = self.members();
        for _ in 0..WALKS_MOST {
            members.walk(&self.walker);
            let all: Vec<Pid> = members.all.iter().map(|member| member.pid).collect();
            let (stopped, foreign) = self.stops.stop(&all, &self.machine());
            if !foreign.is_empty() {
                lock(&self.foreign).extend(foreign);
            }
            if stopped == 0 {
                break;
            }
        }
    }

    /// Continues what [`ProcessTree::stop`] stopped, until `is_stopped`.
    pub(crate) fn resume(&self, is_stopped: impl Fn() -> bool) {
        self.stops.resume(is_stopped, &self.machine());
    }

    fn machine(&self) -> HostProcessController<'_> {
        HostProcessController { guard: self.guard.get() }
    }

    fn members(&self) -> MutexGuard<'_, ProcessTreeMembers> {
        lock(&self.members)
    }
}

/// Whether all threads of a process have ended, or there is none.
pub(crate) fn has_ended(process: Pid) -> bool {
    ProcessState::of(process).is_none_or(|state| state.has_ended())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete in itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A tree that grows faster than it can be walked is stopped at the next look.
const WALKS_MOST: u32 = 20;

#[cfg(test)]
pub(crate) mod tests;
