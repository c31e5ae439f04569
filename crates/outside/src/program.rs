//! A program that is started outside any emulation: what its file says, and its words for the kernel.

use std::collections::BTreeMap;
use std::ffi::{CString, NulError, OsStr, OsString};
use std::io::{self, Stderr, Stdin, Stdout};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use windtunnel_sys::executable::{self, SystemCallOrigin};
use windtunnel_sys::process::{SpawnError, SpawnPlan, SpawnStep};

/// Whether a program gains rights by its file.
pub(crate) fn gains_rights(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::gains_rights(program, path.as_deref(), &folder)
}

/// Whether a program makes its calls itself, so that no library can stand before them.
pub(crate) fn is_direct(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH");
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    executable::calls_of(program, path.as_deref(), &folder) == SystemCallOrigin::Direct
}

/// A command with its environment and the caller's standard streams, for the kernel.
#[derive(Debug)]
pub(crate) struct CommandInvocation {
    words: Vec<CString>,
    environment: Vec<CString>,
    input: Stdin,
    output: Stdout,
    error: Stderr,
}

impl CommandInvocation {
    /// The environment is the caller's, with what `add` changes of it.
    pub(crate) fn new(
        arguments: &[OsString],
        add: impl FnOnce(&mut BTreeMap<OsString, OsString>),
    ) -> Result<CommandInvocation, SpawnError> {
        let failed = |error: NulError| SpawnError { step: SpawnStep::Exec, error: error.into() };
        let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        add(&mut variables);
        let words = arguments.iter().map(|word| CString::new(word.clone().into_vec()));
        let environment = variables.into_iter().map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_vec())
        });
        Ok(CommandInvocation {
            words: words.collect::<Result<_, _>>().map_err(failed)?,
            environment: environment.collect::<Result<_, _>>().map_err(failed)?,
            input: io::stdin(),
            output: io::stdout(),
            error: io::stderr(),
        })
    }

    /// How it starts: as a program that a shell starts.
    pub(crate) fn plan(&self) -> SpawnPlan<'_> {
        let stdio = [self.input.as_fd(), self.output.as_fd(), self.error.as_fd()];
        let mut plan = SpawnPlan::new(&self.words, &self.environment, stdio);
        plan.inherits = true;
        plan
    }
}

/// The program of a command, as it is named there.
pub(crate) fn program_of(arguments: &[OsString]) -> &OsStr {
    arguments.first().map_or(OsStr::new(""), |program| program)
}
