//! Events: names worked out, directions found, sorted by time.

use std::collections::BTreeMap;

use windtunnel_model::plan::{EventAction, LinkChange, PartitionMode, ScheduledEvent};
use windtunnel_model::{Lane, NetworkVertex, Plan, Span};

use super::amount::chosen;
use super::directory::Directory;
use super::end::RepetitionEnd;
use super::expansion::{ExpansionBudget, weight};
use super::scene::Scene;
use super::timeline::EventTimeline;
use crate::decode::{EventDraft, EventDraftKind, LinkKeys, PartitionDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation};
use crate::source::{ReadFile, ScenarioSource};

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
        EventDraftKind::Partition(_) => timeline.parted.insert(at, event.place),
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
            let mut nodes = scene.members(found, nodes, verb.name())?;
            if let Some(some) = some {
                nodes = chosen(found, nodes, some, *verb, scene.now + at, plan)?;
            }
            EventAction::Node { nodes, verb: *verb }
        }
        EventDraftKind::Limit { nodes, limits } => {
            let nodes = scene.members(found, nodes, "limit")?;
            EventAction::Limit { nodes, limits: *limits }
        }
        EventDraftKind::Partition(PartitionDraft { groups, cut: PartitionMode::Pairs, .. }) => {
            let mut all = Vec::new();
            for pair in groups.chunks(2) {
                let sides = partition(found, directory, plan, pair)?;
                let place = pair.first().and_then(|side| side.first()).map(|name| name.place);
                notice_idle(found, plan, &sides, place.unwrap_or(event.place));
                all.extend(sides);
            }
            EventAction::Partition { groups: all, cut: PartitionMode::Pairs }
        }
        EventDraftKind::Partition(PartitionDraft { place, groups, cut }) => {
            let groups = partition(found, directory, plan, groups)?;
            notice_idle(found, plan, &groups, *place);
            EventAction::Partition { groups, cut: *cut }
        }
        EventDraftKind::Link { links, direction, set, state } => {
            check_mtu(found, plan, set);
            super::model::check_keys(found, plan, scene.why, set);
            let lanes = scene.lanes(found, links, direction.as_ref())?;
            check_direction(found, event.place, direction.as_ref(), set)?;
            EventAction::Link(change(set, *state, &lanes))
        }
        EventDraftKind::Service(event) => super::service::change(found, event, scene)?,
        EventDraftKind::Flap(_) | EventDraftKind::Churn(_) => return None,
    };
    budget.spend(found, 1 + weight(&action), event.place).then_some(action)
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
