//! The schedule: changes of links, and of services where that can be said.

use std::collections::BTreeSet;

use roxmltree::Node as Element;
use windtunnel_model::Span;
use windtunnel_scenario::Mistake;

use super::super::input::shorten;
use super::super::{Options, decimal, xml};
use super::{Experiment, loss, rate, time};
use crate::topology::{Change, Event};

/// How many replicas a schedule with `join` needs at once; `None` without one. As in Kollaps, those
/// that left are used again unless the service says `reuse="false"`.
pub(super) fn replicas(
    service: Element<'_, '_>,
    label: &str,
    events: &[Element<'_, '_>],
) -> Option<u32> {
    let reuse = service.attribute("reuse") != Some("false");
    let mine = events.iter().filter(|event| event.attribute("name").map(str::trim) == Some(label));
    let mut changes: Vec<(Span, i64)> = Vec::new();
    for event in mine {
        let at =
            decimal::time(event.attribute("time").unwrap_or("0"), Some(SECOND)).unwrap_or_default();
        let amount = i64::from(amount(*event).unwrap_or(1));
        match event.attribute("action") {
            Some("join") => changes.push((at, amount)),
            Some("leave" | "crash") if reuse => changes.push((at, -amount)),
            _ => {}
        }
    }
    changes.sort_by_key(|(at, _)| *at);
    let (mut now, mut most, mut joins) = (0_i64, 0_i64, false);
    for (_, change) in changes {
        joins |= change > 0;
        now = now.saturating_add(change);
        most = most.max(now);
    }
    joins.then(|| u32::try_from(most).unwrap_or(u32::MAX))
}

/// Events for all that the scenario can express; the rest is reported.
pub(super) fn read(
    experiment: &mut Experiment<'_>,
    events: &[Element<'_, '_>],
    options: &Options,
) -> Result<(), Mistake> {
    let mut timed = Vec::new();
    for event in events {
        let input = experiment.input;
        if event.tag_name().name() != "schedule" {
            return Err(xml::mistake(input, *event, "only <schedule> may stand in <dynamic>"));
        }
        let seconds = |text: &str| decimal::time(text, Some(SECOND));
        match xml::value(input, *event, "time", "a time in s", seconds)? {
            Some(at) => timed.push((at, *event)),
            None => return Err(xml::mistake(input, *event, "this <schedule> has no `time`")),
        }
    }
    timed.sort_by_key(|(at, _)| *at);
    let mut joined = BTreeSet::new();
    for (at, event) in timed {
        if event.attribute("origin").is_some() || event.attribute("dest").is_some() {
            link(experiment, event, at)?;
        } else {
            vertex(experiment, event, at, options.run.is_some(), &mut joined)?;
        }
    }
    reroute(&mut experiment.topology.events);
    Ok(())
}

/// Kollaps computes its paths again whenever a link changes.
fn reroute(events: &mut Vec<Event>) {
    let is_link = |event: &Event| matches!(event.change, Change::State { .. } | Change::Set { .. });
    let times: BTreeSet<Span> = events.iter().filter(|e| is_link(e)).map(|e| e.at).collect();
    events.extend(times.into_iter().map(|at| Event { at, change: Change::Reroute }));
    // Sorting keeps the order of what happens at one time.
    events.sort_by_key(|event| event.at);
}

/// A link changes, leaves or comes back.
fn link(experiment: &mut Experiment<'_>, event: Element<'_, '_>, at: Span) -> Result<(), Mistake> {
    let input = experiment.input;
    let origin = xml::required(input, event, "origin")?;
    let dest = xml::required(input, event, "dest")?;
    let action = event.attribute("action");
    let found = experiment.links.iter().find_map(|known| {
        let ends = (known.origin.as_str(), known.dest.as_str());
        let direction = match ends {
            ends if ends == (origin, dest) => "up",
            ends if ends == (dest, origin) => "down",
            _ => return None,
        };
        Some((known.names.clone(), direction))
    });
    let Some((links, direction)) = found else {
        let text = "Links that join later";
        if action == Some("join") && event.attribute("latency").is_some() {
            let item = format!("{}--{} at {at}", shorten(origin), shorten(dest));
            experiment.topology.notes.lose(text, item);
            return Ok(());
        }
        let message = format!("no link joins `{}` and `{}`", shorten(origin), shorten(dest));
        return Err(xml::mistake(input, event, message));
    };
    let direction = Some(direction);
    match action {
        Some(action @ ("leave" | "join")) => {
            let up = action == "join";
            let change = Change::State { links, direction, up };
            experiment.topology.events.push(Event { at, change });
        }
        Some(other) => {
            let message = format!("action: `{}` is neither join nor leave", shorten(other));
            return Err(xml::mistake(input, event, message));
        }
        None => {
            let set = set(experiment, event)?;
            for link in links {
                let change = Change::Set { link, direction, set: set.clone() };
                experiment.topology.events.push(Event { at, change });
            }
        }
    }
    Ok(())
}

fn set(
    experiment: &Experiment<'_>,
    event: Element<'_, '_>,
) -> Result<Vec<(&'static str, String)>, Mistake> {
    let input = experiment.input;
    let mut set = Vec::new();
    if let Some(latency) = time(input, event, "latency")? {
        set.push(("latency", latency.to_string()));
    }
    if let Some(jitter) = time(input, event, "jitter")? {
        set.push(("jitter", jitter.to_string()));
    }
    if let Some(loss) = loss(input, event)? {
        set.push(("loss", loss.to_string()));
    }
    if let Some(rate) = rate(input, event, "upload")? {
        set.push(("rate", rate.to_string()));
    }
    match set.is_empty() {
        true => Err(xml::mistake(input, event, "this <schedule> changes nothing")),
        false => Ok(set),
    }
}

/// A bridge leaves or joins with all its links; a service is cut off, or its programs start and
/// end.
fn vertex(
    experiment: &mut Experiment<'_>,
    event: Element<'_, '_>,
    at: Span,
    runs: bool,
    joined: &mut BTreeSet<String>,
) -> Result<(), Mistake> {
    let input = experiment.input;
    let label = xml::required(input, event, "name")?;
    let action = xml::required(input, event, "action")?;
    let Some(found) = experiment.vertices.get(label).cloned() else {
        let message = format!("no service or bridge is called `{}`", shorten(label));
        return Err(xml::mistake(input, event, message));
    };
    if !["join", "leave", "crash", "disconnect", "reconnect"].contains(&action) {
        let actions = "join, leave, crash, disconnect or reconnect";
        let message = format!("action: `{}` is not {actions}", shorten(action));
        return Err(xml::mistake(input, event, message));
    }
    let first = action == "join" && joined.insert(label.to_owned());
    let is_bridge = found.node.is_none();
    let whole = is_bridge || amount(event).unwrap_or(1) >= found.replicas;
    let cuts = matches!(action, "disconnect" | "reconnect") || is_bridge;
    match (&found.node, whole) {
        _ if first && at.is_zero() && whole => {}
        (_, true) if cuts => {
            let mine =
                experiment.topology.links.iter().filter(|link| link.between.contains(&found.name));
            let links: Vec<String> = mine.map(automatic).collect();
            if !links.is_empty() {
                let up = matches!(action, "reconnect" | "join");
                let change = Change::State { links, direction: None, up };
                experiment.topology.events.push(Event { at, change });
            }
        }
        (Some(node), true) if runs && first => {
            let nodes = experiment.topology.nodes.iter_mut();
            nodes.filter(|other| other.name == *node).for_each(|node| node.start = at);
        }
        (Some(node), true) if runs => {
            let verb = match action {
                "join" => "restart",
                "leave" => "stop",
                _ => "kill",
            };
            let change = Change::Node { nodes: vec![node.clone()], verb };
            experiment.topology.events.push(Event { at, change });
        }
        _ => {
            let text = "What services do by the schedule, where nothing runs in them (--run gives them a command) \
                        or only some replicas are meant";
            let item =
                format!("{action} of {} at {at}", found.node.as_ref().unwrap_or(&found.name));
            experiment.topology.notes.lose(text, item);
        }
    }
    Ok(())
}

/// The name by which the scenario knows a link.
fn automatic(link: &crate::topology::Link) -> String {
    link.name.clone().unwrap_or_else(|| link.between.join("--"))
}

fn amount(event: Element<'_, '_>) -> Option<u32> {
    event.attribute("amount")?.trim().parse().ok()
}

/// Bare numbers are seconds.
const SECOND: u64 = 1_000_000_000;
