//! `web`: the page of live runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::FalseyValueParser;
use windtunnel_web::{LiveRunLocation, WebServerContent, WebServerOptions};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live;
use crate::render::page::{self, BrowserOptions};

/// Show live runs in the browser, and change them there
///
/// Prints the address of the page: map and time lines while runs go on, output of programs, link
/// properties to change, each change as the command that does the same. The page is for this user:
/// what knows the address, which has a secret, can do with the runs what this user can. Ctrl-C ends
/// the page, not the runs.
#[derive(Debug, clap::Args)]
pub(crate) struct WebArguments {
    /// Folder of the run to show, live or over [default: all live runs of this user]
    #[arg(value_name = "RUN", env = "WINDTUNNEL_RUN")]
    run: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one. Other machines reach it if the address is not one of
    /// loopback: without encryption
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "WINDTUNNEL_WEB_LISTEN",
        default_value = "127.0.0.1:0"
    )]
    listen: SocketAddr,
    /// End when the run is over; without RUN, when no run is live any more
    #[arg(long, env = "WINDTUNNEL_UNTIL_END", value_parser = FalseyValueParser::new())]
    until_end: bool,
    #[command(flatten)]
    opening: BrowserOptions,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &WebArguments) -> Outcome {
    let only = arguments.run.as_deref().map(folder).transpose()?;
    let lister = Arc::new(|| {
        let named = |run: live::LiveRunSummary| LiveRunLocation {
            folder: run.folder,
            name: run.name.unwrap_or_default(),
            elapsed_ns: run.elapsed_ns.unwrap_or_default(),
        };
        live::list().into_iter().map(named).collect()
    });
    let shown = WebServerContent::Runs { only, lister, until_end: arguments.until_end };
    let options = WebServerOptions {
        listen: arguments.listen,
        program: PathBuf::from(page::THIS_PROGRAM),
        shown,
    };
    page::serve(options, &arguments.opening, arguments.format.json)
}

/// The folder of a run, as the list of live runs has it.
fn folder(path: &Path) -> Result<PathBuf, VerbFailure> {
    let wrong = |why: &str| {
        let text = format!("{} is not the folder of a run: {why}", path.display());
        let hint = "`windtunnel ls` lists live runs; without a name all of them are shown";
        VerbFailure::new(ExitCategory::Usage, text).hint(hint)
    };
    let folder = path.canonicalize().map_err(|error| wrong(&error.to_string()))?;
    match folder.join("plan.json").exists() {
        true => Ok(folder),
        false => Err(wrong("it has no plan.json")),
    }
}
