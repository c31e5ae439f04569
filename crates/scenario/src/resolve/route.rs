//! Routes that the file fixes.

use std::collections::BTreeSet;

use windtunnel_model::plan::FixedRoute;
use windtunnel_model::{Plan, Vertex};

use super::directory::Directory;
use crate::decode::{Draft, RouteDraft};
use crate::error::Findings;

pub(super) fn resolve(found: &mut Findings, draft: &Draft, directory: &Directory, plan: &mut Plan) {
    let joined: BTreeSet<[Vertex; 2]> = plan
        .links
        .iter()
        .map(|link| [link.ends[0].vertex, link.ends[1].vertex])
        .flat_map(|[a, b]| [[a, b], [b, a]])
        .collect();
    let mut fixed = BTreeSet::new();
    for route in &draft.routes {
        let Some(path) = path(found, route, directory, plan, &joined) else { continue };
        let mut paths = vec![path.clone()];
        if !route.one_way {
            paths.push(path.into_iter().rev().collect());
        }
        for path in paths {
            if fixed.insert((path.first().copied(), path.last().copied())) {
                plan.routes.push(FixedRoute { path });
                continue;
            }
            let name = |vertex: Option<&Vertex>| {
                vertex.map_or("", |vertex| plan.vertex_name(*vertex)).to_owned()
            };
            let (from, to) = (name(path.first()), name(path.last()));
            found.mistake(route.place, format!("a second route from `{from}` to `{to}`"));
            break;
        }
    }
}

fn path(
    found: &mut Findings,
    route: &RouteDraft,
    directory: &Directory,
    plan: &Plan,
    joined: &BTreeSet<[Vertex; 2]>,
) -> Option<Vec<Vertex>> {
    let path: Vec<Vertex> =
        route.path.iter().map(|name| directory.vertex(found, name)).collect::<Option<_>>()?;
    if path.len() < 2 {
        found.mistake(route.place, "a route has two ends or more");
        return None;
    }
    let last = path.len() - 1;
    let mut seen = BTreeSet::new();
    for (index, (vertex, name)) in path.iter().zip(&route.path).enumerate() {
        let is_end = index == 0 || index == last;
        let message = match vertex {
            _ if !seen.insert(*vertex) => format!("this route passes `{}` twice", name.value),
            Vertex::Router(_) if is_end => {
                format!("a route leads from node to node: `{}` is a router", name.value)
            }
            Vertex::Node(id) if !is_end && !plan.nodes[id.index()].forward => {
                format!("`{}` forwards nothing: give it `forward: true`", name.value)
            }
            _ if index > 0 && !joined.contains(&[path[index - 1], *vertex]) => {
                format!("no link joins `{}` and `{}`", route.path[index - 1].value, name.value)
            }
            _ => continue,
        };
        found.mistake(name.place, message);
        return None;
    }
    Some(path)
}
