//! The processes of nodes that an event is about to kill or to stop, found ahead of it.
//!
//! A node's init signals all that is in its PID namespace, and misses nothing. But the inits of a
//! group wait for processors one after another: 150 nodes on two of them had the signal of one
//! event up to 30 ms apart. So the processes that are there shortly before such an event are found
//! and opened, and all of the group get the signal in one loop. Then each init sends it, too, for
//! what was made meanwhile.
//!
//! An open process stays that one: its number may be given to another one. Source: pidfd_open(2).

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;

use windtunnel_limit::ProcessTree;
use windtunnel_model::Span;
use windtunnel_sys::process::{self, Pid, Signal};

/// Processes of a node.
#[derive(Debug, Default)]
pub(crate) struct SignalTargetSet(Vec<OwnedFd>);

/// What has been found, by node.
#[derive(Debug, Default)]
pub(super) struct SignalTargetCache(BTreeMap<usize, SignalTargetLookup>);

#[derive(Debug)]
pub(super) struct SignalTargetLookup {
    /// When it was looked, after the run began.
    pub(super) at: Span,
    /// `None`: only the node's init can signal them.
    pub(super) aim: Option<SignalTargetSet>,
}

impl SignalTargetSet {
    /// All that is below the init of a PID namespace.
    ///
    /// # Errors
    /// If one cannot be opened: `EMFILE`, where the files of this process are limited.
    pub(crate) fn below(init: Pid) -> io::Result<SignalTargetSet> {
        let mut opened = Vec::new();
        for pid in ProcessTree::below(init) {
            match process::open_pidfd(pid) {
                Ok(process) => opened.push((pid, process)),
                Err(error) if has_ended(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // A number that was another process's by the time it was opened is not found again.
        let there: HashSet<Pid> = ProcessTree::below(init).into_iter().collect();
        opened.retain(|(pid, _)| there.contains(pid));
        Ok(SignalTargetSet(opened.into_iter().map(|(_, process)| process).collect()))
    }

    /// Of children of the calling process.
    #[cfg(test)]
    pub(super) fn at_children(children: &[u32]) -> SignalTargetSet {
        let open = |number: &u32| {
            let pid = i32::try_from(*number).ok().and_then(Pid::from_raw);
            process::open_pidfd(pid.expect("a number of a process")).expect("it can be opened")
        };
        SignalTargetSet(children.iter().map(open).collect())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Sends all of them a signal. Whether none was left out that lives.
    pub(super) fn send(&self, signal: Signal) -> bool {
        let sent = |process: &OwnedFd| match process::pidfd_send_signal(process, signal) {
            Ok(()) => true,
            Err(error) => has_ended(&error),
        };
        self.0.iter().filter(|process| !sent(process)).count() == 0
    }
}

impl SignalTargetCache {
    pub(super) fn has(&self, node: usize) -> bool {
        self.0.contains_key(&node)
    }

    pub(super) fn add(&mut self, node: usize, at: Span, aim: Option<SignalTargetSet>) {
        self.0.insert(node, SignalTargetLookup { at, aim });
    }

    pub(super) fn take(&mut self, node: usize) -> Option<SignalTargetLookup> {
        self.0.remove(&node)
    }
}

fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERRNO_ESRCH)
}

/// "No such process", of errno(3).
const ERRNO_ESRCH: i32 = 3;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn all_processes_below_an_init_get_the_signal_and_the_init_does_not() {
        let script = "sleep 1000 & sh -c 'sleep 1000 & echo; wait' & wait; exit 7";
        let shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut shell = shell.expect("a shell");
        let mut line = String::new();
        let output = shell.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("all have been started");
        let pid = Pid::from_raw(i32::try_from(shell.id()).unwrap()).unwrap();
        let aim = SignalTargetSet::below(pid).expect("they can be opened");
        assert_eq!(aim.count(), 3);
        assert!(aim.send(Signal::KILL));
        let status = shell.wait().expect("it can be waited for");
        assert_eq!((status.code(), status.signal()), (Some(7), None));
        assert!(aim.send(Signal::KILL), "what has ended needs no signal");
    }
}
