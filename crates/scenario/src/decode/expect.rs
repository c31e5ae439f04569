//! Expectations: what must hold at the end.

mod bounds;
mod drops;
mod figure;
mod program;
mod service;

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::expect::{ExpectationWindow, LinkFact, PacketCount, PathFact, ProgramFact};

use super::names::DirectionName;
use crate::grammar::{
    Decoder, Fields, ListElement, MapSchema, Name, SchemaDefinitions, ValueForm, YamlMapEntry,
    form, map, text, texts,
};
use crate::position::{LocatedValue, SourceLocation};
use bounds::{CountBoundsForm, ShareBounds};
use drops::DropBoundsForm;
use figure::{LatenessFigures, QueueFigures, RateFact, RateFigures, RttFigures};
use program::{Members, NodeFacts, read_program_facts};
pub(crate) use service::ServiceExpected;
use service::{ServiceFacts, read_service_expected};

/// An expectation as the file has it; each of its facts becomes one of the plan.
#[derive(Debug)]
pub(crate) struct ExpectDraft {
    pub(crate) place: SourceLocation,
    pub(crate) window: Option<LocatedValue<ExpectationWindow>>,
    pub(crate) subject: Subject,
}

/// What it is about.
#[derive(Debug)]
pub(crate) enum Subject {
    Node {
        node: LocatedValue<String>,
        any: bool,
        facts: Vec<ProgramFact>,
    },
    Path {
        ends: [LocatedValue<String>; 2],
        every: Option<LocatedValue<Span>>,
        facts: Vec<PathFact>,
    },
    Link {
        link: LocatedValue<String>,
        direction: LocatedValue<String>,
        facts: Vec<LinkFact>,
    },
    Service {
        service: LocatedValue<String>,
        expected: ServiceExpected,
    },
}

map! {
    /// What must hold at the end: of the programs of a `node`, of the `path` between two nodes, of
    /// one `direction` of a `link`, or of a `service`. Everything named must hold; of a group, for each member.
    Expect, ExpectDraft, by read_expectation {
        /// The node or group whose programs are meant.
        "node" NODE: Name,
        ..NodeFacts,
        /// Of a group: `each` (default) member must do it, or `any` suffices.
        "of" OF: Members,
        /// The two nodes of a path.
        "path" PATH: PathEndsForm,
        /// Bounds of the round-trip time of windtunnel's own echo requests: sent in the window
        /// `between`, or without one 20 before the programs start.
        "rtt" RTT: RttFigures,
        /// Bounds of the rate of TCP and UDP payload that the path's first node got delivered to
        /// its second, repetitions included.
        "throughput" THROUGHPUT: RateFigures,
        /// How often echo requests are sent in the window; default 100ms.
        "every" EVERY: Span,
        /// The link, or a group's links, each.
        "link" LINK: LinkName,
        /// Its direction: `up`, `down` or `from-to`.
        "direction" DIRECTION: DirectionName,
        /// Bounds of the rate that it delivered, with overhead.
        "rate" RATE: RateFigures,
        /// Of a link, the share of packets that its loss took; of a path, of echo requests without
        /// reply.
        "loss" LOSS: ShareBounds,
        /// Bounds of the number of packets dropped, of its share, or by cause; a number alone is
        /// exact.
        "drops" DROPS: DropBoundsForm,
        /// Bounds of what waited in its queue, in packets, bytes or time.
        "queue" QUEUE: QueueFigures,
        /// Bounds of the number of packets that came to its start.
        "offered" OFFERED: CountBoundsForm,
        /// Bounds of the number of packets that came out at its end.
        "delivered" DELIVERED: CountBoundsForm,
        /// Bounds of the number of packets marked with ECN congestion experienced.
        "marked" MARKED: CountBoundsForm,
        /// Bounds of how late packets left it.
        "lateness" LATENESS: LatenessFigures,
        /// The service that is meant.
        "service" SERVICE: Name,
        ..ServiceFacts,
        /// The part of the run that is meant: two times after the run began, such as `[10s, 20s]`,
        /// or `[10s, end]`; default: all of it.
        "between" BETWEEN: TimeWindowForm,
    }
}

impl ListElement for Expect {
    const LIST: &'static str = "a list of expectations";
}

/// What an expectation may be of: what can be expected of it, and the other keys that go with it.
const SUBJECTS: [(&str, &[&str], &[&str]); 4] = [
    ("node", &["exit", "exited", "ready", "runtime", "log"], &["of", "between"]),
    ("path", &["rtt", "loss", "throughput"], &["every", "between"]),
    (
        "link",
        &["rate", "loss", "drops", "queue", "offered", "delivered", "marked", "lateness"],
        &["direction", "between"],
    ),
    ("service", &["expelled", "lost", "unserved", "share", "gap"], &[]),
];

fn read_expectation(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ExpectDraft> {
    let fields = from.table::<Expect>(field, "an expectation")?;
    let subject = find_subject(from, &fields)?;
    let window = from.read_at(&fields, Expect::BETWEEN);
    if fields.has(Expect::BETWEEN) && window.is_none() {
        return None;
    }
    let subject = match subject {
        "node" => read_of_node(from, &fields),
        "path" => read_of_path(from, &fields, window.as_ref()),
        "service" => read_of_service(from, &fields),
        _ => read_of_link(from, &fields, window.is_some()),
    };
    Some(ExpectDraft { place: fields.place, window, subject: subject? })
}

/// What an expectation is of; the other keys must go with it, and one must be expected.
fn find_subject(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<&'static str> {
    let Some((subject, facts, with)) = SUBJECTS.iter().find(|(key, ..)| fields.has(*key)) else {
        if !fields.unknown {
            let message = "this expectation says not of what";
            let hint = "it needs `node`, `path`, `link` or `service`, and what is expected of it";
            from.mistake_with_hint(fields.place, message, hint);
        }
        return None;
    };
    let known = Expect::list();
    let goes = |key: &str| key == *subject || facts.contains(&key) || with.contains(&key);
    if let Some(stray) = fields.all().find(|field| known.contains(&field.key) && !goes(field.key)) {
        let message = format!("`{}` does not go with `{subject}`", stray.key);
        from.mistake(stray.place, message);
        return None;
    }
    if !facts.iter().any(|fact| fields.has(*fact)) {
        if !fields.unknown {
            let message = format!("this expectation says not what is expected of the {subject}");
            let hint = format!("it needs one of {}", facts.join(", "));
            from.mistake_with_hint(fields.place, message, hint);
        }
        return None;
    }
    Some(*subject)
}

/// `between: [10s, 20s]` or `[10s, end]`.
struct TimeWindowForm;

impl ValueForm for TimeWindowForm {
    type Value = ExpectationWindow;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<ExpectationWindow> {
        let needed = "a list of two times after the run began, such as [10s, 20s] or [10s, end]";
        let ends: Vec<_> = from.list(field, needed)?.collect();
        let [start, end] = ends[..] else {
            from.mistake(field.wrong(), format!("`between` must be {needed}"));
            return None;
        };
        let start = Span::read(from, start)?;
        let end = match end.scalar() {
            Some("end") => None,
            _ => Some(from.quantity::<Span>(end, "a time such as 20s, or `end`")?),
        };
        if let Some(end) = end.filter(|end| *end <= start) {
            let message = format!("between: the end ({end}) is not after the beginning ({start})");
            from.mistake(field.value.place, message);
            return None;
        }
        Some(ExpectationWindow { from: start, to: end })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let pattern = r"^(end|[0-9]+(\.[0-9]+)? ?(ns|us|µs|ms|s|min|h))$";
        let description = "A time with a unit, or `end` for the end of the run.";
        let time = definitions.text("TimeOrEnd", description, pattern, "20s");
        json!({"type": "array", "items": time, "minItems": 2, "maxItems": 2})
    }
}

fn read_of_node(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<Subject> {
    let node = fields.get(Expect::NODE).and_then(|field| from.text_at(field, "a node's name"));
    let timed = ["exit", "exited", "ready", "runtime"].into_iter().any(|key| fields.has(key));
    if let Some(between) = fields.get(Expect::BETWEEN).filter(|_| timed) {
        let hint = "bound the time itself, such as `exited: {min: 10s, max: 20s}`";
        from.mistake_with_hint(between.place, "`between` goes with `log` only", hint);
        return None;
    }
    let any = from.read_or(fields, Expect::OF, false)?;
    let facts = read_program_facts(from, fields)?;
    Some(Subject::Node { node: node?, any, facts })
}

fn read_of_path(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    window: Option<&LocatedValue<ExpectationWindow>>,
) -> Option<Subject> {
    let ends = from.read(fields, Expect::PATH).flatten();
    let rtt = from.read_or(fields, Expect::RTT, Vec::new());
    let loss = from.read(fields, Expect::LOSS);
    let throughput = from.read_or(fields, Expect::THROUGHPUT, Vec::new());
    let mut facts = Vec::new();
    facts.extend(rtt?.into_iter().map(|(what, bounds)| PathFact::Rtt(what, bounds)));
    facts.extend(loss?.map(PathFact::Loss));
    facts.extend(throughput?.into_iter().map(|fact| match fact {
        RateFact::Level(what, bounds) => PathFact::Throughput(what, bounds),
        RateFact::Deviation(bounds) => PathFact::Deviation(bounds),
    }));
    let every = read_every(from, fields, window)?;
    Some(Subject::Path { ends: ends?, every, facts })
}

/// How often echo requests are sent.
fn read_every(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    window: Option<&LocatedValue<ExpectationWindow>>,
) -> Option<Option<LocatedValue<Span>>> {
    let Some(field) = fields.get(Expect::EVERY) else { return Some(None) };
    let every = Span::read(from, field)?;
    let echoes = fields.has(Expect::RTT) || fields.has(Expect::LOSS);
    if !echoes || window.is_none() {
        let hint =
            "echo requests are sent for `rtt` or `loss` with a window, `between: [10s, 20s]`";
        from.mistake_with_hint(field.place, "`every` has nothing to time", hint);
        return None;
    }
    if every < EVERY_LEAST {
        from.mistake(field.wrong(), format!("every: {every} is less than {EVERY_LEAST}"));
        return None;
    }
    Some(Some(LocatedValue { value: every, place: field.value.place }))
}

/// The two ends of a path.
struct PathEndsForm;

impl ValueForm for PathEndsForm {
    type Value = [LocatedValue<String>; 2];

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<[LocatedValue<String>; 2]> {
        let needed = "a list of two nodes";
        let names = from.list(field, needed)?;
        let names: Vec<_> = names.map(|name| Name::read(from, name)).collect::<Option<_>>()?;
        let ends = <[LocatedValue<String>; 2]>::try_from(names).ok();
        if ends.is_none() {
            from.mistake(field.wrong(), format!("`path` must be {needed}"));
        }
        ends
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let mut schema = texts(definitions);
        (schema["minItems"], schema["maxItems"]) = (json!(2), json!(2));
        schema
    }
}

form! {
    /// The name of a link.
    LinkName: LocatedValue<String>, by read_link_name, like text
}

fn read_link_name(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LocatedValue<String>> {
    from.text_at(field, "a link's name")
}

fn read_of_link(from: &mut Decoder<'_>, fields: &Fields<'_>, in_window: bool) -> Option<Subject> {
    let link = from.read(fields, Expect::LINK).flatten();
    if !fields.has(Expect::DIRECTION) && !fields.unknown {
        let hint = "write `direction: up`, `down`, or the ends as `from-to`";
        from.mistake_with_hint(fields.place, "this expectation lacks `direction`", hint);
    }
    let rate = from.read_or(fields, Expect::RATE, Vec::new());
    let loss = from.read(fields, Expect::LOSS);
    let drops = from.read_or(fields, Expect::DROPS, Vec::new());
    let queue = from.read_or(fields, Expect::QUEUE, Vec::new());
    let late = from.read_or(fields, Expect::LATENESS, LatenessFigures::default());
    let mut facts = Vec::new();
    facts.extend(rate?.into_iter().map(|fact| match fact {
        RateFact::Level(what, bounds) => LinkFact::Rate(what, bounds),
        RateFact::Deviation(bounds) => LinkFact::Deviation(bounds),
    }));
    facts.extend(loss?.map(LinkFact::Loss));
    facts.extend(drops?);
    facts.extend(queue?.into_iter().map(|(level, bounds)| LinkFact::Queue(level, bounds)));
    let counts = [
        (Expect::OFFERED, PacketCount::Offered),
        (Expect::DELIVERED, PacketCount::Delivered),
        (Expect::MARKED, PacketCount::Marked),
    ];
    for (key, which) in counts {
        facts.extend(from.read(fields, key)?.map(|bounds| LinkFact::Packets(which, bounds)));
    }
    let late = late?.checked(from, in_window)?;
    facts.extend(late.into_iter().map(|(level, bounds)| LinkFact::Lateness(level, bounds)));
    let direction = from.read(fields, Expect::DIRECTION)??;
    Some(Subject::Link { link: link?, direction, facts })
}

fn read_of_service(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<Subject> {
    let service = from.read(fields, Expect::SERVICE).flatten();
    let expected = read_service_expected(from, fields)?;
    Some(Subject::Service { service: service?, expected })
}

/// More often, and the echoes would be a load of their own.
const EVERY_LEAST: Span = Span::from_millis(1);
