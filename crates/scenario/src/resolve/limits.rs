//! What nodes may send and receive at most: a bound of the rates of their links.
//!
//! It is part of the lane, so that a node has one queue and one clock for both, and packets take as
//! long as with the lesser of the two rates.

use windtunnel_model::plan::{Action, Node};
use windtunnel_model::{Lane, Plan, Rate};

use crate::decode::{At, Draft, NodeDraft};
use crate::error::Diagnostics;

/// Bounds the rates of lanes. The events have to be in the plan.
pub(super) fn resolve(found: &mut Diagnostics, draft: &Draft, plan: &mut Plan) {
    for node in &draft.nodes {
        let rates = node.keys.rates.or(&draft.node_defaults.rates);
        for (key, rate) in [("send", &rates.send), ("receive", &rates.receive)] {
            if let Some(rate) = rate {
                limit(found, plan, node, (key, rate));
            }
        }
    }
}

fn limit(
    found: &mut Diagnostics,
    plan: &mut Plan,
    node: &NodeDraft,
    (key, rate): (&str, &At<Rate>),
) {
    let name = &node.name.value;
    let members = plan.nodes.iter().filter(|member| member.group == *name);
    let lanes: Vec<Option<Lane>> = members.map(|member| only_lane(member, key)).collect();
    for lane in lanes {
        let Some(lane) = lane else {
            let message = format!("`{key}` of node `{name}` needs one link, no more and no fewer");
            let hint = "several links cannot share one budget: give each of them a `rate`";
            return found.mistake_with_hint(rate.place, message, hint);
        };
        let link = &mut plan.links[lane.link.index()];
        let profile = &mut link.profiles[lane.direction.index()];
        if profile.traces.rate.is_some() || follows_a_trace_later(&plan.events, lane) {
            let message = format!("`{key}`: the rate of link `{}` follows a trace", link.name);
            let hint = "a trace has the rate that it has: leave one of the two out";
            return found.mistake_with_hint(rate.place, message, hint);
        }
        let least = profile.rate_limit.map_or(rate.value, |other| other.min(rate.value));
        profile.limit_rate(Some(least));
    }
}

/// Which way its packets go, if they have one.
fn only_lane(node: &Node, key: &str) -> Option<Lane> {
    let [interface] = &node.interfaces[..] else { return None };
    let outward = Lane { link: interface.link, direction: interface.outward };
    Some(if key == "send" { outward } else { outward.reverse() })
}

fn follows_a_trace_later(events: &[windtunnel_model::plan::Event], lane: Lane) -> bool {
    events.iter().any(|event| match &event.action {
        Action::Link(change) => {
            change.patches.iter().any(|(at, patch)| *at == lane && patch.traces.rate.is_some())
        }
        _ => false,
    })
}
