//! Links: groups expanded, defaults applied, ends attached.

mod names;

use std::collections::BTreeMap;

use windtunnel_model::plan::{Link, LinkEnd, NodeInterface, RouterInterface};
use windtunnel_model::profile::{
    JitterDistribution, LossModel, PropertySetting, QueueDiscipline, QueueLimit,
};
use windtunnel_model::{Lane, LinkDirection, LinkId, LinkProfile, NetworkVertex, Plan, PortId};

use super::directory::{Directory, NamedEntity};
use super::expansion::ExpansionBudget;
use crate::decode::{EventDraftKind, LinkDraft, LinkKeys, ScenarioDraft};
use crate::error::{Diagnostics, ScenarioNotice};
use names::LinkNameRegistry;

/// The most links after every group is expanded.
const MOST_LINKS: usize = Plan::LINKS_MAX;

pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &mut Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
) {
    let mut names = LinkNameRegistry::default();
    let mut placed = Vec::new();
    let mut attached = LanAttachments::default();
    for link in &draft.links {
        let ends =
            [&link.between[0], &link.between[1]].map(|name| directory.named(found, name).cloned());
        let [Some(a), Some(b)] = ends else { continue };
        if let Some(pairs) = pairs(found, link, &a, &b) {
            if placed.len() + pairs.len() > MOST_LINKS {
                found.mistake(link.place, format!("here the links become more than {MOST_LINKS}"));
                return;
            }
            if let Some(name) = &link.name {
                let group =
                    matches!(a, NamedEntity::Group(_)) || matches!(b, NamedEntity::Group(_));
                names.reserve(found, &name.value, name.place, group.then_some(pairs.len()));
            }
            attached.check(found, link, &pairs);
            placed.extend(pairs.into_iter().map(|pair| (link, pair)));
        }
    }
    if !found.is_clean() {
        return;
    }
    add_links(found, draft, directory, budget, plan, &mut names, &placed);
    number_ports(plan);
    notice_queues(found, plan);
}

/// The pairs of vertices that one entry joins.
fn pairs(
    found: &mut Diagnostics,
    link: &LinkDraft,
    a: &NamedEntity,
    b: &NamedEntity,
) -> Option<Vec<[NetworkVertex; 2]>> {
    if let (NamedEntity::Group(_), NamedEntity::Group(_)) = (a, b) {
        let [first, second] = [&link.between[0].value, &link.between[1].value];
        let message =
            format!("`{first}` and `{second}` are both groups: which nodes are to be joined?");
        let hint = "join each group to a router, or write a link per pair of members";
        found.mistake_with_hint(link.between[1].place, message, hint);
        return None;
    }
    if let (NamedEntity::Lan(_), NamedEntity::Lan(_)) = (a, b) {
        let [first, second] = [&link.between[0].value, &link.between[1].value];
        let message = if first == second {
            format!("this link joins `{first}` to itself")
        } else {
            format!(
                "`{first}` and `{second}` are both LANs: a link attaches a node or router to one"
            )
        };
        let hint = "join LANs by a router that is attached to both";
        found.mistake_with_hint(link.between[1].place, message, hint);
        return None;
    }
    let mut pairs = Vec::new();
    for first in a.vertices() {
        for second in b.vertices() {
            if first == second {
                let message = format!("this link joins `{}` to itself", link.between[0].value);
                found.mistake(link.between[1].place, message);
                return None;
            }
            pairs.push([first, second]);
        }
    }
    Some(pairs)
}

fn add_links(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &mut Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
    names: &mut LinkNameRegistry,
    placed: &[(&LinkDraft, [NetworkVertex; 2])],
) {
    let rate_comes = draft.events.iter().any(|event| match &event.kind {
        EventDraftKind::Link { set, .. } => {
            ["rate", "trace", "preset"].into_iter().any(|key| set.place(key).is_some())
        }
        _ => false,
    });
    let mut start = 0;
    while start < placed.len() {
        let link = placed[start].0;
        let same = placed[start..].iter().take_while(|(other, _)| std::ptr::eq(*other, link));
        let members = &placed[start..start + same.count()];
        let profiles = profiles(&draft.link_defaults, &link.keys);
        check_keys(found, draft, link, &profiles, rate_comes);
        let weight = profiles.iter().map(weight).sum::<usize>() * members.len();
        if !budget.spend(found, weight, link.place) {
            return;
        }
        let is_group = members.len() > 1
            || members.iter().any(|(_, pair)| {
                let named = [&link.between[0].value, &link.between[1].value];
                pair.iter().zip(named).any(|(vertex, name)| plan.vertex_name(*vertex) != name)
            });
        let origin = origin(&draft.link_defaults, &link.keys, &profiles);
        let mut ids = Vec::new();
        for (index, (_, pair)) in members.iter().enumerate() {
            let name = match &link.name {
                Some(name) if is_group => format!("{}-{}", name.value, index + 1),
                Some(name) => name.value.clone(),
                None => names.automatic(plan.vertex_name(pair[0]), plan.vertex_name(pair[1])),
            };
            let id = LinkId::from_index(plan.links.len());
            directory.add_link(&name, id);
            if let Some(origin) = &origin {
                directory.add_origin(id, origin.clone());
            }
            ids.push(id);
            let ends = [
                attach(plan, pair[0], id, LinkDirection::Up),
                attach(plan, pair[1], id, LinkDirection::Down),
            ];
            plan.links.push(Link { name, ends, profiles: profiles.clone() });
        }
        if is_group {
            let [a, b] = [&link.between[0].value, &link.between[1].value];
            let common = link.name.as_ref().map_or(format!("{a}--{b}"), |name| name.value.clone());
            directory.add_link_group(&common, ids);
        }
        start += members.len();
    }
}

/// Gives a vertex one more interface.
fn attach(plan: &mut Plan, vertex: NetworkVertex, link: LinkId, outward: LinkDirection) -> LinkEnd {
    let (v4, v6) = (None, None);
    let position = match vertex {
        NetworkVertex::Node(id) => {
            let interfaces = &mut plan.nodes[id.index()].interfaces;
            let name = format!("eth{}", interfaces.len());
            let port = PortId(0);
            interfaces.push(NodeInterface { port, name, link, outward, v4, v6, mtu: 0 });
            interfaces.len() - 1
        }
        NetworkVertex::Router(id) => {
            let interfaces = &mut plan.routers[id.index()].interfaces;
            interfaces.push(RouterInterface { link, outward, v4, v6 });
            interfaces.len() - 1
        }
        NetworkVertex::Lan(id) => {
            let attachments = &mut plan.lans[id.index()].attachments;
            attachments.push(Lane { link, direction: outward });
            attachments.len() - 1
        }
    };
    LinkEnd { vertex, interface: u32::try_from(position).unwrap_or(u32::MAX) }
}

/// Ports are dense over the nodes; a device's MTU is the larger of its link's two directions.
fn number_ports(plan: &mut Plan) {
    let mtu = |link: &Link| link.profiles[0].mtu.max(link.profiles[1].mtu);
    let mtus: Vec<u32> = plan.links.iter().map(mtu).collect();
    let interfaces = plan.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
    for (port, interface) in interfaces.enumerate() {
        interface.port = PortId::from_index(port);
        interface.mtu = mtus[interface.link.index()];
    }
}

/// Built-in, then `defaults.link`, then the link's own keys; in each, `up` and `down` win over
/// both.
fn profiles(defaults: &LinkKeys, own: &LinkKeys) -> [LinkProfile; 2] {
    [0, 1].map(|direction| {
        let mut profile = LinkProfile::default();
        defaults.patch(direction).apply_to(&mut profile);
        own.patch(direction).apply_to(&mut profile);
        profile
    })
}

/// What the values of a link come from that are not in the file.
fn origin(defaults: &LinkKeys, own: &LinkKeys, profiles: &[LinkProfile; 2]) -> Option<String> {
    let preset = own.preset.or(defaults.preset).map(|preset| format!("preset {}", preset.name));
    let traced = profiles.iter().any(|profile| !profile.traces.is_none());
    let trace = traced.then(|| "trace".to_owned());
    let parts: Vec<String> = preset.into_iter().chain(trace).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

fn check_keys(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    link: &LinkDraft,
    profiles: &[LinkProfile; 2],
    rate_comes: bool,
) {
    if draft.pools.v6.is_some()
        && let Some(mtu) = profiles.iter().map(|profile| profile.mtu).find(|mtu| *mtu < 1280)
    {
        let own = link.keys.place("mtu");
        let place = own.or(draft.link_defaults.place("mtu")).unwrap_or(link.place);
        let message = format!("mtu: `{mtu}` is less than the 1280 that IPv6 needs (RFC 8200)");
        found.mistake_with_hint(place, message, "raise it, or write `ipv6: false` at the top");
    }
    if let Some(profile) = profiles.iter().find(|profile| !profile.is_sound()) {
        let own = link.keys.place("discipline");
        let place = own.or(draft.link_defaults.place("discipline")).unwrap_or(link.place);
        found.mistake(place, unsound(profile));
    }
    let rated = profiles.iter().any(|profile| profile.rate.is_some());
    for key in ["queue", "overhead", "discipline"] {
        if let (Some(place), false) = (link.keys.place(key), rated || rate_comes) {
            found.notice(place, format!("`{key}` has no effect until this link has a `rate`"));
        }
    }
    let ends = [&link.between[0].value, &link.between[1].value];
    for (direction, other) in [(0, 1), (1, 0)] {
        let (each, missing) = (&link.keys.each[direction], &profiles[other]);
        if each.rate.is_some_and(|rate| rate != PropertySetting::Default) && missing.rate.is_none()
        {
            let (from, to) = (ends[other], ends[1 - other]);
            let message =
                format!("from `{from}` to `{to}` this link has no rate, only the other way");
            found.notice(link.place, message);
        }
    }
}

/// What is wrong with a profile that is not sound.
fn unsound(profile: &LinkProfile) -> String {
    let (QueueDiscipline::Red(red), Some(rate)) = (&profile.discipline, profile.rate) else {
        return "the discipline does not suit this link".to_owned();
    };
    let (min, max) = red.thresholds(profile, rate);
    format!("red: on this link `max` is {max} bytes, which must be more than the {min} of `min`")
}

/// Reports which queue lengths were chosen because the file has none.
fn notice_queues(found: &mut Diagnostics, plan: &Plan) {
    let mut chosen: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for link in &plan.links {
        for (profile, direction) in link.profiles.iter().zip(LinkDirection::BOTH) {
            if let (None, Some(QueueLimit::Packets(packets))) =
                (profile.queue, profile.effective_queue())
            {
                let lanes = chosen.entry(packets.0).or_default();
                lanes.push(format!("{} {}", link.name, direction.name()));
            }
        }
    }
    for (packets, lanes) in chosen {
        let some = lanes.iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match lanes.len().saturating_sub(4) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("queue of {packets} packets by default: {some}{more}");
        found.notices.push(ScenarioNotice { place: None, message });
    }
}

/// What the lists of a profile take, in numbers.
fn weight(profile: &LinkProfile) -> usize {
    let loss = match &profile.loss {
        LossModel::Listed(packets) => packets.len(),
        _ => 0,
    };
    let jitter = match &profile.jitter.distribution {
        JitterDistribution::Table(table) => table.len(),
        _ => 0,
    };
    1 + loss + jitter
}

/// The vertices attached to each LAN, and in which line.
#[derive(Debug, Default)]
struct LanAttachments(BTreeMap<[NetworkVertex; 2], u32>);

impl LanAttachments {
    /// Refuses a second attachment of one vertex: its two interfaces would be of one subnet.
    fn check(&mut self, found: &mut Diagnostics, link: &LinkDraft, pairs: &[[NetworkVertex; 2]]) {
        for pair in pairs {
            if !pair.iter().any(|vertex| matches!(vertex, NetworkVertex::Lan(_))) {
                continue;
            }
            let mut key = *pair;
            key.sort_unstable();
            if let Some(line) = self.0.insert(key, link.place.line) {
                let lan_first = matches!(pair[0], NetworkVertex::Lan(_));
                let [first, second] = [&link.between[0], &link.between[1]];
                let (a, b) = if lan_first { (second, first) } else { (first, second) };
                let message =
                    format!("`{}` is attached to `{}` already, in line {line}", a.value, b.value);
                return found.mistake(a.place, message);
            }
        }
    }
}
