//! Which links of a router lead inside, and which outside.

use std::collections::BTreeSet;

use windtunnel_model::plan::{MiddleboxSide, RouterInterface};
use windtunnel_model::{Lane, LinkId, NetworkVertex, Plan, RouterId};

use super::super::directory::{Directory, file_name};
use crate::decode::RouterDraft;
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// The side of each interface of a router, in their order.
pub(super) fn resolve(
    found: &mut Diagnostics,
    draft: &RouterDraft,
    router: RouterId,
    directory: &Directory,
    plan: &Plan,
) -> Option<Vec<MiddleboxSide>> {
    let (name, place) = (&draft.name.value, draft.name.place);
    let interfaces = &plan.routers[router.index()].interfaces;
    if interfaces.len() < 2 {
        let message = format!("`{name}` has no two links, so nothing is between its sides");
        found.mistake(place, message);
        return None;
    }
    let known = vec![None; interfaces.len()];
    let mut sides = RouterSides { draft, directory, plan, interfaces, known };
    let given = [(MiddleboxSide::Inside, &draft.inside), (MiddleboxSide::Outside, &draft.outside)];
    for (side, names) in given {
        for name in names.iter().flatten() {
            sides.take(found, side, name)?;
        }
    }
    let mut sides = sides.known;
    let rest = match (&draft.inside, &draft.outside) {
        (Some(_), None) => Some(MiddleboxSide::Outside),
        (None, Some(_)) => Some(MiddleboxSide::Inside),
        (Some(_), Some(_)) => None,
        (None, None) => {
            sides = infer(plan, router).unwrap_or(sides);
            None
        }
    };
    for side in &mut sides {
        *side = side.or(rest);
    }
    let known: Option<Vec<MiddleboxSide>> = sides.iter().copied().collect();
    let Some(known) = known else {
        let open = interfaces.iter().zip(&sides).filter(|(_, side)| side.is_none());
        let open: Vec<&str> = open.map(|(it, _)| file_name(plan, far_end(plan, it))).collect();
        let message = format!("which links of `{name}` lead inside is not clear");
        let hint = format!("write `inside` or `outside` with some of: {}", unique(&open));
        found.mistake_with_hint(place, message, hint);
        return None;
    };
    for side in [MiddleboxSide::Inside, MiddleboxSide::Outside] {
        if !known.contains(&side) {
            let message = format!("`{name}` has no link that leads {}", side.name());
            found.mistake(place, message);
            return None;
        }
    }
    Some(known)
}

/// The sides of a router's interfaces, as far as the file says them.
struct RouterSides<'a> {
    draft: &'a RouterDraft,
    directory: &'a Directory,
    plan: &'a Plan,
    interfaces: &'a [RouterInterface],
    /// By interface.
    known: Vec<Option<MiddleboxSide>>,
}

impl RouterSides<'_> {
    /// Puts what has a name on a side.
    fn take(
        &mut self,
        found: &mut Diagnostics,
        side: MiddleboxSide,
        name: &LocatedValue<String>,
    ) -> Option<()> {
        let (plan, interfaces) = (self.plan, self.interfaces);
        let links = self.directory.links_called(&name.value);
        let is_meant: Box<dyn Fn(&RouterInterface) -> bool> = if links.is_empty() {
            let vertices: Vec<NetworkVertex> = self.directory.named(found, name)?.vertices();
            Box::new(move |it| vertices.contains(&far_end(plan, it)))
        } else {
            let links: Vec<LinkId> = links.to_vec();
            Box::new(move |it| links.contains(&it.link))
        };
        let mut any = false;
        for (interface, known) in interfaces.iter().zip(&mut self.known) {
            if !is_meant(interface) {
                continue;
            }
            any = true;
            if known.is_some_and(|known| known != side) {
                let message = format!("`{}` is inside and outside", name.value);
                found.mistake(name.place, message);
                return None;
            }
            *known = Some(side);
        }
        if !any {
            let ends: Vec<&str> =
                interfaces.iter().map(|it| file_name(plan, far_end(plan, it))).collect();
            let router = &self.draft.name.value;
            let message = format!("`{}` is no neighbour of `{router}`", name.value);
            let hint = format!("its neighbours are {}", unique(&ends));
            found.mistake_with_hint(name.place, message, hint);
            return None;
        }
        Some(())
    }
}

/// Outside is where the other routers are, if these are in one direction; `None`: they are not.
fn infer(plan: &Plan, router: RouterId) -> Option<Vec<Option<MiddleboxSide>>> {
    let interfaces = &plan.routers[router.index()].interfaces;
    let beyond: Vec<BTreeSet<NetworkVertex>> =
        interfaces.iter().map(|it| reached(plan, router, far_end(plan, it))).collect();
    let has_router =
        |it: &BTreeSet<NetworkVertex>| it.iter().any(|it| matches!(it, NetworkVertex::Router(_)));
    let mut outside = beyond.iter().filter(|it| has_router(it));
    let first = outside.next()?;
    if outside.any(|other| other != first) {
        return None;
    }
    let side = |it: &BTreeSet<NetworkVertex>| {
        Some(if it == first { MiddleboxSide::Outside } else { MiddleboxSide::Inside })
    };
    Some(beyond.iter().map(side).collect())
}

/// What passes packets on beyond a neighbour, without the router itself.
fn reached(plan: &Plan, router: RouterId, from: NetworkVertex) -> BTreeSet<NetworkVertex> {
    let passes = |vertex: NetworkVertex| match vertex {
        NetworkVertex::Node(id) => plan.nodes[id.index()].forward,
        NetworkVertex::Router(id) => id != router,
        NetworkVertex::Lan(_) => true,
    };
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if !passes(at) || !seen.insert(at) {
            continue;
        }
        for link in links_of(plan, at) {
            open.extend(plan.links[link.index()].ends.map(|end| end.vertex));
        }
    }
    seen
}

fn links_of(plan: &Plan, vertex: NetworkVertex) -> Vec<LinkId> {
    match vertex {
        NetworkVertex::Node(id) => {
            plan.nodes[id.index()].interfaces.iter().map(|it| it.link).collect()
        }
        NetworkVertex::Router(id) => {
            plan.routers[id.index()].interfaces.iter().map(|it| it.link).collect()
        }
        NetworkVertex::Lan(id) => {
            plan.lans[id.index()].attachments.iter().map(|it| it.link).collect()
        }
    }
}

fn far_end(plan: &Plan, interface: &RouterInterface) -> NetworkVertex {
    plan.lane_end(Lane { link: interface.link, direction: interface.outward })
}

/// Names once each, in their order.
fn unique(names: &[&str]) -> String {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        if !known.contains(name) {
            known.push(name);
        }
    }
    known.join(", ")
}
