//! `stop`: ends a live run.

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_control::Request;

use crate::arguments::Format;
use crate::exit::Exit;
use crate::live::Live;
use crate::output;
use crate::verb::Outcome;

/// End a live run as if it had finished, and wait until it has
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Return at once instead of waiting until the run has ended
    #[arg(long, env = "WINDTUNNEL_NO_WAIT", value_parser = FalseyValueParser::new())]
    no_wait: bool,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    format: Format,
}

/// The ended run, for `--json`.
#[derive(Debug, Serialize)]
struct Stopped<'a> {
    name: &'a str,
    ended: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut client = arguments.live.order(&Request::Stop)?;
    let ended = !arguments.no_wait;
    if ended {
        // The connection lives as long as the run.
        while client.receive().is_ok() {}
    }
    if arguments.format.json {
        output::json(&Stopped { name: client.name(), ended })?;
    } else {
        let what = if ended { "ended" } else { "is ending" };
        output::talk(&format!("{} {what}", client.name()));
    }
    Ok(Exit::Fine.code())
}
