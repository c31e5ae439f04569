//! `down` and `up`: cutting and mending a link while it runs.

use serde::Serialize;
use windtunnel_control::{ControlRequest, LaneChoice};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::LiveRunSelector;
use crate::output;
use crate::verb::set::{LinkDirectionSelector, describe};

/// Take a link of a live run down: it carries nothing until it is up again
#[derive(Debug, clap::Args)]
pub(crate) struct DownArguments {
    #[command(flatten)]
    choice: LinkStateArguments,
}

/// Bring a link of a live run up again
#[derive(Debug, clap::Args)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    choice: LinkStateArguments,
}

#[derive(Debug, clap::Args)]
struct LinkStateArguments {
    /// Name of the link
    link: String,
    #[command(flatten)]
    way: LinkDirectionSelector,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// The change, for `--json`.
#[derive(Debug, Serialize)]
struct LinkStateOutput<'a> {
    #[serde(flatten)]
    lanes: &'a LaneChoice,
    up: bool,
}

pub(crate) fn down(arguments: &DownArguments) -> Outcome {
    change(&arguments.choice, false)
}

pub(crate) fn up(arguments: &UpArguments) -> Outcome {
    change(&arguments.choice, true)
}

fn change(choice: &LinkStateArguments, up: bool) -> Outcome {
    let lanes = LaneChoice { link: choice.link.clone(), direction: choice.way.direction.clone() };
    choice.live.order(&ControlRequest::state(lanes.clone(), up))?;
    if choice.format.json {
        output::json(&LinkStateOutput { lanes: &lanes, up })?;
    } else {
        output::talk(&format!("{}: {}", describe(&lanes), if up { "up" } else { "down" }));
    }
    Ok(ExitCategory::Fine.code())
}
