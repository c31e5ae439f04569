//! `shell`: an interactive shell in a node of a live run.

use std::ffi::OsString;

use crate::failure::Outcome;
use crate::verb::exec::{self, ExecOptions};

/// Open a shell in a node of a live run
#[derive(Debug, clap::Args)]
pub(crate) struct ShellArguments {
    /// The node
    node: String,
    /// The shell and its arguments [default: $SHELL, else /bin/sh]
    #[arg(trailing_var_arg = true, value_name = "SHELL")]
    shell: Vec<OsString>,
    #[command(flatten)]
    place: ExecOptions,
}

pub(crate) fn run(arguments: &ShellArguments) -> Outcome {
    if !arguments.shell.is_empty() {
        return exec::command(&arguments.node, &arguments.shell, &arguments.place);
    }
    let usual = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    // A node with a file system of its own may lack the user's shell.
    let words = usual.map(|shell| ["/bin/sh".into(), "-c".into(), EITHER.into(), shell].to_vec());
    let words = words.unwrap_or_else(|| vec!["/bin/sh".into()]);
    exec::command(&arguments.node, &words, &arguments.place)
}

/// Becomes the shell that is named behind it, or else the one that every system has.
const EITHER: &str = r#"command -v "$0" >/dev/null && exec "$0"; exec /bin/sh"#;
