//! `set`: changes of a link, or of a node's limit, while it runs.

use serde::Serialize;
use windtunnel_control::{ControlRequest, LaneChoice};
use windtunnel_model::demand::Demand;
use windtunnel_model::{LinkPatch, Plan};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::live::LiveRunSelector;
use crate::output;

/// Change properties of a link, or a limit of a node or reservation, in a live run
///
/// Only what is named changes, all of it at one instant. Keys and values are those of links in the
/// scenario file: latency, jitter, loss, duplicate, corrupt, reorder, rate, overhead, mtu, queue,
/// discipline. `NODE.cpu=50%`, `NODE.memory=64MB`, `NODE.pids=100` and `NODE.disk=5MB/s` limit what
/// the programs of a node, of each node of a group, or all nodes of a reservation use together; `NAME.cpu='{min: 25%, weight: 2}'` changes what one has of processors
/// that are divided by weight.
#[derive(Debug, clap::Args)]
pub(crate) struct SetArguments {
    /// Name of the link, or `NODE.LIMIT=VALUE`
    link: String,
    /// Properties, such as `loss=5%` `rate=10mbit` `jitter='{spread: 2ms, distribution: normal}'`
    #[arg(value_name = "KEY=VALUE")]
    properties: Vec<String>,
    #[command(flatten)]
    way: LinkDirectionSelector,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// Which way along the link.
#[derive(Debug, clap::Args)]
pub(crate) struct LinkDirectionSelector {
    /// Only this direction: `up`, `down`, or `from-to` with the names at the link's ends
    /// [default: both]
    #[arg(long, value_name = "WAY", env = "WINDTUNNEL_DIRECTION")]
    pub(crate) direction: Option<String>,
}

/// The change, for `--json`.
#[derive(Debug, Serialize)]
struct LinkChangeOutput<'a> {
    #[serde(flatten)]
    lanes: &'a LaneChoice,
    set: &'a LinkPatch,
}

pub(crate) fn run(arguments: &SetArguments) -> Outcome {
    if let Some((node, key, value)) = limit_of_node(&arguments.link) {
        return set_limit(arguments, node, key, value);
    }
    if arguments.properties.is_empty() {
        let message = format!("nothing is to be set at `{}`", arguments.link);
        let hint = "write KEY=VALUE behind a link, such as loss=5%; or NODE.cpu=50%";
        return Err(VerbFailure::new(ExitCategory::Usage, message).hint(hint));
    }
    let pairs: Vec<(&str, &str)> =
        arguments.properties.iter().map(|text| pair(text)).collect::<Result<_, _>>()?;
    let patch = windtunnel_scenario::parse_patch(&pairs)?;
    // No run lives there: say so, rather than that a file is missing.
    arguments.live.connect()?;
    let plan = arguments.live.plan()?;
    windtunnel_scenario::check_patch(&patch, &plan)?;
    let lanes =
        LaneChoice { link: arguments.link.clone(), direction: arguments.way.direction.clone() };
    arguments.live.order(&ControlRequest::set(lanes.clone(), Box::new(patch.clone())))?;
    if arguments.format.json {
        output::json(&LinkChangeOutput { lanes: &lanes, set: &patch })?;
    } else {
        output::talk(&format!("{}: {}", describe(&lanes), arguments.properties.join(" ")));
        for property in replaced(&plan, &lanes.link, &patch) {
            output::talk(&format!("{}: its {property} follows no trace any more", lanes.link));
        }
    }
    Ok(ExitCategory::Fine.code())
}

/// The limit of a node, for `--json`.
#[derive(Debug, Serialize)]
struct NodeLimitOutput<'a> {
    node: &'a str,
    #[serde(flatten)]
    demand: &'a Demand,
}

/// `NODE.KEY=VALUE`, with a key that nodes have: the node, the key and its value.
fn limit_of_node(text: &str) -> Option<(&str, &str, &str)> {
    let (place, value) = text.split_once('=')?;
    let (node, key) = place.rsplit_once('.')?;
    ["cpu", "memory", "pids", "disk", "open-files", "send", "receive"]
        .contains(&key)
        .then_some((node, key, value))
}

fn set_limit(arguments: &SetArguments, node: &str, key: &str, value: &str) -> Outcome {
    if let Some(other) = arguments.properties.first() {
        let message = format!("`{other}` is not of a link");
        return Err(VerbFailure::new(ExitCategory::Usage, message)
            .hint("set one limit of a node at a time"));
    }
    let demand = windtunnel_scenario::parse_limit(key, value)?;
    let request = ControlRequest::live_limit(node, &demand).ok_or_else(|| {
        let message = format!("`{key}` of a node cannot change while it runs");
        VerbFailure::new(ExitCategory::Usage, message).hint("cpu, memory, pids and disk can")
    })?;
    arguments.live.order(&request)?;
    if arguments.format.json {
        output::json(&NodeLimitOutput { node, demand: &demand.live() })?;
    } else {
        output::talk(&format!("{node}: {key} {value}"));
    }
    Ok(ExitCategory::Fine.code())
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

fn pair(text: &str) -> Result<(&str, &str), VerbFailure> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        VerbFailure::new(ExitCategory::Usage, format!("`{text}` is not a property"))
            .hint("write KEY=VALUE, such as loss=5%")
    })?;
    Ok((key.trim(), value.trim()))
}
