//! Events: changes at a time.

use windtunnel_model::Span;
use windtunnel_model::plan::NodeVerb;

use super::{At, Field, Fields, LinkKeys, RouteDraft};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;

/// An event as the file has it.
#[derive(Debug)]
pub(crate) struct EventDraft {
    pub(crate) place: Place,
    pub(crate) at: At<Span>,
    pub(crate) kind: EventKind,
}

/// What it does.
#[derive(Debug)]
pub(crate) enum EventKind {
    Link {
        links: Vec<At<String>>,
        direction: Option<At<String>>,
        set: Box<LinkKeys>,
        /// Taken up (`true`) or down.
        state: Option<bool>,
    },
    Node {
        nodes: Vec<At<String>>,
        verb: NodeVerb,
    },
    Partition {
        place: Place,
        groups: Vec<Vec<At<String>>>,
    },
    Heal,
    Route(RouteDraft),
    Reroute,
}

/// The keys that say what an event is about, each with those that go with it.
const SUBJECTS: [(&str, &[&str]); 6] = [
    ("link", &["at", "link", "direction", "set", "up", "down"]),
    ("node", &["at", "node", "do"]),
    ("partition", &["at", "partition"]),
    ("heal", &["at", "heal"]),
    ("route", &["at", "route"]),
    ("reroute", &["at", "reroute"]),
];

impl Findings {
    pub(super) fn event(&mut self, field: Field<'_>) -> Option<EventDraft> {
        let fields = self.fields(field, "an event", keys::EVENT)?;
        let at = self.required(&fields, "at", "this event").and_then(|field| {
            let value = self.quantity(field, "a time such as 5s")?;
            Some(At { value, place: field.value.place })
        });
        let subject = self.subject(&fields)?;
        let kind = match subject.key {
            "link" => self.link_event(&fields, subject),
            "node" => self.node_event(&fields, subject),
            "partition" => self.partition(subject),
            "route" => self.event_route(subject),
            "reroute" => self.set_to_true(subject).then_some(EventKind::Reroute),
            _ => self.set_to_true(subject).then_some(EventKind::Heal),
        };
        Some(EventDraft { place: fields.place, at: at?, kind: kind? })
    }

    /// The one key that says what the event is about; the others must go with it.
    fn subject<'t>(&mut self, fields: &Fields<'t>) -> Option<Field<'t>> {
        let found = SUBJECTS.iter().find_map(|(key, with)| Some((fields.find(key)?, *with)));
        let Some((subject, with)) = found else {
            if !fields.unknown {
                let message = "this event says not what happens";
                let hint =
                    "it needs one of `link`, `node`, `partition`, `heal`, `route` or `reroute`";
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        };
        let known = |field: &Field<'_>| keys::EVENT.contains(&field.key);
        let stray = fields.all().find(|field| known(field) && !with.contains(&field.key));
        if let Some(stray) = stray {
            let message = format!("`{}` does not go with `{}`", stray.key, subject.key);
            self.mistake_with_hint(stray.place, message, "write two events with the same `at`");
            return None;
        }
        Some(subject)
    }

    fn link_event(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<EventKind> {
        let links = self.names(subject, "a link's name or a list of them");
        let direction = fields.find("direction").map(|field| self.direction(field));
        let set = match fields.find("set") {
            Some(field) => self.link_set(field, "a change of a link"),
            None => LinkKeys::default(),
        };
        let up = fields.find("up").map(|field| self.set_to_true(field));
        let down = fields.find("down").map(|field| self.set_to_true(field));
        let state = match (up, down) {
            (Some(_), Some(_)) => {
                self.mistake(fields.place, "a link cannot be taken `up` and `down` at once");
                return None;
            }
            (Some(true), None) => Some(true),
            (None, Some(true)) => Some(false),
            (None, None) => None,
            _ => return None,
        };
        if state.is_none() && !fields.has("set") && !fields.unknown {
            let hint = "it needs `set: {…}`, `down: true` or `up: true`";
            self.mistake_with_hint(fields.place, "this event changes nothing", hint);
            return None;
        }
        let direction = match direction {
            Some(direction) => Some(direction?),
            None => None,
        };
        Some(EventKind::Link { links: links?, direction, set: Box::new(set), state })
    }

    /// `up`, `down` or `a-b`.
    pub(super) fn direction(&mut self, field: Field<'_>) -> Option<At<String>> {
        self.text_at(field, "`up`, `down` or the two ends as `from-to`")
    }

    /// A key that only stands there to say that something happens.
    fn set_to_true(&mut self, field: Field<'_>) -> bool {
        match self.flag(field) {
            Some(true) => true,
            Some(false) => {
                let message = format!("`{}: false` says nothing", field.key);
                let hint = format!("write `{}: true` or leave it out", field.key);
                self.mistake_with_hint(field.wrong(), message, hint);
                false
            }
            None => false,
        }
    }

    fn node_event(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<EventKind> {
        let nodes = self.names(subject, "a node's name or a list of them");
        let verb = self.required(fields, "do", "this event")?;
        let verbs = [
            ("kill", NodeVerb::Kill),
            ("stop", NodeVerb::Stop),
            ("pause", NodeVerb::Pause),
            ("resume", NodeVerb::Resume),
            ("restart", NodeVerb::Restart),
        ];
        let verb = self.choice(verb, &verbs)?;
        Some(EventKind::Node { nodes: nodes?, verb })
    }

    fn partition(&mut self, subject: Field<'_>) -> Option<EventKind> {
        let needed = "a list of two or more lists of names";
        let groups: Vec<_> = self.list(subject, needed)?.collect();
        if groups.len() < 2 {
            self.mistake(subject.wrong(), format!("`partition` must be {needed}"));
            return None;
        }
        let mut read = Vec::new();
        for group in groups {
            let names = self.list(group, needed)?.clone();
            if names.clone().next().is_none() {
                self.mistake(group.wrong(), "a side of the partition is empty");
                return None;
            }
            read.push(names.map(|name| self.text_at(name, "a name")).collect::<Option<Vec<_>>>()?);
        }
        Some(EventKind::Partition { place: subject.place, groups: read })
    }
}
