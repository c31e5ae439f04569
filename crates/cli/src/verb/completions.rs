//! `completions`: the script by which a shell completes command lines.

use clap::Command;
use clap_complete::Shell;
use serde::Serialize;

use crate::arguments::OutputFormat;
use crate::completion;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;

/// Print the completions of a shell
///
/// For bash: windtunnel completions bash > ~/.local/share/bash-completion/completions/windtunnel
///
/// In bash, zsh and fish, names of live runs, their nodes and links, and of presets are completed
/// too.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
    #[command(flatten)]
    format: OutputFormat,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct CompletionScriptOutput {
    shell: String,
    script: String,
}

pub(crate) fn run(arguments: &CompletionsArguments, command: Command) -> Outcome {
    let script = completion::script(arguments.shell, command);
    if arguments.format.json {
        output::json(&CompletionScriptOutput { shell: arguments.shell.to_string(), script })?;
    } else {
        output::data(&script)?;
    }
    Ok(ExitCategory::Fine.code())
}
