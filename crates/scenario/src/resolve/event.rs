//! Events: names worked out, directions found, sorted by time.

use std::collections::BTreeMap;

use windtunnel_model::plan::{Action, Event, LinkChange, NodeVerb};
use windtunnel_model::{Direction, Lane, LinkId, NodeId, Plan, Vertex};

use super::Budget;
use super::directory::{Directory, file_name};
use crate::decode::{At, Draft, EventDraft, EventKind, LinkKeys};
use crate::error::Findings;
use crate::position::Place;
use crate::text::shorten;

pub(super) fn resolve(
    found: &mut Findings,
    draft: &Draft,
    directory: &Directory,
    budget: &mut Budget,
    plan: &mut Plan,
) {
    let mut events = Vec::new();
    for event in &draft.events {
        if let Some(duration) = draft.duration
            && event.at.value > duration
        {
            let message =
                format!("this event at {} is later than the end at {duration}", event.at.value);
            found.notice(event.at.place, message);
        }
        let Some(action) = action(found, draft, event, directory, budget, plan) else { continue };
        events.push(Event { at: event.at.value, action });
    }
    events.sort_by_key(|event| event.at);
    plan.events = events;
}

fn action(
    found: &mut Findings,
    draft: &Draft,
    event: &EventDraft,
    directory: &Directory,
    budget: &mut Budget,
    plan: &Plan,
) -> Option<Action> {
    match &event.kind {
        EventKind::Heal => Some(Action::Heal),
        EventKind::Reroute => Some(Action::Reroute),
        EventKind::Route(route) => {
            let change = super::route::change(found, route, directory, budget, plan)?;
            Some(Action::Route(change))
        }
        EventKind::Node { nodes, verb } => {
            let nodes = members(found, directory, plan, nodes, *verb)?;
            budget
                .spend(found, nodes.len(), event.place)
                .then_some(Action::Node { nodes, verb: *verb })
        }
        EventKind::Partition { place, groups } => {
            let groups = partition(found, directory, plan, groups)?;
            let count = groups.iter().map(Vec::len).sum();
            budget.spend(found, count, *place).then_some(Action::Partition { groups })
        }
        EventKind::Link { links, direction, set, state } => {
            check_mtu(found, draft, set);
            let mut lanes = Vec::new();
            for name in links {
                lanes.extend(self::lanes(found, directory, plan, name, direction.as_ref())?);
            }
            lanes.sort_unstable();
            lanes.dedup();
            if !budget.spend(found, lanes.len(), event.place) {
                return None;
            }
            check_direction(found, event.place, direction.as_ref(), set)?;
            Some(Action::Link(change(set, *state, &lanes)))
        }
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

fn check_mtu(found: &mut Findings, draft: &Draft, set: &LinkKeys) {
    let mtus = [set.patch(0).mtu, set.patch(1).mtu];
    if let (true, Some(mtu), Some(place)) = (
        draft.pools.v6.is_some(),
        mtus.into_iter().flatten().find(|mtu| *mtu < 1280),
        set.place("mtu"),
    ) {
        let message = format!("mtu: `{mtu}` is less than the 1280 that IPv6 needs (RFC 8200)");
        found.mistake_with_hint(place, message, "raise it, or write `ipv6: false` at the top");
    }
}

/// With `direction`, what is set for the other direction would be lost.
fn check_direction(
    found: &mut Findings,
    place: Place,
    direction: Option<&At<String>>,
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
    found: &mut Findings,
    directory: &Directory,
    plan: &Plan,
    name: &At<String>,
    direction: Option<&At<String>>,
) -> Option<Vec<Lane>> {
    let links = directory.links(found, name)?;
    let mut lanes = Vec::new();
    for link in links {
        let both = Direction::BOTH.map(|direction| Lane { link: *link, direction });
        match direction {
            None => lanes.extend(both),
            Some(asked) => lanes.push(one_way(found, plan, *link, both, asked)?),
        }
    }
    Some(lanes)
}

fn one_way(
    found: &mut Findings,
    plan: &Plan,
    link: LinkId,
    both: [Lane; 2],
    asked: &At<String>,
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
        [] => format!("`{}` is no direction of `{name}`", shorten(&asked.value)),
        _ => format!("`{}` may be either direction of `{name}`", shorten(&asked.value)),
    };
    found.mistake_with_hint(asked.place, message, hint);
    None
}

fn members(
    found: &mut Findings,
    directory: &Directory,
    plan: &Plan,
    names: &[At<String>],
    verb: NodeVerb,
) -> Option<Vec<NodeId>> {
    let mut nodes = Vec::new();
    for name in names {
        let these = directory.nodes(found, name)?;
        if these.iter().all(|id| plan.nodes[id.index()].programs.is_empty()) {
            let verb = match verb {
                NodeVerb::Kill => "kill",
                NodeVerb::Stop => "stop",
                NodeVerb::Pause => "pause",
                NodeVerb::Resume => "resume",
                NodeVerb::Restart => "restart",
            };
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
    found: &mut Findings,
    directory: &Directory,
    plan: &Plan,
    groups: &[Vec<At<String>>],
) -> Option<Vec<Vec<Vertex>>> {
    let mut owners: BTreeMap<Vertex, usize> = BTreeMap::new();
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
