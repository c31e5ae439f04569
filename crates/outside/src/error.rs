//! Failures that recordings and limits of commands have in common.

use std::ffi::OsString;
use std::io;

use windtunnel_sys::process::SpawnError;

/// A command did not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program:?}")]
pub struct CommandStartError {
    program: OsString,
    source: SpawnError,
}

impl CommandStartError {
    pub(crate) fn new(program: OsString, source: SpawnError) -> CommandStartError {
        CommandStartError { program, source }
    }

    /// What kind of failure that was.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.error.kind()
    }
}

/// A step that the machine refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct SystemStepError {
    what: &'static str,
    source: io::Error,
}

pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> SystemStepError {
    move |source| SystemStepError { what, source }
}
