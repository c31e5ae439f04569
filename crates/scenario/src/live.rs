//! The words of the file on the command line: properties (`windtunnel set LINK key=value…`) and
//! events (`windtunnel do EVENT`).

use std::collections::BTreeSet;
use std::fmt;

use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{NetworkModel, ScheduledEvent};
use windtunnel_model::valid::Validate;
use windtunnel_model::{LinkPatch, NodeId, Plan, Span};

use crate::decode::{PROPERTIES, PathModelReason, decode_new_cpu, decode_now, decode_property};
use crate::document::root;
use crate::error::{Diagnostics, ScenarioErrors, ScenarioNotice};
use crate::grammar::Decoder;
use crate::resolve;
use crate::source::ReadFile;
use crate::text::{nearest, shorten};
use crate::trace::TraceFiles;
use crate::tree;

/// Why `key=value` is not a property of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchError {
    /// The key as it was given.
    pub key: String,
    /// What is wrong, with the offending text.
    pub message: String,
    /// How to repair it, where that is known.
    pub hint: Option<String>,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PatchError {}

/// Reads pairs of key and value as a link in a file would: `[("loss", "5%"), ("rate", "none")]`; a
/// value with parts is written in YAML's flow style, `{spread: 2ms, distribution: normal}`.
///
/// # Errors
/// The first pair with an unknown or repeated key, or a value that the key does not take.
pub fn parse_patch(pairs: &[(&str, &str)]) -> Result<LinkPatch, PatchError> {
    let mut patch = LinkPatch::default();
    let mut seen: Vec<&str> = Vec::new();
    for (key, value) in pairs {
        if !PROPERTIES.contains(key) {
            return Err(unknown(key));
        }
        if seen.contains(key) {
            return Err(error(key, format!("`{key}` is given twice"), None));
        }
        seen.push(key);
        patch = patch.with(&parse_one(key, value)?);
    }
    Ok(patch)
}

/// Reads what a limit of a node has in a file: `cpu` (with its share), `memory`, `pids` or `disk`; with
/// other keys, which do not change while a node runs, nothing is asked.
///
/// # Errors
/// If it is not that.
pub fn parse_limit(key: &str, text: &str) -> Result<Demand, PatchError> {
    let nothing = Demand::default();
    let wrong = |message: String| error(key, format!("{key}: {message}"), None);
    let demand = match key {
        "cpu" => decode("cpu", text, decode_new_cpu)?.unwrap_or_default(),
        "memory" => {
            let memory = text.parse().map_err(|error| wrong(format!("{error}")))?;
            Demand { memory: Some(memory), ..nothing }
        }
        "pids" => {
            let shown = shorten(text);
            let count = text.parse().map_err(|_| wrong(format!("`{shown}` is not a number")))?;
            Demand { pids: Some(count), ..nothing }
        }
        "disk" => {
            let rate = text.parse().map_err(|error| wrong(format!("{error}")))?;
            Demand { disk: Some(rate), ..nothing }
        }
        _ => nothing,
    };
    demand.validate().map_err(|invalid| wrong(format!("`{}`: {invalid}", shorten(text))))?;
    Ok(demand)
}

/// Checks that need the whole plan: IPv6 needs an MTU of 1280, and a network model has not
/// everything.
///
/// # Errors
/// If the patch asks for a smaller MTU and the plan has IPv6, or for what the plan's model has no
/// place for.
pub fn check_patch(patch: &LinkPatch, plan: &Plan) -> Result<(), PatchError> {
    let unfit = (plan.model != NetworkModel::Hops).then(|| resolve::model::unfit(patch)).flatten();
    if let Some((key, message)) = unfit {
        let message = format!("{key}: {} {message}", PathModelReason::Asked.condition());
        return Err(error(key, message, None));
    }
    let has_v6 = plan.ports().any(|(_, interface)| interface.v6.is_some());
    match patch.mtu {
        Some(mtu) if mtu < 1280 && has_v6 => {
            let message = format!("mtu: `{mtu}` is less than the 1280 that IPv6 needs (RFC 8200)");
            Err(error("mtu", message, None))
        }
        _ => Ok(()),
    }
}

/// A moment of a live run.
#[derive(Debug, Clone, Copy)]
pub struct LiveRunMoment<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Time since the run began.
    pub now: Span,
    /// Nodes that churn has outside the population now.
    pub absent: &'a BTreeSet<NodeId>,
}

/// Reads an event as `events` of a file has it, or a list of them, without `at`: `{link: ocean,
/// down: true}`. Returns what they come to, by time from now on, and what there is to notice.
///
/// # Errors
/// All mistakes, as for a file called `event`.
pub fn parse_events(
    text: &str,
    files: &ReadFile<'_>,
    moment: &LiveRunMoment<'_>,
) -> Result<(Vec<ScheduledEvent>, Vec<ScenarioNotice>), ScenarioErrors> {
    let mut found = Diagnostics::default();
    let mut events = Vec::new();
    let nothing = ("there is no event", "write one such as `{link: NAME, down: true}`");
    if let Some(root) = root(&mut found, text, nothing) {
        let mut traces = TraceFiles::default();
        let mut decoder = Decoder { diagnostics: &mut found, traces: &mut traces };
        let drafts = decode_now(&mut decoder, &root);
        if found.is_clean() {
            let LiveRunMoment { plan, now, absent } = *moment;
            events = resolve::resolve_now(&mut found, &drafts, text, files, plan, now, absent);
        }
    }
    match found.is_clean() {
        true => Ok((events, found.notices)),
        false => Err(found.into_errors("event", text)),
    }
}

fn parse_one(key: &str, text: &str) -> Result<LinkPatch, PatchError> {
    let mut patch = LinkPatch::default();
    decode(key, text, |decoder, value| decode_property(decoder, key, value, &mut patch))?;
    Ok(patch)
}

/// Reads a value as one in a file.
fn decode<T>(
    key: &str,
    text: &str,
    read: impl FnOnce(&mut Decoder<'_>, &tree::YamlValue) -> T,
) -> Result<T, PatchError> {
    let nothing = || {
        let hint = format!("write `{key}=VALUE`");
        error(key, format!("`{key}` has no value"), Some(hint))
    };
    let value = match tree::parse(text) {
        Ok(value) => value.ok_or_else(nothing)?,
        Err(tree::TreeError { message, hint, .. }) => {
            let message = format!("{key}: `{}`: {message}", shorten(text));
            return Err(error(key, message, hint));
        }
    };
    let mut found = Diagnostics::default();
    let mut traces = TraceFiles::default();
    let mut decoder = Decoder { diagnostics: &mut found, traces: &mut traces };
    let read = read(&mut decoder, &value);
    match found.into_first() {
        Some((message, hint)) => Err(error(key, message, hint)),
        None => Ok(read),
    }
}

fn unknown(key: &str) -> PatchError {
    let message = format!("unknown key `{}` of a link", shorten(key));
    let hint = match nearest(key, PROPERTIES.iter().copied()) {
        _ if key == "preset" => {
            "presets are for the file, on a link or in an event's `set`".to_owned()
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", PROPERTIES.join(", ")),
    };
    error(key, message, Some(hint))
}

fn error(key: &str, message: String, hint: Option<String>) -> PatchError {
    PatchError { key: key.to_owned(), message, hint }
}
