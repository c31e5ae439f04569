//! `exec`: a command in a node of a live run.

mod session;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use windtunnel_control::ControlRequest;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;

/// Run a command in a node of a live run
///
/// Standard input, output and error are passed to the command; where input and output are a
/// terminal, it gets a terminal of its own. Exits with the command's exit code, or 128+n if signal
/// n ended it; 127 if it is not found, 126 if it cannot be executed. Options come before the
/// command; `--` in front of it is only needed where it begins with `-`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArguments {
    /// The node
    node: String,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) place: ExecOptions,
}

/// Where and how a command runs.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecOptions {
    /// Working directory of the command [default: the current directory]
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_CWD")]
    cwd: Option<PathBuf>,
    /// A variable for the command; may be given more than once
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    _errors: ErrorFormatOption,
}

/// Output of windtunnel itself beside the command's.
#[derive(Debug, clap::Args)]
struct ErrorFormatOption {
    /// Write a failure of windtunnel itself to standard error as JSON; the command's output stays
    /// unchanged
    #[arg(long = "json", id = "json", env = "WINDTUNNEL_JSON", value_parser = FalseyValueParser::new())]
    _json: bool,
}

pub(crate) fn run(arguments: &ExecArguments) -> Outcome {
    command(&arguments.node, &arguments.command, &arguments.place)
}

/// Runs a command in a node and returns its exit code.
pub(crate) fn command(node: &str, argv: &[OsString], place: &ExecOptions) -> Outcome {
    let argv = argv.iter().map(text).collect::<Result<_, _>>()?;
    let cwd = match &place.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = cwd.map_err(|error| {
        VerbFailure::new(ExitCategory::Usage, format!("cannot find the working directory: {error}"))
            .hint("name one with --cwd DIR")
    })?;
    let mut env: BTreeMap<String, String> = place.variables.iter().cloned().collect();
    // A terminal's type belongs to the terminal that is used, not to the one the run was started
    // from.
    if let Ok(terminal) = std::env::var("TERM") {
        env.entry("TERM".to_owned()).or_insert(terminal);
    }
    let request = ControlRequest::Exec {
        node: node.to_owned(),
        argv,
        cwd: Some(text(&cwd.into_os_string())?),
        env,
        terminal: false,
    };
    session::run(place.live.connect()?, request)
}

/// Messages are JSON, which holds Unicode only.
fn text(word: &OsString) -> Result<String, VerbFailure> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        VerbFailure::new(ExitCategory::Usage, format!("`{}` is not UTF-8", word.to_string_lossy()))
    })
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
