//! The command `windtunnel`: its verbs, by the crates `host` and `control`, and its output.
//!
//! Promises: data on standard output and talk on standard error; `--json` with the fields of the
//! tables; every failure ends with the cause, a hint where there is one, and a documented exit code
//! ([`ExitCategory`]). Refuses: any behaviour that another face (Python, a web page) would miss: that lives
//! in the rooms below.
//!
//! | module | what |
//! | --- | --- |
//! | `allowance` | the limits of this process, as `ulimit` sets them |
//! | `arguments` | arguments that several verbs have |
//! | `verb` | the verbs, one a file |
//! | `render` | tables, lines and texts for people |
//! | `cluster` | options and messages of runs over a cluster |
//! | `completion` | completions of a word on the command line |
//! | `exit` | [`ExitCategory`]: the exit codes |
//! | `failure` | failures of verbs, and how they are printed |
//! | `line` | the command line that was given, and how its failures are printed |
//! | `live` | finding and asking a live run |
//! | `load` | reading a scenario from a file |
//! | `manual` | the manual page |
//! | `records` | the records of a run, from its folder |
//! | `relay` | bytes between the user's terminal and a command's |
//! | `presence` | whether this machine has the programs of a scenario |
//! | `records` | the records of a run, from its folder |
//! | `output` | writing to standard output and standard error |
//! | `terminal` | raw mode that even a panic leaves |
//!
//! ```
//! let command = windtunnel_cli::command();
//! assert!(command.find_subcommand("run").is_some());
//! assert_eq!(windtunnel_cli::ExitCategory::Scenario.code(), 3);
//! ```

mod allowance;
mod arguments;
mod cluster;
mod completion;
mod exit;
mod failure;
mod images;
mod line;
mod live;
mod load;
mod manual;
mod output;
mod presence;
mod progress;
mod records;
mod relay;
mod render;
mod terminal;
mod verb;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

pub use exit::ExitCategory;
pub use line::leaves;

use line::ParsedCommandLine;

/// The whole command line, for documents and completions.
#[must_use]
pub fn command() -> clap::Command {
    line::command()
}

/// The script by which a shell completes command lines.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> String {
    completion::script(shell, line::command())
}

/// The manual page `windtunnel(1)`, all verbs on one page.
#[must_use]
pub fn manual_page() -> String {
    manual::page(line::command())
}

/// Executes the command line and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    terminal::restore_on_panic();
    allowance::outlive_large_files();
    if let Some(failure) = allowance::refusal() {
        return ExitCode::from(line::print_unread(&failure));
    }
    ExitCode::from(catch_unwind(AssertUnwindSafe(execute)).unwrap_or_else(|panic| {
        allowance::of_panic(&*panic).map_or(ExitCategory::Internal.code(), |failure| failure.code())
    }))
}

/// Does what the command line says. It is a function that is not made part of its caller: that one
/// has to be able to say that there is too little stack for this one.
#[inline(never)]
fn execute() -> u8 {
    let line = match ParsedCommandLine::read(std::env::args_os()) {
        Ok(line) => line,
        Err(wrong) => return wrong.print(),
    };
    verb::run(&line.arguments.verb, line::command)
        .unwrap_or_else(|failure| line.print(&allowance::explained(failure)))
}
