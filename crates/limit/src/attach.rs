//! Having the calls of processes shown that run already (seccomp(2)).
//!
//! A filter is installed by a process for itself. One that runs already is made to do so: another
//! process, the [`SeccompKeeper`], stops all of its threads (ptrace(2)), has one of them make the calls that
//! install the filter, copies the listener, and puts everything back as it was. Nothing of the program's
//! own memory is written: what the kernel is to read lies in a page that is mapped for that and unmapped
//! again. Where one process of a tree cannot be attached, none is.
//!
//! As a filter stays for as long as its programs run, and its calls fail where no process answers them
//! (`ENOSYS`), the keeper stays, too: it has copies of the listeners, and lets all calls go on once the
//! process that limits them has gone, however that happened.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `candidate` | what a process is like that cannot be attached, and why |
//! | `stopped` | all threads of a process, stopped, and calls that this has interrupted |
//! | `injection` | a thread that makes calls which are not its own |
//! | `install` | the calls that install a filter |
//! | [`keeper`] | the process that does all of this, and lets calls pass |
//! | [`ledger`] | the calls that are not answered yet, in memory that the keeper sees |

mod candidate;
mod injection;
mod install;
pub mod keeper;
pub mod ledger;
mod stopped;

use std::fmt;
use std::io;

use windtunnel_sys::process::{self, Pid};

use crate::tree::ProcessTree;

pub use keeper::SeccompKeeper;
pub use ledger::SeccompCallLedger;

/// Why a process cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachRefusal {
    pub process: i32,
    /// As it calls itself.
    pub name: String,
    pub why: String,
    /// What the user can do about it; empty where that is nothing.
    pub hint: String,
}

impl AttachRefusal {
    /// Of a process by its number.
    #[must_use]
    pub fn about(process: i32, why: impl Into<String>, hint: &str) -> AttachRefusal {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let name = name.trim_end().to_owned();
        AttachRefusal { process, name, why: why.into(), hint: hint.to_owned() }
    }

    pub(crate) fn of(process: Pid, why: impl Into<String>, hint: &str) -> AttachRefusal {
        AttachRefusal::about(process.as_raw_nonzero().get(), why, hint)
    }
}

/// Whether all processes of a tree may be stopped, and limited, by this one.
///
/// # Errors
/// The first that may not.
pub fn check_rights(tree: &ProcessTree) -> Result<(), AttachRefusal> {
    for pid in tree.walk() {
        match process::test_kill(pid) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(candidate::denied(pid, &error));
            }
            // One that has ended needs no limit.
            _ => {}
        }
    }
    Ok(())
}

impl fmt::Display for AttachRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttachRefusal { process, name, why, .. } = self;
        write!(f, "cannot attach to process {process} ({name:?}): {why}")
    }
}

impl std::error::Error for AttachRefusal {}
