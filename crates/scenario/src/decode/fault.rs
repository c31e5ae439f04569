//! What events repeat, flap and churn.

use windtunnel_model::plan::NodeVerb;
use windtunnel_model::{Probability, Span};

use super::{At, Field, Fields};
use crate::churn::Speed;
use crate::error::Findings;
use crate::keys;
use crate::tree::Kind;

/// When something that goes on ends; all `None`: with the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndDraft {
    /// After its beginning.
    pub(crate) after: Option<At<Span>>,
    /// After the beginning of the run.
    pub(crate) until: Option<At<Span>>,
    pub(crate) times: Option<u64>,
}

/// An event that happens again.
#[derive(Debug, Clone)]
pub(crate) struct RepeatDraft {
    pub(crate) every: At<Span>,
    pub(crate) end: EndDraft,
}

/// A number of nodes, or a share of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Amount {
    Count(u64),
    Share(Probability),
}

/// A flap.
#[derive(Debug)]
pub(crate) struct FlapDraft {
    pub(crate) links: Vec<At<String>>,
    pub(crate) direction: Option<At<String>>,
    pub(crate) every: At<Span>,
    pub(crate) down: Span,
    pub(crate) random: bool,
    pub(crate) end: EndDraft,
}

/// Churn.
#[derive(Debug)]
pub(crate) struct ChurnDraft {
    pub(crate) nodes: Vec<At<String>>,
    /// How programs end: killed or stopped.
    pub(crate) leave: NodeVerb,
    pub(crate) kind: ChurnKind,
}

/// What says who leaves and joins when.
#[derive(Debug)]
pub(crate) enum ChurnKind {
    Rate { rate: At<Probability>, every: At<Span>, away: Option<Span>, end: EndDraft },
    Script { text: TextDraft, speed: Speed, present: Option<At<Amount>> },
    Trace { text: TextDraft, speed: Speed },
}

/// A text in the file, or in another.
#[derive(Debug)]
pub(crate) enum TextDraft {
    Here(At<String>),
    There(At<String>),
}

impl Findings {
    /// `every` and what ends it; `Some(None)` where the event happens once.
    pub(super) fn repeat(&mut self, fields: &Fields<'_>) -> Option<Option<RepeatDraft>> {
        let Some(every) = fields.find("every") else {
            let stray = ["times", "for", "until"].iter().find_map(|key| fields.find(key));
            return match stray {
                Some(field) => {
                    let message = format!("`{}` without `every`: this happens once", field.key);
                    self.mistake_with_hint(field.place, message, "add `every: 10s`");
                    None
                }
                None => Some(None),
            };
        };
        let every = self.period(every);
        let end = self.end(fields);
        Some(Some(RepeatDraft { every: every?, end: end? }))
    }

    fn end(&mut self, fields: &Fields<'_>) -> Option<EndDraft> {
        let mut time = |key| match fields.find(key) {
            Some(field) => self.time_at(field).map(Some),
            None => Some(None),
        };
        let (after, until) = (time("for"), time("until"));
        let times = match fields.find("times") {
            Some(field) => self.integer(field, 1..=u64::MAX, "a number of times").map(Some),
            None => Some(None),
        };
        let end = EndDraft { after: after?, until: until?, times: times? };
        if let (Some(_), Some(until)) = (&end.after, &end.until) {
            let message = "`for` and `until` both say when it ends";
            self.mistake_with_hint(until.place, message, "leave one of them out");
            return None;
        }
        Some(end)
    }

    pub(super) fn time_at(&mut self, field: Field<'_>) -> Option<At<Span>> {
        let value = self.quantity(field, "a time such as 5s")?;
        Some(At { value, place: field.value.place })
    }

    /// A time that is not nothing.
    fn period(&mut self, field: Field<'_>) -> Option<At<Span>> {
        let every = self.time_at(field)?;
        if every.value < SHORTEST {
            let message = format!("{}: `{}` is shorter than {SHORTEST}", field.key, every.value);
            self.mistake(every.place, message);
            return None;
        }
        Some(every)
    }

    /// A number of nodes, or a share of them.
    pub(super) fn amount(&mut self, field: Field<'_>) -> Option<At<Amount>> {
        let needed = "a number of nodes such as 2, or a share such as 20%";
        let text = self.text(field, needed)?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let value = match digits {
            true => Amount::Count(self.integer(field, 1..=u64::MAX, needed)?),
            false => Amount::Share(self.share_of_nodes(field, needed)?),
        };
        Some(At { value, place: field.value.place })
    }

    fn share_of_nodes(&mut self, field: Field<'_>, needed: &str) -> Option<Probability> {
        let share: Probability = self.quantity(field, needed)?;
        if share.is_never() {
            self.mistake(field.wrong(), format!("{}: `{share}` is nobody", field.key));
            return None;
        }
        Some(share)
    }

    pub(super) fn flap(&mut self, field: Field<'_>) -> Option<FlapDraft> {
        let fields = self.fields(field, "a flap", keys::FLAP)?;
        let links = self.required(&fields, "link", "this flap");
        let links = links.and_then(|field| self.names(field, "a link's name or a list of them"));
        let every = self.required(&fields, "every", "this flap").and_then(|f| self.period(f));
        let down = self.required(&fields, "down", "this flap").and_then(|f| self.period(f));
        let end = self.end(&fields);
        let direction = match fields.find("direction") {
            Some(field) => Some(self.direction(field)?),
            None => None,
        };
        let random = match fields.find("random") {
            Some(field) => self.flag(field)?,
            None => false,
        };
        let (every, down) = (every?, down?);
        if down.value >= every.value {
            let message = format!("the link is `down` for {}, not less than `every`", down.value);
            self.mistake_with_hint(down.place, message, "for a link that stays down: `down: true`");
            return None;
        }
        let down = down.value;
        Some(FlapDraft { links: links?, direction, every, down, random, end: end? })
    }

    pub(super) fn churn(&mut self, field: Field<'_>) -> Option<ChurnDraft> {
        let fields = self.fields(field, "churn", keys::CHURN)?;
        let nodes = self.required(&fields, "nodes", "this churn");
        let nodes = nodes.and_then(|field| self.names(field, "a node's name or a list of them"));
        let leave = match fields.find("leave") {
            Some(field) => {
                self.choice(field, &[("kill", NodeVerb::Kill), ("stop", NodeVerb::Stop)])
            }
            None => Some(NodeVerb::Kill),
        };
        let kind = self.churn_kind(&fields);
        Some(ChurnDraft { nodes: nodes?, leave: leave?, kind: kind? })
    }

    fn churn_kind(&mut self, fields: &Fields<'_>) -> Option<ChurnKind> {
        let kinds: [(&str, &[&str]); 3] = [
            ("rate", &["every", "away", "times", "for", "until"]),
            ("script", &["speed-up", "present"]),
            ("trace", &["speed-up"]),
        ];
        let found = kinds.iter().find_map(|(key, with)| Some((fields.find(key)?, *with)));
        let Some((subject, with)) = found else {
            if !fields.unknown {
                let message = "this churn says not who leaves when";
                let hint = "it needs `rate: 20%` with `every: 60s`, a `script` or a `trace`";
                self.mistake_with_hint(fields.place, message, hint);
            }
            return None;
        };
        let goes = |key: &str| {
            ["nodes", "leave", subject.key].contains(&key)
                || with.contains(&key)
                || !keys::CHURN.contains(&key)
        };
        if let Some(stray) = fields.all().find(|field| !goes(field.key)) {
            let message = format!("`{}` does not go with `{}`", stray.key, subject.key);
            self.mistake(stray.place, message);
            return None;
        }
        if subject.key == "rate" {
            return self.churn_rate(fields, subject);
        }
        let text = self.lines(subject);
        let speed = match fields.find("speed-up") {
            Some(field) => self.speed(field),
            None => Some(Speed::default()),
        };
        let present = match fields.find("present") {
            Some(field) => Some(self.amount(field)?),
            None => None,
        };
        let (text, speed) = (text?, speed?);
        Some(match subject.key {
            "script" => ChurnKind::Script { text, speed, present },
            _ => ChurnKind::Trace { text, speed },
        })
    }

    fn churn_rate(&mut self, fields: &Fields<'_>, subject: Field<'_>) -> Option<ChurnKind> {
        let rate = self.share_of_nodes(subject, "a share of the nodes such as 20%");
        let every = self.required(fields, "every", "churn at a rate").and_then(|f| self.period(f));
        let away = match fields.find("away") {
            Some(field) => self.time_at(field).map(|at| Some(at.value)),
            None => Some(None),
        };
        let end = self.end(fields);
        let rate = At { value: rate?, place: subject.value.place };
        Some(ChurnKind::Rate { rate, every: every?, away: away?, end: end? })
    }

    /// A text of several lines, or `{file: PATH}`.
    fn lines(&mut self, field: Field<'_>) -> Option<TextDraft> {
        if let Kind::Map(_) = &field.value.kind {
            let fields = self.fields(field, &format!("a {}", field.key), keys::ELSEWHERE)?;
            let file = self.required(&fields, "file", &format!("this {}", field.key))?;
            return self.text_at(file, "a path").map(TextDraft::There);
        }
        self.text_at(field, "a text of several lines, or {file: PATH}").map(TextDraft::Here)
    }

    fn speed(&mut self, field: Field<'_>) -> Option<Speed> {
        let needed = "a number such as 10 or 2.5";
        let text = self.text(field, needed)?;
        let speed = Speed::parse(text);
        if speed.is_none() {
            let shown = crate::text::shorten(text);
            self.mistake(field.wrong(), format!("{}: `{shown}` is not {needed}", field.key));
        }
        speed
    }
}

/// Nothing is repeated faster: a million events are a second of this.
const SHORTEST: Span = Span::from_micros(1);
