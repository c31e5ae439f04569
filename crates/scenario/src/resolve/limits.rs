//! What is to be so of the limits of a node: its programs reserve no more than it does, and what it
//! may send and receive at most is a bound of the rates of its link.
//!
//! That is part of the lane, so that a node has one queue and one clock for both, and packets take as
//! long as with the lesser of the two rates.

use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{EventAction, Node, Program};
use windtunnel_model::{Bytes, Lane, Plan, Rate};

use crate::decode::{NodeDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// Bounds the rates of lanes. The events have to be in the plan.
pub(super) fn resolve(found: &mut Diagnostics, draft: &ScenarioDraft, plan: &mut Plan) {
    for node in &draft.nodes {
        let rates = node.keys.rates.or(&draft.node_defaults.rates);
        let asked =
            [(NodeRateLimitKey::Send, &rates.send), (NodeRateLimitKey::Receive, &rates.receive)];
        for (key, rate) in asked {
            if let Some(rate) = rate {
                limit(found, plan, node, key, rate);
            }
        }
    }
}

/// What programs reserve is within what their node does.
pub(super) fn within(
    found: &mut Diagnostics,
    node: &NodeDraft,
    demand: &Demand,
    programs: &[Program],
) {
    let of_programs = || programs.iter().map(|program| &program.demand);
    let cpu: u64 = of_programs().filter_map(|it| it.cpu_reserved_millis).map(u64::from).sum();
    let memory = of_programs().filter_map(|it| it.memory_reserved).map(|memory| memory.0);
    let memory = memory.fold(0, u64::saturating_add);
    let name = &node.name.value;
    let mut refuse = |key: &str, asked: String, has: String| {
        let message = format!("programs of node `{name}` reserve {asked} of its {has} of `{key}`");
        let hint = "`{limit: ...}` limits a program and reserves nothing for it";
        found.mistake_with_hint(node.name.place, message, hint);
    };
    if let Some(has) = demand.cpu_reserved_millis.map(u64::from).filter(|has| cpu > *has) {
        refuse("cpu", cores(cpu), cores(has));
    }
    if let Some(has) = demand.memory_reserved.filter(|has| memory > has.0) {
        refuse("memory", Bytes(memory).to_string(), has.to_string());
    }
}

/// `2.0`, `0.25`.
pub(super) fn cores(millis: u64) -> String {
    let cores = format!("{}.{:03}", millis / 1000, millis % 1000);
    let short = cores.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

fn limit(
    found: &mut Diagnostics,
    plan: &mut Plan,
    node: &NodeDraft,
    key: NodeRateLimitKey,
    rate: &LocatedValue<Rate>,
) {
    let name = &node.name.value;
    let members = plan.nodes.iter().filter(|member| member.group == *name);
    let lanes: Vec<Option<Lane>> = members.map(|member| key.only_lane(member)).collect();
    let key = key.name();
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

/// A key of a node that bounds the rate of its only link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeRateLimitKey {
    Send,
    Receive,
}

impl NodeRateLimitKey {
    const fn name(self) -> &'static str {
        match self {
            NodeRateLimitKey::Send => "send",
            NodeRateLimitKey::Receive => "receive",
        }
    }

    /// Which way the packets of a node go, if they have one.
    pub(super) fn only_lane(self, node: &Node) -> Option<Lane> {
        let [interface] = &node.interfaces[..] else { return None };
        let outward = Lane { link: interface.link, direction: interface.outward };
        Some(match self {
            NodeRateLimitKey::Send => outward,
            NodeRateLimitKey::Receive => outward.reverse(),
        })
    }
}

fn follows_a_trace_later(events: &[windtunnel_model::plan::ScheduledEvent], lane: Lane) -> bool {
    events.iter().any(|event| match &event.action {
        EventAction::Link(change) => {
            change.patches.iter().any(|(at, patch)| *at == lane && patch.traces.rate.is_some())
        }
        _ => false,
    })
}
