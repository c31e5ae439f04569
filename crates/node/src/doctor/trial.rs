//! Trying something in a process of its own.

use std::io;
use std::panic;

use serde::{Deserialize, Serialize};
use windtunnel_sys::namespace::{self, NamespaceFlags, NamespaceFork};
use windtunnel_sys::process;

use super::PrerequisiteCheck;
use crate::channel::{ChannelError, SeqpacketSocket};

/// Something to try.
pub(super) struct PrerequisiteTrial {
    pub(super) name: &'static str,
    pub(super) place: PrerequisiteContext,
    /// What was found, or why it does not work.
    pub(super) body: fn() -> Result<String, PrerequisiteProblem>,
}

/// Where something is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PrerequisiteContext {
    /// In a process as we are.
    Here,
    /// Where the host process is during a run.
    Fabric,
    /// Where a node's first process is.
    Node,
}

/// Why something does not work, and what can be done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PrerequisiteProblem {
    pub(super) detail: String,
    pub(super) hint: Option<String>,
}

impl PrerequisiteTrial {
    pub(super) fn check(&self) -> PrerequisiteCheck {
        match in_a_process(NamespaceFlags::NONE, || self.attempt()) {
            Ok(detail) => PrerequisiteCheck::good(self.name, detail),
            Err(problem) => PrerequisiteCheck::bad(self.name, problem.detail, problem.hint),
        }
    }

    /// Runs in a process of its own.
    fn attempt(&self) -> Result<String, PrerequisiteProblem> {
        if self.place == PrerequisiteContext::Here {
            return (self.body)();
        }
        crate::enter().map_err(|error| PrerequisiteProblem {
            detail: format!("not tried, because the network cannot be left: {error}"),
            hint: error.hint(),
        })?;
        match self.place {
            PrerequisiteContext::Node => {
                let flags = NamespaceFlags::NET
                    | NamespaceFlags::MOUNT
                    | NamespaceFlags::PID
                    | NamespaceFlags::UTS
                    | NamespaceFlags::IPC;
                in_a_process(flags, self.body)
            }
            _ => (self.body)(),
        }
    }
}

impl PrerequisiteProblem {
    pub(super) fn new(what: &str, error: &io::Error, hint: Option<String>) -> PrerequisiteProblem {
        PrerequisiteProblem { detail: format!("{what}: {error}"), hint }
    }
}

/// Forks a child that runs `body` and ends; what it found.
fn in_a_process(
    flags: NamespaceFlags,
    body: impl FnOnce() -> Result<String, PrerequisiteProblem>,
) -> Result<String, PrerequisiteProblem> {
    let cannot = |error: io::Error| {
        PrerequisiteProblem::new("no process can be made", &error, crate::hint::too_many(&error))
    };
    let (ours, theirs) = SeqpacketSocket::pair().map_err(cannot)?;
    match namespace::fork_into(flags).map_err(cannot)? {
        NamespaceFork::Child => {
            drop(ours);
            let lived = panic::catch_unwind(panic::AssertUnwindSafe(|| {
                // There is no other way to report it: the parent takes silence as a failure.
                let _ = theirs.send(&body(), &[]);
            }));
            process::exit_now(i32::from(lived.is_err()))
        }
        NamespaceFork::Parent { pid, .. } => {
            drop(theirs);
            let report = ours.receive::<Result<String, PrerequisiteProblem>>(None);
            // It has ended, or is about to.
            let _ = process::wait_pid(pid, false);
            match report {
                Ok(Some((found, _))) => found,
                Ok(None) | Err(ChannelError::Gone) => Err(PrerequisiteProblem {
                    detail: "the attempt was ended from outside".into(),
                    hint: None,
                }),
                Err(error) => Err(PrerequisiteProblem { detail: error.to_string(), hint: None }),
            }
        }
    }
}
