//! Events: names worked out, directions found, sorted by time.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::plan::{EventAction, LinkChange, PartitionMode, ScheduledEvent};
use windtunnel_model::{Lane, LinkDirection, LinkId, NetworkVertex, NodeId, Plan, Span};

use super::ExpansionBudget;
use super::amount::chosen;
use super::directory::{Directory, file_name};
use super::end::RepetitionEnd;
use crate::decode::{
    EventDraft, EventDraftKind, LinkKeys, LocatedValue, PathModelReason, ScenarioDraft,
};
use crate::error::Diagnostics;
use crate::position::SourceLocation;
use crate::text::shorten;
use crate::{ReadFile, ScenarioSource};

/// What events are resolved against.
pub(crate) struct Scene<'a> {
    pub(super) directory: &'a Directory,
    pub(super) plan: &'a Plan,
    /// Why the plan's network model is paths, if it is.
    pub(super) why: PathModelReason,
    /// The text in which the events stand, for places inside of it.
    pub(super) text: &'a str,
    pub(super) files: &'a ReadFile<'a>,
    /// When the events are seen: the beginning of the run, or now.
    pub(super) now: Span,
    /// The nodes outside the population now; `None`: the run has not begun.
    pub(super) absent: Option<&'a BTreeSet<NodeId>>,
    /// The nodes that events make replicas, each with its service.
    pub(super) added: &'a [(String, NodeId)],
}

/// Events while they are worked out.
#[derive(Debug, Default)]
pub(super) struct EventTimeline {
    pub(super) events: Vec<ScheduledEvent>,
    /// The nodes that take part in a churn, and whether it is by a script or a trace.
    pub(super) churned: BTreeMap<NodeId, bool>,
    /// By their times, the places of events that begin a partition.
    parted: BTreeMap<Span, SourceLocation>,
    /// Events of which it has been said that they undo another one's partition.
    replaces: BTreeSet<SourceLocation>,
}

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    source: &ScenarioSource<'_>,
    files: &ReadFile<'_>,
    directory: &Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
) {
    let text = String::from_utf8_lossy(source.text);
    let why = draft.model.why;
    let added = &super::service::added(draft, directory);
    let (text, now, absent) = (&text, Span::ZERO, None);
    let scene = Scene { directory, plan, why, text, files, now, absent, added };
    let mut timeline = EventTimeline::default();
    for event in &draft.events {
        if let Some(duration) = draft.duration
            && event.at.value > duration
        {
            let message =
                format!("this event at {} is later than the end at {duration}", event.at.value);
            found.notice(event.at.place, message);
        }
        expand(found, event, &scene, budget, &mut timeline);
    }
    // What is absent from the beginning is so before anything starts.
    let absent = |event: &ScheduledEvent| matches!(event.action, EventAction::Absent { .. });
    timeline.events.sort_by_key(|event| (!absent(event), event.at));
    plan.events = timeline.events;
}

/// Everything that one event of the file comes to.
pub(super) fn expand(
    found: &mut Diagnostics,
    event: &EventDraft,
    scene: &Scene<'_>,
    budget: &mut ExpansionBudget,
    timeline: &mut EventTimeline,
) -> Option<()> {
    match &event.kind {
        EventDraftKind::Flap(flap) => {
            return super::flap::expand(found, event, flap, scene, budget, timeline);
        }
        EventDraftKind::Churn(churn) => {
            return super::churn::expand(found, event, churn, scene, budget, timeline);
        }
        _ => {}
    }
    let at = event.at.value;
    let first = action(found, event, at, scene, budget)?;
    let Some(repeat) = &event.repeat else {
        notice_replaced(found, event, at, timeline);
        timeline.events.push(ScheduledEvent { at, action: first });
        return Some(());
    };
    // Only what is chosen anew is another action the next time.
    let is_chosen = matches!(event.kind, EventDraftKind::Node { some: Some(_), .. });
    let end = RepetitionEnd::of(found, event, &repeat.end, scene)?;
    budget.announce(found, end.repetitions(at, repeat.every.value), repeat.every.place)?;
    let mut at = at;
    for _ in 0..end.times {
        if at >= end.at {
            break;
        }
        let action = match is_chosen {
            true => action(found, event, at, scene, budget)?,
            false if budget.spend(found, 1 + weight(&first), event.place) => first.clone(),
            false => return None,
        };
        notice_replaced(found, event, at, timeline);
        timeline.events.push(ScheduledEvent { at, action });
        at = at + repeat.every.value;
    }
    Some(())
}

/// Of two partitions that begin at one instant the first does nothing, nor one that is ended at the
/// instant at which it begins: events of one time take effect in the order of the file.
fn notice_replaced(
    found: &mut Diagnostics,
    event: &EventDraft,
    at: Span,
    timeline: &mut EventTimeline,
) {
    let before = match event.kind {
        EventDraftKind::Partition { .. } => timeline.parted.insert(at, event.place),
        EventDraftKind::Heal => timeline.parted.remove(&at),
        _ => return,
    };
    let Some(before) = before.filter(|_| timeline.replaces.insert(event.place)) else { return };
    let (what, instead) = match event.kind {
        EventDraftKind::Heal => ("ends", "heal it at a later time"),
        _ => ("takes the place of", "write one partition with more groups, or with `pairs`"),
    };
    let message = format!(
        "this {what} the partition of line {}, at {at} as well, which so cuts nothing: {instead}",
        before.line
    );
    found.notice(event.place, message);
}

/// What one occurrence of an event does.
fn action(
    found: &mut Diagnostics,
    event: &EventDraft,
    at: Span,
    scene: &Scene<'_>,
    budget: &mut ExpansionBudget,
) -> Option<EventAction> {
    let (directory, plan) = (scene.directory, scene.plan);
    let action = match &event.kind {
        EventDraftKind::Heal => EventAction::Heal,
        EventDraftKind::Reroute => EventAction::Reroute,
        EventDraftKind::Route(route) => {
            EventAction::Route(super::route::change(found, route, directory, budget, plan)?)
        }
        EventDraftKind::Node { nodes, verb, some } => {
            let mut nodes = members(found, directory, plan, nodes, verb.name())?;
            if let Some(some) = some {
                nodes = chosen(found, nodes, some, *verb, scene.now + at, plan)?;
            }
            EventAction::Node { nodes, verb: *verb }
        }
        EventDraftKind::Limit { nodes, limits } => {
            let nodes = members(found, directory, plan, nodes, "limit")?;
            EventAction::Limit { nodes, limits: *limits }
        }
        EventDraftKind::Partition { groups, cut: PartitionMode::Pairs, .. } => {
            let mut all = Vec::new();
            for pair in groups.chunks(2) {
                let sides = partition(found, directory, plan, pair)?;
                let place = pair.first().and_then(|side| side.first()).map(|name| name.place);
                notice_idle(found, plan, &sides, place.unwrap_or(event.place));
                all.extend(sides);
            }
            EventAction::Partition { groups: all, cut: PartitionMode::Pairs }
        }
        EventDraftKind::Partition { place, groups, cut } => {
            let groups = partition(found, directory, plan, groups)?;
            notice_idle(found, plan, &groups, *place);
            EventAction::Partition { groups, cut: *cut }
        }
        EventDraftKind::Link { links, direction, set, state } => {
            check_mtu(found, plan, set);
            super::model::check_keys(found, plan, scene.why, set);
            let lanes = all_lanes(found, scene, links, direction.as_ref())?;
            check_direction(found, event.place, direction.as_ref(), set)?;
            EventAction::Link(change(set, *state, &lanes))
        }
        EventDraftKind::Service(event) => super::service::change(found, event, scene)?,
        EventDraftKind::Flap(_) | EventDraftKind::Churn(_) => return None,
    };
    budget.spend(found, 1 + weight(&action), event.place).then_some(action)
}

/// The lanes of several links.
pub(super) fn all_lanes(
    found: &mut Diagnostics,
    scene: &Scene<'_>,
    links: &[LocatedValue<String>],
    direction: Option<&LocatedValue<String>>,
) -> Option<Vec<Lane>> {
    let mut all = Vec::new();
    for name in links {
        all.extend(lanes(found, scene.directory, scene.plan, name, direction)?);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// How many things an action is about.
pub(super) fn weight(action: &EventAction) -> usize {
    match action {
        EventAction::Link(change) => change.patches.len() + change.state.len(),
        EventAction::Flap { lanes, .. } => lanes.len(),
        EventAction::Node { nodes, .. }
        | EventAction::Absent { nodes }
        | EventAction::Limit { nodes, .. } => nodes.len(),
        EventAction::Churn { leave, join, .. } => leave.len() + join.len(),
        EventAction::Partition { groups, .. } => groups.iter().map(Vec::len).sum(),
        EventAction::Route(change) => {
            let paths = change.fix.iter().map(|route| route.path.len());
            change.release.len() + paths.sum::<usize>()
        }
        EventAction::Service(changes) => changes.len(),
        EventAction::Heal | EventAction::Reroute => 0,
    }
}

/// A partition whose sides have no link between them, and no LAN in common, does nothing, which is
/// hardly meant.
fn notice_idle(
    found: &mut Diagnostics,
    plan: &Plan,
    groups: &[Vec<NetworkVertex>],
    place: SourceLocation,
) {
    let owners: BTreeMap<NetworkVertex, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(index, group)| group.iter().map(move |vertex| (*vertex, index)))
        .collect();
    let cuts = plan.links.iter().any(|link| {
        let [a, b] = link.ends.map(|end| owners.get(&end.vertex));
        a.is_some() && b.is_some() && a != b
    });
    let parts = plan.lans.iter().any(|lan| {
        let far = lan.attachments.iter().map(|lane| plan.lane_end(*lane));
        let sides: Vec<usize> = far.filter_map(|vertex| owners.get(&vertex).copied()).collect();
        sides.iter().any(|side| *side != sides[0])
    });
    if !cuts && !parts {
        let message = "this partition cuts no link: no link joins its sides directly; name the \
                       routers between them on one side";
        found.notice(place, message);
    }
}

fn change(set: &LinkKeys, state: Option<bool>, lanes: &[Lane]) -> LinkChange {
    let patches = [set.patch(0), set.patch(1)];
    let patched = lanes.iter().map(|lane| (*lane, &patches[lane.direction.index()]));
    LinkChange {
        patches: patched
            .filter(|(_, patch)| !patch.is_empty())
            .map(|(lane, patch)| (lane, patch.clone()))
            .collect(),
        state: state.into_iter().flat_map(|up| lanes.iter().map(move |l| (*l, up))).collect(),
    }
}

fn check_mtu(found: &mut Diagnostics, plan: &Plan, set: &LinkKeys) {
    let has_v6 = plan.ports().any(|(_, interface)| interface.v6.is_some());
    let mtus = [set.patch(0).mtu, set.patch(1).mtu];
    if let (true, Some(mtu), Some(place)) =
        (has_v6, mtus.into_iter().flatten().find(|mtu| *mtu < 1280), set.place("mtu"))
    {
        let message = format!("mtu: `{mtu}` is less than the 1280 that IPv6 needs (RFC 8200)");
        found.mistake_with_hint(place, message, "raise it, or write `ipv6: false` at the top");
    }
}

/// With `direction`, what is set for the other direction would be lost.
fn check_direction(
    found: &mut Diagnostics,
    place: SourceLocation,
    direction: Option<&LocatedValue<String>>,
    set: &LinkKeys,
) -> Option<()> {
    let each = set.each.iter().any(|patch| !patch.is_empty());
    if direction.is_some() && each {
        let message = "`direction` and `set: {up: …, down: …}` both say which way";
        found.mistake_with_hint(place, message, "leave one of them out");
        return None;
    }
    Some(())
}

/// The lanes of the links called `name`, of one direction if that is given.
pub(super) fn lanes(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    name: &LocatedValue<String>,
    direction: Option<&LocatedValue<String>>,
) -> Option<Vec<Lane>> {
    let links = directory.links(found, name)?;
    let mut lanes = Vec::new();
    for link in links {
        let both = LinkDirection::BOTH.map(|direction| Lane { link: *link, direction });
        match direction {
            None => lanes.extend(both),
            Some(asked) => lanes.push(one_way(found, plan, *link, both, asked)?),
        }
    }
    Some(lanes)
}

fn one_way(
    found: &mut Diagnostics,
    plan: &Plan,
    link: LinkId,
    both: [Lane; 2],
    asked: &LocatedValue<String>,
) -> Option<Lane> {
    let ways = both.map(|lane| {
        let (from, to) = (plan.lane_start(lane), plan.lane_end(lane));
        let common = format!("{}-{}", file_name(plan, from), file_name(plan, to));
        (lane, plan.lane_name(lane), common)
    });
    let matches = |(lane, name, common): &&(Lane, String, String)| {
        [lane.direction.name(), name, common].contains(&asked.value.as_str())
    };
    let fitting: Vec<Lane> = ways.iter().filter(matches).map(|(lane, ..)| *lane).collect();
    let name = &plan.links[link.index()].name;
    let hint = format!("write `up` (`{}`) or `down` (`{}`)", ways[0].1, ways[1].1);
    let message = match fitting.as_slice() {
        [lane] => return Some(*lane),
        [] => format!("`{}` is not a direction of `{name}`", shorten(&asked.value)),
        _ => format!("`{}` may be either direction of `{name}`", shorten(&asked.value)),
    };
    found.mistake_with_hint(asked.place, message, hint);
    None
}

/// All nodes of these names; `verb` says what their programs are needed for.
pub(super) fn members(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    names: &[LocatedValue<String>],
    verb: &str,
) -> Option<Vec<NodeId>> {
    let mut nodes = Vec::new();
    for name in names {
        let these = directory.nodes(found, name)?;
        if these.iter().all(|id| plan.nodes[id.index()].programs.is_empty()) {
            let message = format!("`{}` has no program to {verb}", name.value);
            found.mistake(name.place, message);
            return None;
        }
        nodes.extend(these);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Some(nodes)
}

fn partition(
    found: &mut Diagnostics,
    directory: &Directory,
    plan: &Plan,
    groups: &[Vec<LocatedValue<String>>],
) -> Option<Vec<Vec<NetworkVertex>>> {
    let mut owners: BTreeMap<NetworkVertex, usize> = BTreeMap::new();
    let mut resolved = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut vertices = Vec::new();
        for name in group {
            for vertex in directory.named(found, name)?.vertices() {
                match owners.insert(vertex, index) {
                    None => vertices.push(vertex),
                    Some(other) if other == index => {}
                    Some(_) => {
                        let vertex = plan.vertex_name(vertex);
                        let message = format!("`{vertex}` is on two sides of the partition");
                        found.mistake(name.place, message);
                        return None;
                    }
                }
            }
        }
        resolved.push(vertices);
    }
    Some(resolved)
}
