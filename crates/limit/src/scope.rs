//! Whose processes are limited: those of a node's PID namespace, or of a tree.

use std::fs;
use std::io;
use std::sync::Arc;

use windtunnel_sys::process::{self, Pid, Signal};

use crate::tree::ProcessTree;

/// The processes that a duty cycle or a watch is over.
#[derive(Debug, Clone)]
pub enum ProcessScope {
    /// All of the PID namespace whose init the calling process is, but the init.
    Namespace,
    /// All below the calling process.
    Tree(Arc<ProcessTree>),
}

impl ProcessScope {
    /// The processes that there are now.
    #[must_use]
    pub fn processes(&self) -> Vec<Pid> {
        match self {
            ProcessScope::Namespace => numbers().filter(|pid| !pid.is_init()).collect(),
            ProcessScope::Tree(tree) => tree.processes(),
        }
    }

    /// Stops all.
    pub(crate) fn stop(&self) -> io::Result<()> {
        match self {
            ProcessScope::Namespace => signal_all(Signal::STOP),
            ProcessScope::Tree(tree) => {
                tree.stop();
                Ok(())
            }
        }
    }

    /// Continues what was stopped, unless it is to be stopped again meanwhile.
    pub(crate) fn resume(&self, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        match self {
            ProcessScope::Namespace => signal_all(Signal::CONT),
            ProcessScope::Tree(tree) => {
                tree.resume(is_stopped);
                Ok(())
            }
        }
    }

    /// Whether a signal goes to all at once, and so also to children whose forks are under way.
    pub(crate) fn is_signalled_at_once(&self) -> bool {
        matches!(self, ProcessScope::Namespace)
    }

    /// How long all stay stopped at least before it is looked whether some are not: a signal to a
    /// namespace reaches all of it at once.
    pub(crate) fn stays_stopped_ns(&self) -> u64 {
        match self {
            ProcessScope::Namespace => u64::MAX,
            ProcessScope::Tree(_) => CHECK_NS,
        }
    }
}

/// The processes that /proc shows.
pub(crate) fn numbers() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(Pid::from_raw)
}

fn signal_all(signal: Signal) -> io::Result<()> {
    match process::kill_all(signal) {
        // There is no process.
        Err(error) if error.raw_os_error() == Some(ERRNO_ESRCH) => Ok(()),
        sent => sent,
    }
}

/// "No such process", of errno(3).
const ERRNO_ESRCH: i32 = 3;
/// In that time a process that was just made while the others were stopped computes.
const CHECK_NS: u64 = 2_000_000;
