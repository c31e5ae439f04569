//! `top`: a live run as tables in the terminal.

mod app;
mod canvas;
mod cells;
mod columns;
mod draw;
mod edit;
mod help;
mod input;
mod order;
mod plain;
mod session;
#[cfg(test)]
mod tests;
mod view;

use clap::builder::FalseyValueParser;
use windtunnel_control::{ControlRequest, Snapshot};
use windtunnel_model::Span;
use windtunnel_sys::terminal::is_terminal;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::output;

/// Watch the links and programs of a live run in the terminal, and change links
///
/// Links with their deliveries, queues, drops and lateness, and nodes with their programs; to be
/// sorted, filtered and changed with keys, which `?` shows. Rates are of IP bytes in the last
/// second. `q` ends top, not the run. Where standard input or output is not a terminal, the tables
/// are printed once.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArguments {
    /// Print the tables once as plain text, with all columns
    #[arg(long, env = "WINDTUNNEL_ONCE", value_parser = FalseyValueParser::new())]
    once: bool,
    /// Time between two looks at the run, at least 100ms
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_INTERVAL", default_value = "1s")]
    #[arg(value_parser = interval)]
    interval: Span,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &TopArguments) -> Outcome {
    let mut client = arguments.live.connect()?;
    if !arguments.format.json && !arguments.once && can_draw() {
        return session::run(client, arguments.live.plan()?, arguments.interval);
    }
    let snapshot = client.ask(&ControlRequest::snapshot())?;
    print(&snapshot, arguments.format.json)?;
    Ok(ExitCategory::Fine.code())
}

fn print(snapshot: &Snapshot, json: bool) -> Result<(), VerbFailure> {
    if json { output::json(snapshot) } else { output::data(&plain::render(snapshot)) }
}

/// Whether standard input and output are a terminal with cursor control.
fn can_draw() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal(rustix::stdio::stdin()) && is_terminal(rustix::stdio::stdout()) && !dumb
}

fn interval(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(span) if span < INTERVAL_LEAST => {
            Err(format!("links are sampled each {INTERVAL_LEAST}"))
        }
        other => other.map_err(|error| error.to_string()),
    }
}

/// As often as the run takes samples.
const INTERVAL_LEAST: Span = Span::from_millis(100);
