//! `down` and `up`: cutting and mending a link while it runs.

use serde::Serialize;
use windtunnel_control::{LaneChoice, Request};

use crate::arguments::Format;
use crate::exit::Exit;
use crate::live::Live;
use crate::output;
use crate::verb::Outcome;
use crate::verb::set::{Way, describe};

/// Take a link of a live run down: it carries nothing until it is up again
#[derive(Debug, clap::Args)]
pub(crate) struct Down {
    #[command(flatten)]
    choice: Choice,
}

/// Bring a link of a live run up again
#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    #[command(flatten)]
    choice: Choice,
}

#[derive(Debug, clap::Args)]
struct Choice {
    /// Name of the link
    link: String,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    format: Format,
}

/// The change, for `--json`.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    #[serde(flatten)]
    lanes: &'a LaneChoice,
    up: bool,
}

pub(crate) fn down(arguments: &Down) -> Outcome {
    change(&arguments.choice, false)
}

pub(crate) fn up(arguments: &Up) -> Outcome {
    change(&arguments.choice, true)
}

fn change(choice: &Choice, up: bool) -> Outcome {
    let lanes = LaneChoice { link: choice.link.clone(), direction: choice.way.direction.clone() };
    choice.live.order(&Request::State { lanes: lanes.clone(), up })?;
    if choice.format.json {
        output::json(&Changed { lanes: &lanes, up })?;
    } else {
        output::talk(&format!("{}: {}", describe(&lanes), if up { "up" } else { "down" }));
    }
    Ok(Exit::Fine.code())
}
