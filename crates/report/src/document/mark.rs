//! Events as marks on time lines.

use serde::Serialize;
use windtunnel_trace::event::{Event, EventKind};

use crate::text::event;

/// An event, with its words and what it is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    pub at_ns: u64,
    /// When it was to happen, if it was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<u64>,
    /// The name that `events.jsonl` has.
    pub event: String,
    pub kind: MarkKind,
    pub text: String,
    pub links: Vec<String>,
    pub nodes: Vec<String>,
}

/// What sort of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// The run itself.
    Run,
    /// The life of a program.
    Program,
    /// Something was broken, or mended.
    Fault,
    /// Properties were changed.
    Change,
    /// A service and its replicas.
    Service,
    /// Packets were late, or the emulation behind.
    Late,
    /// A limit was met.
    Limit,
    Other,
}

impl Mark {
    /// The mark of an event, with the words that the terminal shows.
    #[must_use]
    pub fn of(event: &Event) -> Mark {
        let value = serde_json::to_value(&event.what).unwrap_or_default();
        let text_of = |key: &str| value.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let nodes = value.get("nodes").and_then(|it| it.as_array());
        let nodes = nodes.into_iter().flatten().filter_map(|it| it.as_str()).map(str::to_owned);
        Mark {
            at_ns: event.at_ns,
            intended_ns: event.intended_ns,
            event: text_of("event").unwrap_or_default(),
            kind: kind(&event.what),
            text: event::what(&event.what),
            links: text_of("link").into_iter().collect(),
            nodes: text_of("node").into_iter().chain(text_of("replica")).chain(nodes).collect(),
        }
    }
}

fn kind(what: &EventKind) -> MarkKind {
    match what {
        EventKind::RunBegan | EventKind::RunEnded { .. } => MarkKind::Run,
        EventKind::ProgramStarted { .. }
        | EventKind::ProgramFailed { .. }
        | EventKind::ProgramAwaited { .. }
        | EventKind::ProgramReady { .. }
        | EventKind::ProgramExited { .. }
        | EventKind::Executed { .. } => MarkKind::Program,
        EventKind::Node { .. }
        | EventKind::Absent { .. }
        | EventKind::LinkState { .. }
        | EventKind::LinkFlap { .. }
        | EventKind::Partitioned { .. }
        | EventKind::Healed
        | EventKind::HostLost { .. } => MarkKind::Fault,
        EventKind::CpuSet { .. }
        | EventKind::ShareSet { .. }
        | EventKind::LimitSet { .. }
        | EventKind::LinkSet { .. }
        | EventKind::RouteFixed { .. }
        | EventKind::RouteFreed { .. }
        | EventKind::Rerouted { .. }
        | EventKind::RoutesChanged { .. } => MarkKind::Change,
        EventKind::LimitReached { .. } => MarkKind::Limit,
        EventKind::ServiceRegistered { .. }
        | EventKind::ServiceWithdrawn { .. }
        | EventKind::ServiceLost { .. }
        | EventKind::ServiceHealth { .. }
        | EventKind::ServiceSet { .. }
        | EventKind::Redirected { .. }
        | EventKind::ReplicaExpelled { .. }
        | EventKind::ReplicaPromoted { .. }
        | EventKind::ConnectionResumed { .. }
        | EventKind::ConnectionLost { .. }
        | EventKind::ConnectionUnkept { .. } => MarkKind::Service,
        EventKind::Late { .. }
        | EventKind::Overloaded { .. }
        | EventKind::CaughtUp { .. }
        | EventKind::BeganLate { .. }
        | EventKind::HostSilent { .. }
        | EventKind::HostAnswers { .. }
        | EventKind::PeerSilent { .. }
        | EventKind::PeerAnswers { .. } => MarkKind::Late,
        _ => MarkKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_what_it_is_about() {
        let what =
            EventKind::LinkState { link: "ocean".into(), direction: "a-b".into(), up: false };
        let mark = Mark::of(&Event { at_ns: 7, intended_ns: Some(5), what });
        assert_eq!((mark.event.as_str(), mark.kind), ("link-state", MarkKind::Fault));
        assert_eq!((mark.links, mark.nodes), (vec!["ocean".to_owned()], vec![]));
        assert_eq!(mark.text, "link ocean a-b: down");
        let what = EventKind::Absent { nodes: vec!["a".into(), "b".into()] };
        let mark = Mark::of(&Event { at_ns: 7, intended_ns: None, what });
        assert_eq!((mark.nodes.join(" "), mark.intended_ns), ("a b".to_owned(), None));
    }
}
