//! `set`: changes of a link while it runs.

use serde::Serialize;
use windtunnel_control::{LaneChoice, Request};
use windtunnel_model::{LinkPatch, Plan};

use crate::arguments::Format;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Live;
use crate::output;
use crate::verb::Outcome;

/// Change properties of a link in a live run
///
/// Only what is named changes, all of it at one instant. Keys and values are those of links in the
/// scenario file: latency, jitter, loss, duplicate, corrupt, reorder, rate, overhead, mtu, queue,
/// discipline.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Name of the link
    link: String,
    /// Properties, such as `loss=5%` `rate=10mbit` `jitter='{spread: 2ms, distribution: normal}'`
    #[arg(value_name = "KEY=VALUE", required = true)]
    properties: Vec<String>,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    format: Format,
}

/// Which way along the link.
#[derive(Debug, clap::Args)]
pub(crate) struct Way {
    /// Only this direction: `up`, `down`, or `from-to` with the names at the link's ends
    /// [default: both]
    #[arg(long, value_name = "WAY", env = "WINDTUNNEL_DIRECTION")]
    pub(crate) direction: Option<String>,
}

/// The change, for `--json`.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    #[serde(flatten)]
    lanes: &'a LaneChoice,
    set: &'a LinkPatch,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let pairs: Vec<(&str, &str)> =
        arguments.properties.iter().map(|text| pair(text)).collect::<Result<_, _>>()?;
    let patch = windtunnel_scenario::parse_patch(&pairs)?;
    // No run lives there: say so, rather than that a file is missing.
    arguments.live.connect()?;
    let plan = arguments.live.plan()?;
    windtunnel_scenario::check_patch(&patch, &plan)?;
    let lanes =
        LaneChoice { link: arguments.link.clone(), direction: arguments.way.direction.clone() };
    arguments.live.order(&Request::Set { lanes: lanes.clone(), patch: Box::new(patch.clone()) })?;
    if arguments.format.json {
        output::json(&Changed { lanes: &lanes, set: &patch })?;
    } else {
        output::talk(&format!("{}: {}", describe(&lanes), arguments.properties.join(" ")));
        for property in replaced(&plan, &lanes.link, &patch) {
            output::talk(&format!("{}: its {property} follows no trace any more", lanes.link));
        }
    }
    Ok(Exit::Fine.code())
}

/// The properties that a patch sets and that followed a trace when the run began.
pub(crate) fn replaced(plan: &Plan, link: &str, patch: &LinkPatch) -> Vec<&'static str> {
    let link = plan.link_named(link).map(|id| &plan.links[id.index()]);
    let profiles = || link.into_iter().flat_map(|link| &link.profiles);
    let properties = [
        ("rate", patch.rate.is_some() && profiles().any(|p| p.traces.rate.is_some())),
        ("latency", patch.latency.is_some() && profiles().any(|p| p.traces.latency.is_some())),
        ("loss", patch.loss.is_some() && profiles().any(|p| p.traces.loss.is_some())),
    ];
    properties.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
}

/// `ocean` or `ocean (tokyo-paris)`.
pub(crate) fn describe(lanes: &LaneChoice) -> String {
    match &lanes.direction {
        Some(direction) => format!("{} ({direction})", lanes.link),
        None => lanes.link.clone(),
    }
}

fn pair(text: &str) -> Result<(&str, &str), Failure> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{text}` is not a property"))
            .hint("write KEY=VALUE, such as loss=5%")
    })?;
    Ok((key.trim(), value.trim()))
}
