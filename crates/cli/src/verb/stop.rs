//! `stop`: ends a live run.

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_control::ControlRequest;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::LiveRunSelector;
use crate::output;

/// End a live run as if it had finished, and wait until it has
#[derive(Debug, clap::Args)]
pub(crate) struct StopArguments {
    /// Return at once instead of waiting until the run has ended
    #[arg(long, env = "WINDTUNNEL_NO_WAIT", value_parser = FalseyValueParser::new())]
    no_wait: bool,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// The ended run, for `--json`.
#[derive(Debug, Serialize)]
struct StopOutput<'a> {
    name: &'a str,
    ended: bool,
}

pub(crate) fn run(arguments: &StopArguments) -> Outcome {
    let mut client = arguments.live.order(&ControlRequest::stop())?;
    let ended = !arguments.no_wait;
    if ended {
        // The connection lives as long as the run.
        while client.receive().is_ok() {}
    }
    if arguments.format.json {
        output::json(&StopOutput { name: client.name(), ended })?;
    } else {
        let what = if ended { "ended" } else { "is ending" };
        output::talk(&format!("{} {what}", client.name()));
    }
    Ok(ExitCategory::Fine.code())
}
