//! Names that are not on the command line: of live runs, their nodes and links, of presets and
//! keys.

use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use windtunnel_model::Plan;

use super::CompletionCandidate;
use crate::live::{self, LiveRunSelector};

/// Whether an argument names a live run.
pub(super) fn is_run(of: &Arg) -> bool {
    of.get_long() == Some("run")
        && of.get_env().is_some_and(|variable| variable == "WINDTUNNEL_RUN")
}

/// The values of an argument that are known by name.
pub(super) fn of(verb: Option<&Command>, of: &Arg, run: Option<&str>) -> Vec<CompletionCandidate> {
    let plan = || plan(run);
    let plain = |names: Vec<String>| {
        names.into_iter().map(|name| CompletionCandidate::new(name, "")).collect()
    };
    match (of.get_id().as_str(), verb.map(Command::get_name)) {
        _ if is_run(of) => runs(),
        ("node", Some("exec" | "shell")) => plain(plan().map(nodes).unwrap_or_default()),
        ("place", Some("capture")) => plain(
            plan().map(|plan| [nodes(plan.clone()), links(plan)].concat()).unwrap_or_default(),
        ),
        ("link", Some("set" | "down" | "up")) => plain(plan().map(links).unwrap_or_default()),
        ("direction", _) => plain(plan().map(|plan| directions(&plan)).unwrap_or_default()),
        ("properties", Some("set")) => plain(keys()),
        ("on_overload", _) => plain(OVERLOAD.map(str::to_owned).to_vec()),
        ("preset", _) => windtunnel_scenario::presets()
            .iter()
            .map(|preset| CompletionCandidate::new(preset.name, preset.about))
            .collect(),
        ("discipline", _) => disciplines(),
        _ => Vec::new(),
    }
}

/// The folders of live runs, from here where they are below.
fn runs() -> Vec<CompletionCandidate> {
    let here = std::env::current_dir().ok();
    let short = |folder: &Path| -> PathBuf {
        let below = here.as_deref().and_then(|here| folder.strip_prefix(here).ok());
        below.unwrap_or(folder).to_owned()
    };
    let folders = live::folders();
    folders
        .iter()
        .map(|folder| CompletionCandidate::new(short(folder).to_string_lossy(), ""))
        .collect()
}

/// The plan of the run that is named, or of the only one.
fn plan(run: Option<&str>) -> Option<Plan> {
    let variable = || std::env::var_os("WINDTUNNEL_RUN").filter(|folder| !folder.is_empty());
    let run = run.map(PathBuf::from).or_else(|| variable().map(PathBuf::from));
    let live = LiveRunSelector::of(run);
    // A finished run has no live nodes.
    live.connect().ok()?;
    live.plan().ok()
}

fn nodes(plan: Plan) -> Vec<String> {
    plan.nodes.into_iter().map(|node| node.name).collect()
}

fn links(plan: Plan) -> Vec<String> {
    plan.links.into_iter().map(|link| link.name).collect()
}

fn directions(plan: &Plan) -> Vec<String> {
    let lanes = (0..plan.links.len() * 2).map(windtunnel_model::Lane::from_index);
    let mut names: Vec<String> = lanes.map(|lane| plan.lane_name(lane)).collect();
    names.sort();
    names.dedup();
    ["up", "down"].map(str::to_owned).into_iter().chain(names).collect()
}

/// The keys of `windtunnel set`: those of a direction in the file. A trace is read with the file
/// only.
fn keys() -> Vec<String> {
    let schema = windtunnel_scenario::schema();
    let keys = schema["definitions"]["Direction"]["properties"].as_object();
    let keys = keys.into_iter().flat_map(|keys| keys.keys()).filter(|key| *key != "trace");
    keys.map(|key| format!("{key}=")).collect()
}

/// The queue disciplines, by name.
fn disciplines() -> Vec<CompletionCandidate> {
    let schema = windtunnel_scenario::schema();
    let names = schema["definitions"]["DisciplineName"]["oneOf"].as_array();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let candidate = |name: &serde_json::Value| {
        CompletionCandidate::new(text(&name["const"]), text(&name["description"]))
    };
    names.into_iter().flatten().map(candidate).collect()
}

/// Responses to an overload.
const OVERLOAD: [&str; 3] = ["report", "abort", "freeze"];
