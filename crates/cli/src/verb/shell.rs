//! `shell`: an interactive shell in a node of a live run.

use std::ffi::OsString;

use crate::verb::Outcome;
use crate::verb::exec::{self, Place};

/// Open a shell in a node of a live run
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The node
    node: String,
    /// The shell and its arguments [default: $SHELL, else /bin/sh]
    #[arg(trailing_var_arg = true, value_name = "SHELL")]
    shell: Vec<OsString>,
    #[command(flatten)]
    place: Place,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if !arguments.shell.is_empty() {
        return exec::command(&arguments.node, &arguments.shell, &arguments.place);
    }
    let usual = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = usual.unwrap_or_else(|| OsString::from("/bin/sh"));
    exec::command(&arguments.node, &[shell], &arguments.place)
}
