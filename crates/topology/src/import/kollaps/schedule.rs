//! The schedule: changes of links, and of services where that can be said.

use std::collections::BTreeSet;

use roxmltree::Node as Element;
use windtunnel_model::plan::NodeVerb;
use windtunnel_model::{LinkDirection, Probability, Rate, Span};
use windtunnel_scenario::ScenarioMistake;

use super::super::delay::DelayDistribution;
use super::super::input::shorten;
use super::super::{decimal, xml};
use super::Experiment;
use super::link::{KollapsLink, KollapsLinkDirection, loss, rate, time};
use crate::import::options::ImportOptions;
use crate::topology::{ConversionReport, TopologyChange, TopologyEvent};

/// Attributes that are understood.
const KNOWN: [&str; 11] = [
    "time", "name", "action", "amount", "origin", "dest", "latency", "jitter", "drop", "upload",
    "download",
];

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
    options: &ImportOptions,
) -> Result<(), ScenarioMistake> {
    let mut timed = Vec::new();
    for event in events {
        let input = experiment.input;
        if event.tag_name().name() != "schedule" {
            return Err(xml::mistake(input, *event, "only <schedule> may stand in <dynamic>"));
        }
        experiment.known_only(*event, &KNOWN, "the schedule");
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
fn reroute(events: &mut Vec<TopologyEvent>) {
    let is_link = |event: &TopologyEvent| {
        matches!(event.change, TopologyChange::State { .. } | TopologyChange::Set { .. })
    };
    let times: BTreeSet<Span> = events.iter().filter(|e| is_link(e)).map(|e| e.at).collect();
    events
        .extend(times.into_iter().map(|at| TopologyEvent { at, change: TopologyChange::Reroute }));
    // Sorting keeps the order of what happens at one time.
    events.sort_by_key(|event| event.at);
}

/// A link changes, leaves or comes back.
fn link(
    experiment: &mut Experiment<'_>,
    event: Element<'_, '_>,
    at: Span,
) -> Result<(), ScenarioMistake> {
    let input = experiment.input;
    let origin = xml::required(input, event, "origin")?;
    let dest = xml::required(input, event, "dest")?;
    let action = event.attribute("action");
    let joins = |known: &KollapsLink| {
        let [first, second] = known.ends.each_ref().map(String::as_str);
        [(first, second), (second, first)].contains(&(origin, dest))
    };
    if !experiment.links.iter().any(joins) {
        if action == Some("join") && event.attribute("latency").is_some() {
            let item = format!("{}--{} at {at}", shorten(origin), shorten(dest));
            experiment.topology.notes.lose("Links that join later", item);
            return Ok(());
        }
        let message = format!("no link joins `{}` and `{}`", shorten(origin), shorten(dest));
        return Err(xml::mistake(input, event, message));
    }
    let up = match action {
        Some("leave") => Some(false),
        Some("join") => Some(true),
        None => None,
        Some(other) => {
            let message = format!("action: `{}` is neither join nor leave", shorten(other));
            return Err(xml::mistake(input, event, message));
        }
    };
    let new = KollapsLinkChange::read(experiment, event)?;
    if up.is_none() && new == KollapsLinkChange::default() {
        return Err(xml::mistake(input, event, "this <schedule> changes nothing"));
    }
    let Experiment { links, topology, .. } = experiment;
    for known in links.iter_mut().filter(|known| joins(known)) {
        let back = known.ends[0] != origin;
        if known.is_one_way && back {
            let item = format!("{}--{} at {at}", shorten(origin), shorten(dest));
            topology.notes.lose("Changes of a direction that the file has no link for", item);
            continue;
        }
        let changes = match up {
            Some(up) => {
                let direction =
                    (!known.is_one_way).then_some(LinkDirection::BOTH[usize::from(back)]);
                vec![TopologyChange::State { links: known.names.clone(), direction, up }]
            }
            None => new.change(known, back, &mut topology.notes),
        };
        topology.events.extend(changes.into_iter().map(|change| TopologyEvent { at, change }));
    }
    Ok(())
}

/// What a link changes to. The way back changes as well where `download` is given, as in Kollaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct KollapsLinkChange {
    latency: Option<Span>,
    jitter: Option<Span>,
    loss: Option<Probability>,
    upload: Option<Rate>,
    download: Option<Rate>,
}

impl KollapsLinkChange {
    fn read(
        experiment: &Experiment<'_>,
        event: Element<'_, '_>,
    ) -> Result<KollapsLinkChange, ScenarioMistake> {
        let input = experiment.input;
        Ok(KollapsLinkChange {
            latency: time(input, event, "latency")?,
            jitter: time(input, event, "jitter")?,
            loss: loss(input, event)?,
            upload: rate(input, event, "upload")?,
            download: rate(input, event, "download")?,
        })
    }

    /// The changes of a link; `back`: the file names its ends the other way round.
    fn change(
        self,
        known: &mut KollapsLink,
        back: bool,
        notes: &mut ConversionReport,
    ) -> Vec<TopologyChange> {
        let (out, way_back) = (usize::from(back), usize::from(!back));
        let mut sets = [const { Vec::new() }; 2];
        sets[out] = self.set(&mut known.ways[out], self.upload);
        if self.download.is_some() {
            sets[way_back] = self.set(&mut known.ways[way_back], self.download);
        }
        known.ways[out].delay.note(notes, &known.ends.join("--"));
        let whole = known.is_one_way || sets[0] == sets[1];
        let chosen = match whole {
            true => vec![(None, std::mem::take(&mut sets[out]))],
            false => LinkDirection::BOTH.into_iter().map(Some).zip(sets).collect(),
        };
        let mut changes = Vec::new();
        for (direction, set) in chosen.into_iter().filter(|(_, set)| !set.is_empty()) {
            for link in known.names.clone() {
                changes.push(TopologyChange::Set { link, direction, set: set.clone() });
            }
        }
        changes
    }

    /// The keys that change in one direction, which then is `way`.
    fn set(
        self,
        way: &mut KollapsLinkDirection,
        rate: Option<Rate>,
    ) -> Vec<(&'static str, String)> {
        let mut set = Vec::new();
        if self.latency.is_some() || self.jitter.is_some() {
            let DelayDistribution { mean, jitter, shape } = way.delay;
            let mean = self.latency.unwrap_or(mean);
            let delay = DelayDistribution { mean, jitter: self.jitter.unwrap_or(jitter), shape };
            set = delay.changes(way.delay, true);
            way.delay = delay;
        }
        if let Some(loss) = self.loss {
            set.push(("loss", loss.to_string()));
            way.loss = loss;
        }
        if let Some(rate) = rate {
            set.push(("rate", rate.to_string()));
            way.rate = rate;
        }
        set
    }
}

/// What happens to a service or a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KollapsVertexAction {
    Join,
    Leave,
    Crash,
    Disconnect,
    Reconnect,
}

impl KollapsVertexAction {
    fn of(name: &str) -> Option<KollapsVertexAction> {
        let all = [
            KollapsVertexAction::Join,
            KollapsVertexAction::Leave,
            KollapsVertexAction::Crash,
            KollapsVertexAction::Disconnect,
            KollapsVertexAction::Reconnect,
        ];
        all.into_iter().find(|action| action.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            KollapsVertexAction::Join => "join",
            KollapsVertexAction::Leave => "leave",
            KollapsVertexAction::Crash => "crash",
            KollapsVertexAction::Disconnect => "disconnect",
            KollapsVertexAction::Reconnect => "reconnect",
        }
    }

    /// Whether it is about the links of a service, and not its programs.
    fn is_of_links(self) -> bool {
        matches!(self, KollapsVertexAction::Disconnect | KollapsVertexAction::Reconnect)
    }

    fn brings_back(self) -> bool {
        matches!(self, KollapsVertexAction::Reconnect | KollapsVertexAction::Join)
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
) -> Result<(), ScenarioMistake> {
    let input = experiment.input;
    let label = xml::required(input, event, "name")?;
    let action = xml::required(input, event, "action")?;
    let Some(found) = experiment.vertices.get(label).cloned() else {
        let message = format!("no service or bridge is called `{}`", shorten(label));
        return Err(xml::mistake(input, event, message));
    };
    let Some(action) = KollapsVertexAction::of(action) else {
        let actions = "join, leave, crash, disconnect or reconnect";
        let message = format!("action: `{}` is not {actions}", shorten(action));
        return Err(xml::mistake(input, event, message));
    };
    let first = action == KollapsVertexAction::Join && joined.insert(label.to_owned());
    let is_bridge = found.node.is_none();
    let whole = is_bridge || amount(event).unwrap_or(1) >= found.replicas;
    let cuts = action.is_of_links() || is_bridge;
    match (&found.node, whole) {
        _ if first && at.is_zero() && whole => {}
        (_, true) if cuts => {
            let mine =
                experiment.topology.links.iter().filter(|link| link.between.contains(&found.name));
            let links: Vec<String> = mine.map(automatic).collect();
            if !links.is_empty() {
                let up = action.brings_back();
                let change = TopologyChange::State { links, direction: None, up };
                experiment.topology.events.push(TopologyEvent { at, change });
            }
        }
        (Some(node), true) if runs && first => {
            let nodes = experiment.topology.nodes.iter_mut();
            nodes.filter(|other| other.name == *node).for_each(|node| node.start = at);
        }
        (Some(node), true) if runs => {
            let verb = match action {
                KollapsVertexAction::Join => NodeVerb::Restart,
                KollapsVertexAction::Leave => NodeVerb::Stop,
                _ => NodeVerb::Kill,
            };
            let change = TopologyChange::Node { nodes: vec![node.clone()], verb };
            experiment.topology.events.push(TopologyEvent { at, change });
        }
        _ => {
            let text = "What services do by the schedule, where nothing runs in them (--run gives them a command) \
                        or only some replicas are meant";
            let action = action.name();
            let item =
                format!("{action} of {} at {at}", found.node.as_ref().unwrap_or(&found.name));
            experiment.topology.notes.lose(text, item);
        }
    }
    Ok(())
}

/// The name by which the scenario knows a link.
fn automatic(link: &crate::topology::TopologyLink) -> String {
    link.name.clone().unwrap_or_else(|| link.between.join("--"))
}

fn amount(event: Element<'_, '_>) -> Option<u32> {
    event.attribute("amount")?.trim().parse().ok()
}

/// Bare numbers are seconds.
const SECOND: u64 = 1_000_000_000;
