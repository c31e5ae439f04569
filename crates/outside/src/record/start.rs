//! Starting the command that is recorded.

use std::ffi::{OsStr, OsString};

use windtunnel_sys::capability;
use windtunnel_sys::process::{self, Pid, SpawnError};

use super::sources::ProcessRecorder;
use crate::program::{CommandInvocation, gains_rights, is_direct, program_of};

/// Starts it with what it leaves records by. A program that the library cannot enter is shown to the
/// supervisor, unless it would lose rights by that.
pub(super) fn start(arguments: &[OsString], sources: &ProcessRecorder) -> Result<Pid, SpawnError> {
    let command = CommandInvocation::new(arguments, |variables| {
        sources.place().into_iter().for_each(|place| place.add_variables(variables));
    })?;
    let mut plan = command.plan();
    let program = program_of(arguments);
    plan.supervisor = sources.supervisor().filter(|_| is_supervised(program));
    // What a filter needs of a user without rights.
    let has_rights = capability::effective().is_ok_and(|has| has.sys_admin);
    plan.no_new_privs = plan.supervisor.is_some() && !has_rights;
    process::spawn(&plan)
}

/// Whether the calls of a program are shown by a filter.
fn is_supervised(program: &OsStr) -> bool {
    is_direct(program) && !gains_rights(program)
}
