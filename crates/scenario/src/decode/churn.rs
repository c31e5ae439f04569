//! Churn: nodes that leave and join.

use serde_json::{Value as Json, json};
use windtunnel_model::plan::NodeVerb;
use windtunnel_model::{Probability, Span};

use super::fault::{
    AmountForm, EndDraft, Ending, NodeAmount, Period, read_end, read_optional_at, read_share,
};
use super::names::NodeNames;
use crate::churn::Speed;
use crate::grammar::{
    Decoder, Fields, MapSchema, RequiredKeyForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, form, map, text, words,
};
use crate::position::LocatedValue;
use crate::text::shorten;
use crate::tree::YamlValueKind;

/// Churn.
#[derive(Debug)]
pub(crate) struct ChurnDraft {
    pub(crate) nodes: Vec<LocatedValue<String>>,
    /// How programs end: killed or stopped.
    pub(crate) leave: NodeVerb,
    pub(crate) kind: ChurnKind,
}

/// The description of which nodes leave and join when.
#[derive(Debug)]
pub(crate) enum ChurnKind {
    Rate {
        rate: LocatedValue<Probability>,
        every: LocatedValue<Span>,
        away: Option<Span>,
        end: EndDraft,
    },
    Script {
        text: TextDraft,
        speed: Speed,
        present: Option<LocatedValue<NodeAmount>>,
    },
    Trace {
        text: TextDraft,
        speed: Speed,
    },
}

/// A text in the file, or in another.
#[derive(Debug)]
pub(crate) enum TextDraft {
    Here(LocatedValue<String>),
    There(LocatedValue<String>),
}

map! {
    /// Nodes that leave and join: by `rate` with `every`, by a `script` in the churn language, or
    /// by a `trace`.
    Churn, ChurnDraft, by read_churn {
        /// The nodes or groups that take part.
        "nodes" NODES: RequiredKeyForm<NodeNames>,
        /// The share of the nodes that leaves in each period, and comes back.
        "rate" RATE: Share,
        /// The period.
        "every" EVERY: Period,
        /// How long each stays away; default: half a period.
        "away" AWAY: Span,
        ..Ending,
        /// Statements such as `at 30s join 10` and `from 5m to 10m keep churn 50%`, one a line.
        "script" SCRIPT: MultilineTextForm,
        /// For each node a line with the seconds at which it joins, leaves, joins …
        "trace" TRACE: MultilineTextForm,
        /// How many times faster a script or trace passes; default 1.
        "speed-up" SPEED_UP: Speed,
        /// How many nodes, or which share of them, are there before a `script` begins; default:
        /// none.
        "present" PRESENT: AmountForm,
        /// How programs end when their node leaves: `kill` (default) or `stop`.
        "leave" LEAVE: Leave,
    }
}

words! {
    /// How programs end.
    Leave: NodeVerb {
        /// SIGKILL.
        "kill" => NodeVerb::Kill,
        /// SIGTERM.
        "stop" => NodeVerb::Stop,
    }
}

fn read_churn(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ChurnDraft> {
    let fields = from.table::<Churn>(field, "churn")?;
    let nodes = from.need(&fields, Churn::NODES, "this churn");
    let leave = from.read_or(&fields, Churn::LEAVE, NodeVerb::Kill);
    let kind = read_kind(from, &fields);
    Some(ChurnDraft { nodes: nodes?, leave: leave?, kind: kind? })
}

fn read_kind(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<ChurnKind> {
    let kinds: [(&str, &[&str]); 3] = [
        ("rate", &["every", "away", "times", "for", "until"]),
        ("script", &["speed-up", "present"]),
        ("trace", &["speed-up"]),
    ];
    let found = kinds.iter().find_map(|(key, with)| Some((fields.find(key)?, *with)));
    let Some((subject, with)) = found else {
        if !fields.unknown {
            let message = "this churn says not which nodes leave when";
            let hint = "it needs `rate: 20%` with `every: 60s`, a `script` or a `trace`";
            from.mistake_with_hint(fields.place, message, hint);
        }
        return None;
    };
    let known = Churn::list();
    let goes = |key: &str| {
        ["nodes", "leave", subject.key].contains(&key)
            || with.contains(&key)
            || !known.contains(&key)
    };
    if let Some(stray) = fields.all().find(|field| !goes(field.key)) {
        let message = format!("`{}` does not go with `{}`", stray.key, subject.key);
        from.mistake(stray.place, message);
        return None;
    }
    if subject.key == Churn::RATE.name {
        return read_rate(from, fields);
    }
    let script = from.read(fields, Churn::SCRIPT);
    let trace = from.read(fields, Churn::TRACE);
    let speed = from.read_or(fields, Churn::SPEED_UP, Speed::default());
    let present = read_optional_at(from, fields, Churn::PRESENT)?;
    match (script?, trace?, speed?) {
        (Some(text), _, speed) => Some(ChurnKind::Script { text, speed, present }),
        (None, text, speed) => Some(ChurnKind::Trace { text: text?, speed }),
    }
}

fn read_rate(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<ChurnKind> {
    let rate = from.read_at(fields, Churn::RATE);
    from.required(fields, Churn::EVERY, "churn at a rate");
    let every = from.read(fields, Churn::EVERY).flatten();
    let away = from.read(fields, Churn::AWAY);
    let end = read_end(from, fields);
    Some(ChurnKind::Rate { rate: rate?, every: every?, away: away?, end: end? })
}

form! {
    /// A share of the nodes.
    Share: Probability, by read_share_form, like Probability::schema
}

fn read_share_form(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Probability> {
    read_share(from, field, "a share of the nodes such as 20%")
}

map! {
    /// A file of its own.
    Elsewhere {
        /// Its path; a relative one starts at the scenario's folder.
        "file" FILE: RequiredKeyForm<Path>,
    }
}

form! {
    /// A path.
    Path: LocatedValue<String>, by read_path, like text
}

fn read_path(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LocatedValue<String>> {
    from.text_at(field, "a path")
}

/// A text of several lines, or `{file: PATH}`.
struct MultilineTextForm;

impl ValueForm for MultilineTextForm {
    type Value = TextDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<TextDraft> {
        if let YamlValueKind::Map(_) = &field.value.kind {
            let fields = from.table::<Elsewhere>(field, &format!("a {}", field.key))?;
            let path = from.need(&fields, Elsewhere::FILE, &format!("this {}", field.key))?;
            return Some(TextDraft::There(path));
        }
        from.text_at(field, "a text of several lines, or {file: PATH}").map(TextDraft::Here)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        definitions.any_of(
            "Text",
            "A text of several lines, here or in a file.",
            &[
                SchemaAlternative("The text itself.", text),
                SchemaAlternative("In a file.", Elsewhere::definition),
            ],
        )
    }
}

impl ValueForm for Speed {
    type Value = Speed;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Speed> {
        let needed = "a number such as 10 or 2.5";
        let text = from.text(field, needed)?;
        let speed = Speed::parse(text);
        if speed.is_none() {
            from.mistake(
                field.wrong(),
                format!("{}: `{}` is not {needed}", field.key, shorten(text)),
            );
        }
        speed
    }

    fn schema(_: &mut SchemaDefinitions) -> Json {
        json!({"type": "number"})
    }
}
