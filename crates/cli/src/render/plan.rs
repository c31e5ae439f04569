//! The events of a plan as text.

use serde::Serialize;
use windtunnel_model::plan::{
    EventAction, PartitionMode, ScheduledEvent, ServiceChange, ServiceUpdate,
};
use windtunnel_model::{Bytes, Lane, NetworkVertex, NodeId, Plan, Span};

/// An event that is to happen.
#[derive(Debug, Serialize)]
pub(crate) struct EventScheduleEntry<'p> {
    pub(crate) at: Span,
    /// As text.
    pub(crate) what: String,
    /// As the plan has it.
    action: &'p EventAction,
}

/// All events of a plan, in the order of time.
pub(crate) fn planned(plan: &Plan) -> Vec<EventScheduleEntry<'_>> {
    let planned = |event: &'_ ScheduledEvent| (event.at, words(plan, &event.action));
    let events = plan.events.iter();
    events
        .map(|event| {
            let (at, what) = planned(event);
            EventScheduleEntry { at, what, action: &event.action }
        })
        .collect()
}

fn words(plan: &Plan, action: &EventAction) -> String {
    match action {
        EventAction::Link(change) => {
            let set = change.patches.iter().map(|(lane, patch)| {
                let patch = serde_json::to_value(patch).unwrap_or_default();
                format!("{}: {}", lane_words(plan, *lane), super::event::settings(&patch))
            });
            let state = change.state.iter().map(|(lane, up)| {
                format!("{}: {}", lane_words(plan, *lane), if *up { "up" } else { "down" })
            });
            set.chain(state).collect::<Vec<_>>().join(", ")
        }
        EventAction::Flap { lanes, up } => {
            let phase = if *up { "up" } else { "down" };
            let lanes: Vec<String> = lanes.iter().map(|lane| lane_words(plan, *lane)).collect();
            format!("{}: flap, {phase}", lanes.join(", "))
        }
        EventAction::Node { nodes, verb } => format!("{}: {}", names(plan, nodes), verb.name()),
        EventAction::Churn { leave, join, .. } => {
            let parts = [(leave, "leave"), (join, "join")].map(|(nodes, what)| {
                (!nodes.is_empty()).then(|| format!("{}: {what}", names(plan, nodes)))
            });
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
        EventAction::Absent { nodes } => {
            format!("{}: not there until they join", names(plan, nodes))
        }
        EventAction::Limit { nodes, limits } => {
            let cpu = limits
                .cpu_millis
                .map(|millis| format!("cpu={}", super::quantity::processors(millis.into())));
            let memory = limits.memory.map(|memory| format!("memory={memory}"));
            let pids = limits.pids.map(|pids| format!("pids={pids}"));
            let disk =
                limits.disk.map(|rate| format!("disk={}/s", Bytes(rate.bits_per_second() / 8)));
            let all: Vec<String> = [cpu, memory, pids, disk].into_iter().flatten().collect();
            format!("{}: {}", names(plan, nodes), all.join(" "))
        }
        EventAction::Partition { groups, cut } => partition_words(plan, groups, *cut),
        EventAction::Heal => "partition healed".to_owned(),
        EventAction::Route(change) => {
            let free = change.release.iter().map(|(from, to)| {
                let (from, to) = (&plan.nodes[from.index()].name, &plan.nodes[to.index()].name);
                format!("route {from} to {to}: the shortest")
            });
            let fixed = change.fix.iter().map(|route| {
                let path: Vec<&str> = route.path.iter().map(|v| plan.vertex_name(*v)).collect();
                format!("route {}", path.join(" "))
            });
            free.chain(fixed).collect::<Vec<_>>().join(", ")
        }
        EventAction::Reroute => "shortest routes are computed again".to_owned(),
        EventAction::Service(changes) => {
            changes.iter().map(|change| service_words(plan, change)).collect::<Vec<_>>().join(", ")
        }
    }
}

fn partition_words(plan: &Plan, groups: &[Vec<NetworkVertex>], cut: PartitionMode) -> String {
    let group = |vertices: &Vec<NetworkVertex>| {
        let names: Vec<&str> = vertices.iter().map(|v| plan.vertex_name(*v)).collect();
        names.join(" ")
    };
    let groups: Vec<String> = groups.iter().map(group).collect();
    let parted = match cut {
        PartitionMode::Between => groups.join(" | "),
        PartitionMode::OneWay => groups.join(" -x-> "),
        PartitionMode::Pairs => {
            let pairs = groups.chunks(2).map(|pair| pair.join(" | "));
            pairs.collect::<Vec<_>>().join(", ")
        }
    };
    format!("partition: {parted}")
}

fn service_words(plan: &Plan, change: &ServiceChange) -> String {
    let name = |id: NodeId| &plan.nodes[id.index()].name;
    let replica = name(change.update.replica());
    let what = match change.update {
        ServiceUpdate::Registered { port, .. } => format!("{replica} listens on {port}"),
        ServiceUpdate::Withdrawn { port, .. } => format!("{replica} does not listen on {port}"),
        ServiceUpdate::Lost { .. } => format!("{replica} is lost"),
        ServiceUpdate::Health { healthy: true, .. } => format!("{replica} is healthy"),
        ServiceUpdate::Health { healthy: false, .. } => format!("{replica} is not healthy"),
        ServiceUpdate::Drain { drain: true, .. } => format!("{replica} drains"),
        ServiceUpdate::Drain { drain: false, .. } => format!("{replica} drains no longer"),
        ServiceUpdate::Weight { weight, .. } => format!("{replica} weighs {weight}"),
        ServiceUpdate::Add { .. } => format!("{replica} is added"),
        ServiceUpdate::Remove { .. } => format!("{replica} is removed"),
    };
    format!("service {}: {what}", plan.services[change.service.index()].name)
}

fn lane_words(plan: &Plan, lane: Lane) -> String {
    format!("link {} {}", plan.links[lane.link.index()].name, plan.lane_name(lane))
}

fn names(plan: &Plan, nodes: &[NodeId]) -> String {
    let names: Vec<&str> = nodes.iter().map(|id| plan.nodes[id.index()].name.as_str()).collect();
    names.join(" ")
}
