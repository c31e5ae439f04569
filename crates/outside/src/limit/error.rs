//! Why nothing was limited.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use windtunnel_limit::AttachRefusal;
use windtunnel_sys::process::SpawnError;

/// Why nothing was limited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    #[error("{0:?} gains rights by its file, so that no library can be loaded into it")]
    GainsRights(OsString),
    #[error("programs here are under a limit, or recorded, already")]
    Nested,
    #[error("cannot deny {path:?}")]
    Deny {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot deny {0:?}: the working folder is in it")]
    DenyHere(PathBuf),
    #[error("cannot deny paths: no namespace can be made for that")]
    NoNamespace(#[source] io::Error),
    #[error("there is no limit {0:?}")]
    NoLimit(String),
    #[error("the group {name:?} has a budget for each {is}, and not for each {wanted}")]
    Per { name: String, is: &'static str, wanted: &'static str },
    #[error("{what} of a group needs control groups, and none can be made: {why}")]
    GroupOfKernel { what: &'static str, why: String },
    #[error("{0} of the group is not limited: the first of its commands decides what is")]
    NotOfGroup(&'static str),
    #[error("the limit {id:?} stays as it is: {why}")]
    Refused { id: String, why: String },
    #[error("cannot run {program:?}")]
    Command {
        program: OsString,
        #[source]
        source: SpawnError,
    },
    #[error("process {pid} cannot be limited: {why}")]
    NoTarget { pid: i32, why: String, hint: &'static str },
    #[error("{0}")]
    NotAttached(AttachRefusal),
    #[error("the group {0:?} shares cpu, memory or pids, which a program that runs cannot enter")]
    GroupOfRunning(String),
    #[error("cannot {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> LimitError {
    move |source| LimitError::System { what, source }
}
