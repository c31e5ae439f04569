//! Starting the command that is recorded.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;

use windtunnel_sys::capability;
use windtunnel_sys::process::{self, Pid, SpawnError, SpawnPlan, SpawnStep};

use super::sources::ProcessRecorder;
use crate::program::{gains_rights, is_direct, strings};

/// Starts it with what it leaves records by. A program that the library cannot enter is shown to the
/// supervisor, unless it would lose rights by that.
pub(super) fn start(arguments: &[OsString], sources: &ProcessRecorder) -> Result<Pid, SpawnError> {
    let failed = |error: io::Error| SpawnError { step: SpawnStep::Exec, error };
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    if let Some(place) = sources.place() {
        let own = variables.get(OsStr::new("LD_PRELOAD")).cloned();
        variables.extend(place.variables(own));
    }
    let (words, environment) = strings(arguments, variables).map_err(failed)?;
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let stdio = [input.as_fd(), output.as_fd(), error.as_fd()];
    let mut plan = SpawnPlan::new(&words, &environment, stdio);
    plan.inherits = true;
    let program = arguments.first().map_or(OsStr::new(""), |program| program);
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
