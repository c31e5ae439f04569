//! Starting the command that is recorded.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use windtunnel_sys::capability;
use windtunnel_sys::executable::{self, SystemCallOrigin};
use windtunnel_sys::process::{self, Pid, SpawnError, SpawnPlan, SpawnStep};

use crate::sources::ProcessRecorder;

/// Starts it with what it leaves records by. A program that the library cannot enter is shown to the
/// supervisor, unless it would lose rights by that.
pub(crate) fn start(arguments: &[OsString], sources: &ProcessRecorder) -> Result<Pid, SpawnError> {
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

/// Whether a program gains rights by its file.
pub fn gains_rights(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::gains_rights(program, path.as_deref(), &folder)
}

/// Whether a program makes its calls itself, so that no library can stand before them.
pub fn is_direct(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::calls_of(program, path.as_deref(), &folder) == SystemCallOrigin::Direct
}

/// Whether the calls of a program are shown by a filter.
fn is_supervised(program: &OsStr) -> bool {
    is_direct(program) && !gains_rights(program)
}

/// A command and its environment, for the kernel.
pub fn strings(
    arguments: &[OsString],
    variables: BTreeMap<OsString, OsString>,
) -> io::Result<(Vec<CString>, Vec<CString>)> {
    let words = arguments.iter().map(|word| CString::new(word.clone().into_vec()));
    let environment = variables.into_iter().map(|(mut entry, value)| {
        entry.push("=");
        entry.push(value);
        CString::new(entry.into_vec())
    });
    Ok((words.collect::<Result<_, _>>()?, environment.collect::<Result<_, _>>()?))
}
