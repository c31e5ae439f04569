//! What each name denotes: nodes, groups, routers, links.

use std::collections::BTreeMap;
use std::ops::Range;

use windtunnel_model::name::{LABEL_LETTERS_MAX, LabelError, check_label};
use windtunnel_model::{LanId, LinkId, NetworkVertex, NodeId, Plan, RouterId};

use crate::decode::{MOST_NODES, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation};
use crate::text::{nearest, shorten};

/// The names of the file.
#[derive(Debug, Default)]
pub(super) struct Directory {
    names: BTreeMap<String, NamedEntity>,
    places: BTreeMap<String, SourceLocation>,
    links: BTreeMap<String, Vec<LinkId>>,
    /// By the first node of each entry of `nodes`: the entry's position.
    entries: BTreeMap<NodeId, usize>,
    /// Links whose values are not in the file but come from a preset or a trace, with its name.
    pub(super) origins: Vec<(LinkId, String)>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamedEntity {
    /// One node.
    Node(NodeId),
    /// All that `count` made of one node: positions among the nodes.
    Group(Range<u32>),
    /// A router.
    Router(RouterId),
    /// A LAN.
    Lan(LanId),
    /// A reservation, which is no place in the network.
    Reservation,
    /// A service, which is none either.
    Service,
}

impl NamedEntity {
    /// All vertices of that name.
    pub(super) fn vertices(&self) -> Vec<NetworkVertex> {
        match self {
            NamedEntity::Node(id) => vec![NetworkVertex::Node(*id)],
            NamedEntity::Group(range) => {
                range.clone().map(|id| NetworkVertex::Node(NodeId(id))).collect()
            }
            NamedEntity::Router(id) => vec![NetworkVertex::Router(*id)],
            NamedEntity::Lan(id) => vec![NetworkVertex::Lan(*id)],
            NamedEntity::Reservation | NamedEntity::Service => Vec::new(),
        }
    }

    /// All nodes of that name; `None` for a router or LAN.
    pub(super) fn nodes(&self) -> Option<Vec<NodeId>> {
        match self {
            NamedEntity::Node(id) => Some(vec![*id]),
            NamedEntity::Group(range) => Some(range.clone().map(NodeId).collect()),
            NamedEntity::Router(_)
            | NamedEntity::Lan(_)
            | NamedEntity::Reservation
            | NamedEntity::Service => None,
        }
    }

    /// What kind of thing it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            NamedEntity::Node(_) => "node",
            NamedEntity::Group(_) => "group",
            NamedEntity::Router(_) => "router",
            NamedEntity::Lan(_) => "LAN",
            NamedEntity::Reservation => "reservation",
            NamedEntity::Service => "service",
        }
    }
}

impl Directory {
    /// Names every node, member, router and LAN of `draft`.
    pub(super) fn new(found: &mut Diagnostics, draft: &ScenarioDraft) -> Self {
        let mut directory = Directory::default();
        let mut next = 0u32;
        for (entry, node) in draft.nodes.iter().enumerate() {
            let count = node.count.as_ref().map_or(1, |count| count.value);
            if u64::from(next) + count > MOST_NODES {
                let place = node.count.as_ref().map_or(node.name.place, |count| count.place);
                found.mistake(place, format!("here the nodes become more than {MOST_NODES}"));
                return directory;
            }
            let first = next;
            directory.entries.insert(NodeId(first), entry);
            next += u32::try_from(count).unwrap_or(u32::MAX);
            if !check_name(
                found,
                &node.name,
                "a node",
                LABEL_LETTERS_MAX - count_digits(node.count.is_some()),
            ) {
                continue;
            }
            if node.count.is_none() {
                directory.add(
                    found,
                    &node.name.value,
                    node.name.place,
                    NamedEntity::Node(NodeId(first)),
                );
                continue;
            }
            let group = NamedEntity::Group(first..next);
            directory.add(found, &node.name.value, node.name.place, group);
            for (member, id) in (1..).zip(first..next) {
                let name = format!("{}-{member}", node.name.value);
                directory.add(found, &name, node.name.place, NamedEntity::Node(NodeId(id)));
            }
        }
        for (index, router) in draft.routers.iter().enumerate() {
            let name = &router.name;
            if check_name(found, name, "a router", LABEL_LETTERS_MAX) {
                let named = NamedEntity::Router(RouterId::from_index(index));
                directory.add(found, &name.value, name.place, named);
            }
        }
        for (index, lan) in draft.lans.iter().enumerate() {
            if check_name(found, &lan.name, "a LAN", LABEL_LETTERS_MAX) {
                let named = NamedEntity::Lan(LanId::from_index(index));
                directory.add(found, &lan.name.value, lan.name.place, named);
            }
        }
        for reservation in &draft.reserve {
            let name = &reservation.name;
            if check_name(found, name, "a reservation", LABEL_LETTERS_MAX) {
                directory.add(found, &name.value, name.place, NamedEntity::Reservation);
            }
        }
        for service in &draft.services {
            let name = &service.name;
            if check_name(found, name, "a service", LABEL_LETTERS_MAX) {
                directory.add(found, &name.value, name.place, NamedEntity::Service);
            }
        }
        directory
    }

    /// The names of a plan: those of its file.
    pub(super) fn of(plan: &Plan) -> Self {
        let mut directory = Directory::default();
        for (index, node) in plan.nodes.iter().enumerate() {
            let id = NodeId::from_index(index);
            directory.names.insert(node.name.clone(), NamedEntity::Node(id));
            if node.group != node.name {
                let group = directory.names.entry(node.group.clone());
                if let NamedEntity::Group(range) = group.or_insert(NamedEntity::Group(id.0..id.0)) {
                    range.end = id.0 + 1;
                }
            }
        }
        for (index, router) in plan.routers.iter().enumerate() {
            let named = NamedEntity::Router(RouterId::from_index(index));
            directory.names.insert(router.name.clone(), named);
        }
        let mut groups: BTreeMap<String, Vec<LinkId>> = BTreeMap::new();
        for (index, link) in plan.links.iter().enumerate() {
            let id = LinkId::from_index(index);
            directory.add_link(&link.name, id);
            let ends = link.ends.map(|end| end.vertex);
            if ends.iter().any(|end| file_name(plan, *end) != plan.vertex_name(*end)) {
                let common = format!("{}--{}", file_name(plan, ends[0]), file_name(plan, ends[1]));
                let numbered = link.name.rsplit_once('-').filter(|(_, number)| {
                    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
                });
                let automatic = link.name.contains("--");
                let group = numbered.filter(|_| !automatic).map(|(name, _)| name.to_owned());
                groups.entry(group.unwrap_or(common)).or_default().push(id);
            }
        }
        for (name, links) in groups {
            directory.add_link_group(&name, links);
        }
        directory
    }

    fn add(
        &mut self,
        found: &mut Diagnostics,
        name: &str,
        place: SourceLocation,
        named: NamedEntity,
    ) {
        if let Some(first) = self.places.get(name) {
            let first = found.options.whereabouts(*first);
            found.mistake(place, format!("`{name}` names something else already, in {first}"));
            return;
        }
        self.places.insert(name.to_owned(), place);
        self.names.insert(name.to_owned(), named);
    }

    /// What `name` stands for; reports it if that is nothing.
    pub(super) fn named(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<&NamedEntity> {
        let known = self.names.get(&name.value);
        if known.is_none() {
            let candidates = self.names.keys().map(String::as_str);
            let lans = self.names.values().any(|named| matches!(named, NamedEntity::Lan(_)));
            let what = if lans { "node, group, router or LAN" } else { "node, group or router" };
            unknown(found, name, what, candidates);
        }
        if let Some(nowhere @ (NamedEntity::Reservation | NamedEntity::Service)) = known {
            let message = format!("`{}` is a {}, which is no place", name.value, nowhere.kind());
            found.mistake(name.place, message);
            return None;
        }
        known
    }

    /// The router called `name`.
    pub(super) fn router(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<RouterId> {
        match self.names.get(&name.value) {
            Some(NamedEntity::Router(id)) => Some(*id),
            Some(other) => {
                let message =
                    format!("`{}` is a {}: here a router is needed", name.value, other.kind());
                found.mistake(name.place, message);
                None
            }
            None => {
                let routers =
                    self.names.iter().filter(|(_, it)| matches!(it, NamedEntity::Router(_)));
                unknown(found, name, "router", routers.map(|(name, _)| name.as_str()));
                None
            }
        }
    }

    /// The one node called `name`; a group is refused.
    pub(super) fn node(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<NodeId> {
        if let Some(NamedEntity::Group(_)) = self.names.get(&name.value) {
            self.vertex(found, name)?;
        }
        self.nodes(found, name)?.first().copied()
    }

    /// The nodes of `name`: one, or a group's members.
    pub(super) fn nodes(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<Vec<NodeId>> {
        match self.names.get(&name.value).map(|named| (named.nodes(), named.kind())) {
            Some((Some(nodes), _)) => Some(nodes),
            Some((None, kind)) => {
                let message = format!("`{}` is a {kind}: here a node is needed", name.value);
                found.mistake(name.place, message);
                None
            }
            None => {
                let nodes = self.names.iter().filter(|(_, named)| named.nodes().is_some());
                unknown(found, name, "node or group", nodes.map(|(name, _)| name.as_str()));
                None
            }
        }
    }

    /// The entry of the file's `nodes` that a node comes from.
    pub(super) fn entry(&self, node: NodeId) -> usize {
        self.entries.range(..=node).next_back().map_or(0, |(_, entry)| *entry)
    }

    /// The one vertex of `name`; a group is refused.
    pub(super) fn vertex(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<NetworkVertex> {
        match self.named(found, name)? {
            NamedEntity::Node(id) => Some(NetworkVertex::Node(*id)),
            NamedEntity::Router(id) => Some(NetworkVertex::Router(*id)),
            NamedEntity::Lan(id) => Some(NetworkVertex::Lan(*id)),
            NamedEntity::Reservation | NamedEntity::Service => None,
            NamedEntity::Group(_) => {
                let message = format!("`{}` is a group: here one node is needed", name.value);
                found.mistake_with_hint(
                    name.place,
                    message,
                    format!("name a member, such as `{}-1`", name.value),
                );
                None
            }
        }
    }

    /// Makes `name` stand for one more link.
    /// Notes that the values of a link come from a preset or a trace.
    pub(super) fn add_origin(&mut self, link: LinkId, origin: String) {
        self.origins.push((link, origin));
    }

    pub(super) fn add_link(&mut self, name: &str, link: LinkId) {
        self.links.entry(name.to_owned()).or_default().push(link);
    }

    /// Makes the common name of a group's links stand for all, with a number if it is taken.
    pub(super) fn add_link_group(&mut self, name: &str, links: Vec<LinkId>) {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        if let Some(free) = names.find(|name| !self.links.contains_key(name)) {
            self.links.insert(free, links);
        }
    }

    /// The links that `name` stands for; none if it names something else.
    pub(super) fn links_called(&self, name: &str) -> &[LinkId] {
        self.links.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The links that `name` stands for.
    pub(super) fn links(
        &self,
        found: &mut Diagnostics,
        name: &LocatedValue<String>,
    ) -> Option<&[LinkId]> {
        let known = self.links.get(&name.value);
        if known.is_none() {
            unknown(found, name, "link", self.links.keys().map(String::as_str));
        }
        known.map(Vec::as_slice)
    }
}

/// The name by which the file knows a vertex: the group's for its members.
pub(super) fn file_name(plan: &Plan, vertex: NetworkVertex) -> &str {
    match vertex {
        NetworkVertex::Node(id) => &plan.nodes[id.index()].group,
        NetworkVertex::Router(id) => &plan.routers[id.index()].name,
        NetworkVertex::Lan(id) => &plan.lans[id.index()].name,
    }
}

pub(super) fn unknown<'a>(
    found: &mut Diagnostics,
    name: &LocatedValue<String>,
    what: &str,
    candidates: impl Iterator<Item = &'a str>,
) {
    let message = format!("no {what} is called `{}`", shorten(&name.value));
    if found.is_full() {
        return found.mistake(name.place, message);
    }
    let candidates: Vec<&str> = candidates.collect();
    match nearest(&name.value, candidates.iter().copied()) {
        Some(near) => {
            found.mistake_with_hint(name.place, message, format!("did you mean `{near}`?"));
        }
        None if candidates.is_empty() => found.mistake(name.place, message),
        None => {
            let some = candidates.iter().take(8).copied().collect::<Vec<_>>().join(", ");
            let more = if candidates.len() > 8 { " …" } else { "" };
            found.mistake_with_hint(name.place, message, format!("there are {some}{more}"));
        }
    }
}

/// Room for `-10000` behind a group's name.
fn count_digits(is_group: bool) -> usize {
    if is_group { 6 } else { 0 }
}

/// A host name's label (RFC 1123) in lower case.
fn check_name(
    found: &mut Diagnostics,
    name: &LocatedValue<String>,
    what: &str,
    most: usize,
) -> bool {
    let text = name.value.as_str();
    let shown = shorten(text);
    let Err(error) = check_label(text, most) else { return true };
    let message = match error {
        LabelError::Empty => format!("the name of {what} is empty"),
        LabelError::Localhost => {
            "`localhost` is what every node calls itself: it cannot name one".to_owned()
        }
        LabelError::TooLong(most) => {
            format!("`{shown}` is longer than the {most} letters that the name of {what} may have")
        }
        error => format!("`{shown}` cannot name {what}: {error}"),
    };
    let better = text.to_lowercase().replace(['_', ' ', '.'], "-");
    if error == LabelError::Characters && check_label(&better, most) != Err(error) {
        found.mistake_with_hint(name.place, message, format!("did you mean `{better}`?"));
    } else {
        found.mistake(name.place, message);
    }
    false
}
