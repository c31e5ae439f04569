//! Expectations: names worked out.

use windtunnel_model::plan::Expectation;
use windtunnel_model::{NodeId, Plan, Vertex};

use super::directory::Directory;
use super::event::lanes;
use crate::decode::{At, Draft, ExpectDraft};
use crate::error::Findings;

pub(super) fn resolve(found: &mut Findings, draft: &Draft, directory: &Directory, plan: &mut Plan) {
    for expectation in &draft.expect {
        match expectation {
            ExpectDraft::Exit { node, code } => {
                let Some(nodes) = directory.nodes(found, node) else { continue };
                if nodes.iter().any(|id| plan.nodes[id.index()].programs.is_empty()) {
                    let message = format!("`{}` has no program that could exit", node.value);
                    found.mistake(node.place, message);
                }
                let exits = nodes.into_iter().map(|node| Expectation::Exit { node, code: *code });
                plan.expectations.extend(exits);
            }
            ExpectDraft::Path { ends, rtt } => {
                let [from, to] = [&ends[0], &ends[1]].map(|end| node(found, directory, plan, end));
                let (Some(from), Some(to)) = (from, to) else { continue };
                if from == to {
                    let message = format!("a path from `{}` to itself", ends[0].value);
                    found.mistake(ends[1].place, message);
                    continue;
                }
                let (min, max) = (rtt.min, rtt.max);
                plan.expectations.push(Expectation::PathRtt { from, to, min, max });
            }
            ExpectDraft::Link { link, direction, rate } => {
                let Some(lanes) = lanes(found, directory, plan, link, Some(direction)) else {
                    continue;
                };
                let (min, max) = (rate.min, rate.max);
                let rates = lanes.into_iter().map(|lane| Expectation::LinkRate { lane, min, max });
                plan.expectations.extend(rates);
            }
        }
    }
}

/// The one node of `name`, which must have a link.
fn node(
    found: &mut Findings,
    directory: &Directory,
    plan: &Plan,
    name: &At<String>,
) -> Option<NodeId> {
    let message = match directory.vertex(found, name)? {
        Vertex::Router(_) => format!("`{}` is a router: here a node is needed", name.value),
        Vertex::Node(id) if plan.nodes[id.index()].interfaces.is_empty() => {
            format!("`{}` has no link, so nothing has a path to it", name.value)
        }
        Vertex::Node(id) => return Some(id),
    };
    found.mistake(name.place, message);
    None
}
