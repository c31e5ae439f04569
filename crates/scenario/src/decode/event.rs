//! Events: changes at a time.

use windtunnel_model::Span;
use windtunnel_model::plan::NodeVerb;

use super::{Amount, At, ChurnDraft, Field, Fields, FlapDraft, LinkKeys, RepeatDraft, RouteDraft};
use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::tree::{Kind, Value};

/// An event as the file has it.
#[derive(Debug)]
pub(crate) struct EventDraft {
    pub(crate) place: Place,
    pub(crate) at: At<Span>,
    pub(crate) repeat: Option<RepeatDraft>,
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
        /// Only so many of them.
        some: Option<At<Amount>>,
    },
    Partition {
        place: Place,
        groups: Vec<Vec<At<String>>>,
        /// Only what leads from the first group to the second is cut.
        one_way: bool,
    },
    Heal,
    Route(RouteDraft),
    Reroute,
    Flap(FlapDraft),
    Churn(ChurnDraft),
}

/// The keys that say what an event is about, each with those that go with it.
const SUBJECTS: [(&str, &[&str]); 8] = [
    ("link", &["link", "direction", "set", "up", "down"]),
    ("node", &["node", "do", "some"]),
    ("partition", &["partition"]),
    ("heal", &["heal"]),
    ("route", &["route"]),
    ("reroute", &["reroute"]),
    ("flap", &["flap"]),
    ("churn", &["churn"]),
];
/// The keys that say when; a flap and churn have those of a repetition inside.
const WHEN: [&str; 5] = ["at", "every", "times", "for", "until"];

/// Events that happen now: one, or a list of them.
pub(crate) fn decode_now(found: &mut Findings, root: &Value) -> Vec<EventDraft> {
    let field = Field { key: "", place: root.place, value: root };
    let fields = match &root.kind {
        Kind::List(items) => items.iter().map(|item| field.with(item)).collect(),
        _ => vec![field],
    };
    fields.into_iter().filter_map(|field| found.event_now(field)).collect()
}

impl Findings {
    pub(super) fn event(&mut self, field: Field<'_>) -> Option<EventDraft> {
        let fields = self.fields(field, "an event", keys::EVENT)?;
        let at = match fields.find("at") {
            // What nodes do all the time needs no beginning.
            None if fields.has("churn") => Some(At { value: Span::ZERO, place: fields.place }),
            _ => self.required(&fields, "at", "this event").and_then(|field| self.time_at(field)),
        };
        self.event_at(&fields, at)
    }

    fn event_now(&mut self, field: Field<'_>) -> Option<EventDraft> {
        if !matches!(field.value.kind, Kind::Map(_)) {
            let message = "here an event such as {link: NAME, down: true} is needed";
            self.mistake(field.wrong(), message);
            return None;
        }
        let fields = self.fields(field, "an event", keys::EVENT)?;
        if let Some(at) = fields.find("at") {
            self.mistake_with_hint(at.place, "`at`: this event happens now", "leave `at` out");
            return None;
        }
        let at = At { value: Span::ZERO, place: fields.place };
        self.event_at(&fields, Some(at))
    }

    fn event_at(&mut self, fields: &Fields<'_>, at: Option<At<Span>>) -> Option<EventDraft> {
        let subject = self.subject(fields)?;
        let repeat = self.repeat(fields);
        let kind = match subject.key {
            "link" => self.link_event(fields, subject),
            "node" => self.node_event(fields, subject),
            "partition" => self.partition(subject),
            "route" => self.event_route(subject),
            "reroute" => self.set_to_true(subject).then_some(EventKind::Reroute),
            "flap" => self.flap(subject).map(EventKind::Flap),
            "churn" => self.churn(subject).map(EventKind::Churn),
            _ => self.set_to_true(subject).then_some(EventKind::Heal),
        };
        Some(EventDraft { place: fields.place, at: at?, repeat: repeat?, kind: kind? })
    }

    /// The one key that says what the event is about; the others must go with it.
    fn subject<'t>(&mut self, fields: &Fields<'t>) -> Option<Field<'t>> {
        let found = SUBJECTS.iter().find_map(|(key, with)| Some((fields.find(key)?, *with)));
        let Some((subject, with)) = found else {
            if !fields.unknown {
                let message = "this event says not what happens";
                let hint = "it needs one of `link`, `node`, `partition`, `heal`, `route`, \
                            `reroute`, `flap` or `churn`";
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        };
        let known = |field: &Field<'_>| keys::EVENT.contains(&field.key);
        let goes = |key: &str| match subject.key {
            "flap" | "churn" => key == "at" || with.contains(&key),
            _ => WHEN.contains(&key) || with.contains(&key),
        };
        if let Some(stray) = fields.all().find(|field| known(field) && !goes(field.key)) {
            let message = format!("`{}` does not go with `{}`", stray.key, subject.key);
            let inside = keys::FLAP.contains(&stray.key) && subject.key == "flap"
                || keys::CHURN.contains(&stray.key) && subject.key == "churn";
            let hint = match inside {
                true => format!("write it inside: `{}: {{{}: …}}`", subject.key, stray.key),
                false => "write two events with the same `at`".to_owned(),
            };
            self.mistake_with_hint(stray.place, message, hint);
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
        let some = match fields.find("some") {
            Some(field) => Some(self.amount(field)?),
            None => None,
        };
        Some(EventKind::Node { nodes: nodes?, verb, some })
    }

    fn partition(&mut self, subject: Field<'_>) -> Option<EventKind> {
        let needed = "a list of two or more lists of names, or {from: […], to: […]}";
        if let Kind::Map(_) = &subject.value.kind {
            return self.one_way(subject);
        }
        let groups: Vec<_> = self.list(subject, needed)?.collect();
        if groups.len() < 2 {
            self.mistake(subject.wrong(), format!("`partition` must be {needed}"));
            return None;
        }
        let read = groups.into_iter().map(|group| {
            let names = self.list(group, needed)?.clone();
            let names: Vec<_> =
                names.map(|name| self.text_at(name, "a name")).collect::<Option<_>>()?;
            self.side(group, names)
        });
        let groups = read.collect::<Option<Vec<_>>>()?;
        Some(EventKind::Partition { place: subject.place, groups, one_way: false })
    }

    fn one_way(&mut self, subject: Field<'_>) -> Option<EventKind> {
        let fields = self.fields(subject, "a partition of one way", keys::PARTITION)?;
        let sides = ["from", "to"].map(|key| {
            let side = self.required(&fields, key, "a partition of one way")?;
            let names = self.names(side, "a name or a list of names")?;
            self.side(side, names)
        });
        let groups = sides.into_iter().collect::<Option<Vec<_>>>()?;
        Some(EventKind::Partition { place: subject.place, groups, one_way: true })
    }

    fn side(&mut self, field: Field<'_>, names: Vec<At<String>>) -> Option<Vec<At<String>>> {
        if names.is_empty() {
            self.mistake(field.wrong(), "a side of the partition is empty");
            return None;
        }
        Some(names)
    }
}
