//! `manual`: the manual page.

use std::fs;
use std::path::PathBuf;

use clap::Command;
use serde::Serialize;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::manual;
use crate::output;

/// Print the manual page
///
/// To read it: windtunnel manual | man -l -
#[derive(Debug, clap::Args)]
pub(crate) struct ManualArguments {
    /// Write `windtunnel.1` into this folder instead
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_MANUAL_OUT")]
    out: Option<PathBuf>,
    #[command(flatten)]
    format: OutputFormat,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct Manual {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    page: String,
}

pub(crate) fn run(arguments: &ManualArguments, command: Command) -> Outcome {
    let page = manual::page(command);
    let path = arguments.out.as_ref().map(|folder| folder.join("windtunnel.1"));
    if let Some(path) = &path {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        written.and_then(|()| fs::write(path, &page)).map_err(|error| {
            VerbFailure::new(
                ExitCategory::Machine,
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
    }
    match (arguments.format.json, &path) {
        (true, _) => output::json(&Manual { path, page })?,
        (false, Some(path)) => output::talk(&format!("wrote {}", path.display())),
        (false, None) => output::data(&page)?,
    }
    Ok(ExitCategory::Fine.code())
}
