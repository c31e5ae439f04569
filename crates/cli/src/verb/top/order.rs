//! Requests to the run: changes in the syntax of `windtunnel set`.

use std::fmt::Write as _;

use windtunnel_control::{ControlRequest, LaneChoice, TypedRequest};
use windtunnel_model::Plan;

use crate::verb::set::{describe, replaced};

/// A change, and the message about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunChangeRequest {
    /// For the run.
    pub(super) request: TypedRequest<()>,
    /// The message once the run has confirmed it.
    pub(super) done: String,
}

/// Reads what `windtunnel set` would take: `latency=80ms loss=1%`.
///
/// # Errors
/// The mistake, in a line.
pub(super) fn set(lanes: LaneChoice, text: &str, plan: &Plan) -> Result<RunChangeRequest, String> {
    let words = shell_words::split(text).map_err(|_| "a quote is not closed".to_owned())?;
    if words.is_empty() {
        return Err("write KEY=VALUE, such as loss=5%".to_owned());
    }
    let mut pairs = Vec::new();
    for word in &words {
        let pair = word.split_once('=').ok_or_else(|| {
            format!("`{word}` is not a property: write KEY=VALUE, such as loss=5%")
        })?;
        pairs.push((pair.0.trim(), pair.1.trim()));
    }
    let failed =
        |error: windtunnel_scenario::PatchError| message(&error.to_string(), error.hint.as_deref());
    let patch = windtunnel_scenario::parse_patch(&pairs).map_err(failed)?;
    windtunnel_scenario::check_patch(&patch, plan).map_err(failed)?;
    let mut done = format!("{}: {}", describe(&lanes), words.join(" "));
    for property in replaced(plan, &lanes.link, &patch) {
        // Writing to a string cannot fail.
        let _ = write!(done, "; its {property} follows no trace any more");
    }
    Ok(RunChangeRequest { request: ControlRequest::set(lanes, Box::new(patch)), done })
}

/// Reads what `windtunnel set` would take behind the name of a node: `cpu=50%`.
///
/// # Errors
/// The mistake, in a line.
pub(super) fn limit(node: &str, text: &str) -> Result<RunChangeRequest, String> {
    let pair = text.trim().split_once('=').ok_or("write KEY=VALUE, such as cpu=50%")?;
    let (key, value) = (pair.0.trim(), pair.1.trim());
    let demand = windtunnel_scenario::parse_limit(key, value)
        .map_err(|error| message(&error.to_string(), error.hint.as_deref()))?;
    let request = ControlRequest::live_limit(node, &demand)
        .ok_or_else(|| format!("`{key}` cannot change: cpu, memory, pids and disk can"))?;
    Ok(RunChangeRequest { request, done: format!("{node}: {key} {value}") })
}

/// Takes a link down or up.
pub(super) fn state(lanes: LaneChoice, up: bool) -> RunChangeRequest {
    let done = format!("{}: {}", describe(&lanes), if up { "up" } else { "down" });
    RunChangeRequest { request: ControlRequest::state(lanes, up), done }
}

/// An error and its hint, in a line.
pub(super) fn message(wrong: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{wrong} ({hint})"),
        None => wrong.to_owned(),
    }
}
