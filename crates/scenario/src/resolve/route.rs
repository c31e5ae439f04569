//! Routes that are fixed: names worked out, groups expanded, ways between those that are named
//! found.

use std::collections::BTreeSet;

use windtunnel_model::plan::{FixedRoute, RouteChange};
use windtunnel_model::{NetworkVertex, NodeId, Plan};
use windtunnel_routing::{RouteDestination, Routes};

use super::directory::Directory;
use super::expansion::ExpansionBudget;
use crate::decode::{RouteDraft, ScenarioDraft, WayDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// `routes`.
pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    directory: &Directory,
    budget: &mut ExpansionBudget,
    plan: &mut Plan,
) {
    let mut fixed = BTreeSet::new();
    for route in &draft.routes {
        let Some(change) = change(found, route, directory, budget, plan) else { continue };
        for route_there in change.fix {
            let ends = (route_there.path.first().copied(), route_there.path.last().copied());
            if fixed.insert(ends) {
                plan.routes.push(route_there);
                continue;
            }
            let name = |vertex: Option<NetworkVertex>| {
                vertex.map_or("", |vertex| plan.vertex_name(vertex)).to_owned()
            };
            let (from, to) = (name(ends.0), name(ends.1));
            found.mistake(route.place, format!("a second route from `{from}` to `{to}`"));
            break;
        }
    }
}

/// What a route of the file or of an event means.
pub(super) fn change(
    found: &mut Diagnostics,
    route: &RouteDraft,
    directory: &Directory,
    budget: &mut ExpansionBudget,
    plan: &Plan,
) -> Option<RouteChange> {
    let (from, to, between) = match &route.way {
        WayDraft::Path(path) => match path.as_slice() {
            [from, between @ .., to] => (from, to, between),
            _ => {
                found.mistake(route.place, "a route has two ends or more");
                return None;
            }
        },
        WayDraft::Via { from, to, via } => (from, to, via.as_slice()),
        WayDraft::Shortest { from, to } => (from, to, &[][..]),
    };
    let [from_nodes, to_nodes] = [from, to].map(|name| ends(found, directory, name));
    let (from_nodes, to_nodes) = (from_nodes?, to_nodes?);
    let vertices: Vec<NetworkVertex> =
        between.iter().map(|name| directory.vertex(found, name)).collect::<Option<_>>()?;
    // A name that two ends share means every two different members.
    let shared = from.value == to.value && from_nodes.len() > 1;
    let pairs = from_nodes.iter().flat_map(|a| to_nodes.iter().map(move |b| (*a, *b)));
    let pairs: Vec<(NodeId, NodeId)> = pairs.filter(|(a, b)| !(shared && a == b)).collect();
    if !budget.spend(found, pairs.len() * (vertices.len() + 2), route.place) {
        return None;
    }
    let mut change = RouteChange::default();
    if let WayDraft::Shortest { .. } = route.way {
        let back = pairs.iter().map(|(a, b)| (*b, *a)).filter(|_| !route.one_way);
        change.release = pairs.iter().copied().chain(back).collect();
        change.release.sort_unstable();
        change.release.dedup();
        return Some(change);
    }
    let mut ways =
        RouteResolver { found, plan, directory_names: (from, between, to), routes: None };
    let mut known = BTreeSet::new();
    for (a, b) in pairs {
        // Where the way back is the same way, a group towards itself would fix it twice.
        if shared && !route.one_way && known.contains(&(b, a)) {
            continue;
        }
        known.insert((a, b));
        let path = match &route.way {
            WayDraft::Via { .. } => ways.over(a, &vertices, b)?,
            _ => ways.along(a, &vertices, b)?,
        };
        if let Some(nat) = plan.nat_across(&path) {
            let name = &plan.routers[nat.index()].name;
            let message = format!("this route leads through the NAT of `{name}`");
            let hint = "behind it packets have another source, so no route from there can be fixed";
            ways.found.mistake_with_hint(route.place, message, hint);
            return None;
        }
        if !route.one_way {
            let back = FixedRoute { path: path.iter().rev().copied().collect() };
            change.fix.push(FixedRoute { path });
            change.fix.push(back);
        } else {
            change.fix.push(FixedRoute { path });
        }
    }
    Some(change)
}

/// The nodes that a route may begin or end at.
fn ends(
    found: &mut Diagnostics,
    directory: &Directory,
    name: &LocatedValue<String>,
) -> Option<Vec<NodeId>> {
    let named = directory.named(found, name)?;
    let nodes = named.nodes();
    if nodes.is_none() {
        let kind = named.kind();
        let message = format!("a route leads from node to node: `{}` is a {kind}", name.value);
        found.mistake(name.place, message);
    }
    nodes
}

/// Finds and checks the ways of one route of the file.
struct RouteResolver<'a> {
    found: &'a mut Diagnostics,
    plan: &'a Plan,
    /// What the file calls the first end, those between, and the last.
    directory_names:
        (&'a LocatedValue<String>, &'a [LocatedValue<String>], &'a LocatedValue<String>),
    /// Computed when a way has to be found.
    routes: Option<Routes>,
}

impl RouteResolver<'_> {
    /// The way along all of these; neighbours must be joined.
    fn along(
        &mut self,
        from: NodeId,
        between: &[NetworkVertex],
        to: NodeId,
    ) -> Option<Vec<NetworkVertex>> {
        let ends = (NetworkVertex::Node(from), NetworkVertex::Node(to));
        let path: Vec<NetworkVertex> =
            std::iter::once(ends.0).chain(between.iter().copied()).chain([ends.1]).collect();
        for index in 1..path.len() {
            let name = self.name(index);
            let message = if path[..index].contains(&path[index]) {
                format!("this route passes `{}` twice", name.value)
            } else if let Some(node) = self.idle(path[index]).filter(|_| index + 1 < path.len()) {
                format!("`{node}` forwards nothing: give it `forward: true`")
            } else if !joined(self.plan, path[index - 1], path[index]) {
                let [a, b] = [index - 1, index].map(|at| self.plan.vertex_name(path[at]));
                format!("no link joins `{a}` and `{b}`")
            } else {
                continue;
            };
            self.found.mistake(name.place, message);
            return None;
        }
        Some(path)
    }

    /// The way that is the shortest from each of these to the next.
    fn over(
        &mut self,
        from: NodeId,
        via: &[NetworkVertex],
        to: NodeId,
    ) -> Option<Vec<NetworkVertex>> {
        let plan = self.plan;
        let mut path = vec![NetworkVertex::Node(from)];
        let stops: Vec<NetworkVertex> =
            via.iter().copied().chain([NetworkVertex::Node(to)]).collect();
        for (index, stop) in stops.iter().enumerate() {
            let name = self.name(index + 1);
            if let Some(node) = self.idle(*stop).filter(|_| index + 1 < stops.len()) {
                let message = format!("`{node}` forwards nothing: give it `forward: true`");
                self.found.mistake(name.place, message);
                return None;
            }
            let routes = self.routes.get_or_insert_with(|| Routes::compute(plan));
            let mut at = path[path.len() - 1];
            while at != *stop {
                let Some(lane) = target(plan, *stop).and_then(|t| routes.next_hop(at, t)) else {
                    let message =
                        format!("no way leads from `{}` to `{}`", plan.vertex_name(at), name.value);
                    self.found.mistake(name.place, message);
                    return None;
                };
                at = plan.lane_end(lane);
                if path.contains(&at) {
                    let message = format!("this route passes `{}` twice", plan.vertex_name(at));
                    let hint = "go over another one, or name the whole way with `path`";
                    self.found.mistake_with_hint(name.place, message, hint);
                    return None;
                }
                path.push(at);
            }
        }
        Some(path)
    }

    /// The name in the file of the vertex at a position among those that the route names.
    fn name(&self, position: usize) -> LocatedValue<String> {
        let (from, between, to) = self.directory_names;
        let name = match position.checked_sub(1) {
            None => from,
            Some(inner) => between.get(inner).unwrap_or(to),
        };
        name.clone()
    }

    /// The name of a node that passes nothing on.
    fn idle(&self, vertex: NetworkVertex) -> Option<String> {
        match vertex {
            NetworkVertex::Node(id) if !self.plan.nodes[id.index()].forward => {
                Some(self.plan.nodes[id.index()].name.clone())
            }
            _ => None,
        }
    }
}

fn joined(plan: &Plan, a: NetworkVertex, b: NetworkVertex) -> bool {
    let links = match a {
        NetworkVertex::Node(id) => {
            plan.nodes[id.index()].interfaces.iter().map(|i| i.link).collect()
        }
        NetworkVertex::Router(id) => {
            let interfaces = plan.routers[id.index()].interfaces.iter();
            interfaces.map(|i| i.link).collect::<Vec<_>>()
        }
        NetworkVertex::Lan(id) => {
            let attachments = plan.lans[id.index()].attachments.iter();
            attachments.map(|lane| lane.link).collect::<Vec<_>>()
        }
    };
    links.into_iter().any(|link| plan.links[link.index()].ends.iter().any(|end| end.vertex == b))
}

fn target(plan: &Plan, vertex: NetworkVertex) -> Option<RouteDestination> {
    match vertex {
        NetworkVertex::Router(id) => Some(RouteDestination::Router(id)),
        NetworkVertex::Lan(id) => Some(RouteDestination::Lan(id)),
        NetworkVertex::Node(id) => {
            Some(RouteDestination::Port(plan.nodes[id.index()].interfaces.first()?.port))
        }
    }
}
