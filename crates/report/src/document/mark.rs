//! Events as marks on time lines.

use serde::Serialize;
use windtunnel_model::word::NamedState;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use crate::text::event;

/// An event, with its words and what it is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventAnnotation {
    pub at_ns: u64,
    /// When it was to happen, if it was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<u64>,
    /// The name that `events.jsonl` has.
    pub event: String,
    pub kind: EventAnnotationKind,
    pub text: String,
    pub links: Vec<String>,
    pub nodes: Vec<String>,
}

/// What sort of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventAnnotationKind {
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

impl EventAnnotation {
    /// The mark of an event, with the words that the terminal shows.
    #[must_use]
    pub fn of(event: &EventLogEntry) -> EventAnnotation {
        let value = serde_json::to_value(&event.what).unwrap_or_default();
        let text_of = |key: &str| value.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let nodes = value.get("nodes").and_then(|it| it.as_array());
        let nodes = nodes.into_iter().flatten().filter_map(|it| it.as_str()).map(str::to_owned);
        EventAnnotation {
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

impl NamedState for EventAnnotationKind {
    const WORDS: &'static [(Self, &'static str)] = &[
        (EventAnnotationKind::Run, "run"),
        (EventAnnotationKind::Program, "program"),
        (EventAnnotationKind::Fault, "fault"),
        (EventAnnotationKind::Change, "change"),
        (EventAnnotationKind::Service, "service"),
        (EventAnnotationKind::Late, "late"),
        (EventAnnotationKind::Limit, "limit"),
        (EventAnnotationKind::Other, "other"),
    ];
}

fn kind(what: &EventLogEntryKind) -> EventAnnotationKind {
    match what {
        EventLogEntryKind::RunBegan | EventLogEntryKind::RunEnded { .. } => {
            EventAnnotationKind::Run
        }
        EventLogEntryKind::ProgramStarted { .. }
        | EventLogEntryKind::ProgramFailed { .. }
        | EventLogEntryKind::ProgramAwaited { .. }
        | EventLogEntryKind::ProgramReady { .. }
        | EventLogEntryKind::ProgramExited { .. }
        | EventLogEntryKind::Executed { .. } => EventAnnotationKind::Program,
        EventLogEntryKind::Node { .. }
        | EventLogEntryKind::Absent { .. }
        | EventLogEntryKind::LinkState { .. }
        | EventLogEntryKind::LinkFlap { .. }
        | EventLogEntryKind::Partitioned { .. }
        | EventLogEntryKind::Healed
        | EventLogEntryKind::HostLost { .. } => EventAnnotationKind::Fault,
        EventLogEntryKind::CpuSet { .. }
        | EventLogEntryKind::ShareSet { .. }
        | EventLogEntryKind::LimitSet { .. }
        | EventLogEntryKind::LinkSet { .. }
        | EventLogEntryKind::RouteFixed { .. }
        | EventLogEntryKind::RouteFreed { .. }
        | EventLogEntryKind::Rerouted { .. }
        | EventLogEntryKind::RoutesChanged { .. } => EventAnnotationKind::Change,
        EventLogEntryKind::LimitReached { .. } => EventAnnotationKind::Limit,
        EventLogEntryKind::ServiceRegistered { .. }
        | EventLogEntryKind::ServiceWithdrawn { .. }
        | EventLogEntryKind::ServiceLost { .. }
        | EventLogEntryKind::ServiceHealth { .. }
        | EventLogEntryKind::ServiceSet { .. }
        | EventLogEntryKind::Redirected { .. }
        | EventLogEntryKind::ReplicaExpelled { .. }
        | EventLogEntryKind::ReplicaPromoted { .. }
        | EventLogEntryKind::ConnectionResumed { .. }
        | EventLogEntryKind::ConnectionLost { .. }
        | EventLogEntryKind::ConnectionUnkept { .. } => EventAnnotationKind::Service,
        EventLogEntryKind::Late { .. }
        | EventLogEntryKind::Overloaded { .. }
        | EventLogEntryKind::CaughtUp { .. }
        | EventLogEntryKind::BeganLate { .. }
        | EventLogEntryKind::HostSilent { .. }
        | EventLogEntryKind::HostAnswers { .. }
        | EventLogEntryKind::PeerSilent { .. }
        | EventLogEntryKind::PeerAnswers { .. } => EventAnnotationKind::Late,
        _ => EventAnnotationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_what_it_is_about() {
        let what = EventLogEntryKind::LinkState {
            link: "ocean".into(),
            direction: "a-b".into(),
            up: false,
        };
        let mark = EventAnnotation::of(&EventLogEntry { at_ns: 7, intended_ns: Some(5), what });
        assert_eq!((mark.event.as_str(), mark.kind), ("link-state", EventAnnotationKind::Fault));
        assert_eq!((mark.links, mark.nodes), (vec!["ocean".to_owned()], vec![]));
        assert_eq!(mark.text, "link ocean a-b: down");
        let what = EventLogEntryKind::Absent { nodes: vec!["a".into(), "b".into()] };
        let mark = EventAnnotation::of(&EventLogEntry { at_ns: 7, intended_ns: None, what });
        assert_eq!((mark.nodes.join(" "), mark.intended_ns), ("a b".to_owned(), None));
    }
}
