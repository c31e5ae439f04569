//! Why nothing was limited.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use windtunnel_limit::AttachRefusal;

use crate::error::{CommandStartError, SystemStepError};

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
    #[error(transparent)]
    Command(#[from] CommandStartError),
    #[error("process {pid} cannot be limited: {why}")]
    NoTarget { pid: i32, why: String, hint: &'static str },
    #[error("{0}")]
    NotAttached(AttachRefusal),
    #[error("the group {0:?} shares cpu, memory or pids, which a program that runs cannot enter")]
    GroupOfRunning(String),
    #[error(transparent)]
    System(#[from] SystemStepError),
}
