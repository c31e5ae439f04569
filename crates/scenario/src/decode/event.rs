//! Events: changes at a time.

mod partition;

use windtunnel_model::Span;
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::NodeVerb;

use super::churn::{Churn, ChurnDraft};
use super::fault::{
    AmountForm, Ending, Flap, FlapDraft, NodeAmount, Period, RepeatDraft, read_end,
};
use super::limits::LimitChangeForm;
use super::link::{Both, LinkKeys};
use super::names::{DirectionName, LinkNames, NodeNames};
use super::route::{EventRoute, RouteDraft};
use super::service::{OfServices, ServiceEventDraft, read_service_event};
use crate::grammar::{Decoder, Fields, ListElement, MapSchema, YamlMapEntry, form, map, words};
use crate::position::{LocatedValue, SourceLocation};
use crate::tree::{YamlValue, YamlValueKind};
use partition::Partition;
pub(crate) use partition::PartitionDraft;

/// An event as the file has it.
#[derive(Debug)]
pub(crate) struct EventDraft {
    pub(crate) place: SourceLocation,
    pub(crate) at: LocatedValue<Span>,
    pub(crate) repeat: Option<RepeatDraft>,
    pub(crate) kind: EventDraftKind,
}

/// What it does.
#[derive(Debug)]
pub(crate) enum EventDraftKind {
    Link {
        links: Vec<LocatedValue<String>>,
        direction: Option<LocatedValue<String>>,
        set: Box<LinkKeys>,
        /// Taken up (`true`) or down.
        state: Option<bool>,
    },
    Node {
        nodes: Vec<LocatedValue<String>>,
        verb: NodeVerb,
        /// Only so many of them.
        some: Option<LocatedValue<NodeAmount>>,
    },
    Limit {
        nodes: Vec<LocatedValue<String>>,
        limits: Demand,
    },
    Partition(PartitionDraft),
    Heal,
    Route(RouteDraft),
    Reroute,
    Flap(FlapDraft),
    Churn(ChurnDraft),
    Service(ServiceEventDraft),
}

map! {
    /// A change at a time: of links (`link` with `set`, `down`, `up`), of a node's programs (`node`
    /// with `do`) or its limits (`node` with `limit`), a `partition`, its end (`heal`), a `route`, or of all shortest routes
    /// (`reroute`), a `flap`, `churn`, or of a `service`. With `every` it happens again and again.
    Event, EventDraft, by read_event {
        /// When, counted from the start of the run. Only `churn` may leave it out: then it is 0s.
        "at" AT: Span,
        /// It happens again each time that this has passed, until `times`, `for`, `until` or the
        /// duration of the run ends it.
        "every" EVERY: Period,
        ..Ending,
        ..OfLinks,
        ..OfNodes,
        ..OfServices,
        /// Cuts every link between these groups of nodes, routers and LANs, and on a LAN every
        /// frame between attachments of different groups; or one way; or between the two of each
        /// pair. It takes the place of an earlier partition.
        "partition" PARTITION: Partition,
        /// Ends the partition. Links that are down or flapping stay so.
        "heal" HEAL: True,
        /// Fixes a route from now on, or with `via: shortest` sets it free. Packets under way may
        /// arrive out of order.
        "route" ROUTE: EventRoute,
        /// Computes all shortest routes again, for the latencies and links as they are now, and
        /// around links that are down. Packets under way may arrive out of order.
        "reroute" REROUTE: True,
        /// Cuts links again and again for a short time.
        "flap" FLAP: Flap,
        /// Nodes leave and join.
        "churn" CHURN: Churn,
    }
}

map! {
    /// A change of links.
    OfLinks {
        /// The link or links that change; the name of a group's links means all of them.
        "link" LINK: LinkNames,
        /// Only this direction: `up`, `down` or `from-to`.
        "direction" DIRECTION: DirectionName,
        /// New properties; what is not named stays as it is.
        "set" SET: Both,
        /// Takes the link down, or only one `direction` of it: it drops everything until it is up.
        "down" DOWN: True,
        /// Brings the link up again.
        "up" UP: True,
    }
}

map! {
    /// A change of nodes: of their programs or of their limits.
    OfNodes {
        /// The nodes or groups that are concerned.
        "node" NODE: NodeNames,
        /// New limits; what is not named stays as it is. Programs go on under them.
        "limit" LIMIT: LimitChangeForm,
        /// What happens to them.
        "do" DO: Verb,
        /// Only so many of the nodes, or this share of them (rounded, at least one), chosen by the
        /// seed.
        "some" SOME: AmountForm,
    }
}

words! {
    /// What can be done to a node's programs.
    Verb: NodeVerb {
        /// SIGKILL, and no restart.
        "kill" => NodeVerb::Kill,
        /// SIGTERM, and no restart.
        "stop" => NodeVerb::Stop,
        /// SIGSTOP.
        "pause" => NodeVerb::Pause,
        /// SIGCONT.
        "resume" => NodeVerb::Resume,
        /// SIGKILL, then started again.
        "restart" => NodeVerb::Restart,
    }
}

impl ListElement for Event {
    const LIST: &'static str = "a list of events";
}

/// Events that happen now: one, or a list of them.
pub(crate) fn decode_now(from: &mut Decoder<'_>, root: &YamlValue) -> Vec<EventDraft> {
    let field = YamlMapEntry { key: "", place: root.place, value: root };
    let fields = match &root.kind {
        YamlValueKind::List(items) => items.iter().map(|item| field.with(item)).collect(),
        _ => vec![field],
    };
    fields.into_iter().filter_map(|field| read_now(from, field)).collect()
}

fn read_event(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<EventDraft> {
    let fields = from.table::<Event>(field, "an event")?;
    // What nodes do all the time needs no beginning.
    let from_start = fields.has(Event::CHURN) && !fields.has(Event::AT);
    let at = match from_start {
        true => Some(LocatedValue { value: Span::ZERO, place: fields.place }),
        false => {
            from.required(&fields, Event::AT, "this event");
            from.read_at(&fields, Event::AT)
        }
    };
    read_at(from, &fields, at)
}

fn read_now(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<EventDraft> {
    if !matches!(field.value.kind, YamlValueKind::Map(_)) {
        let message = "here an event such as {link: NAME, down: true} is needed";
        from.mistake(field.wrong(), message);
        return None;
    }
    let fields = from.table::<Event>(field, "an event")?;
    if let Some(at) = fields.get(Event::AT) {
        from.mistake_with_hint(at.place, "`at`: this event happens now", "leave `at` out");
        return None;
    }
    let at = LocatedValue { value: Span::ZERO, place: fields.place };
    read_at(from, &fields, Some(at))
}

fn read_at(
    from: &mut Decoder<'_>,
    fields: &Fields<'_>,
    at: Option<LocatedValue<Span>>,
) -> Option<EventDraft> {
    let subject = find_subject(from, fields)?;
    let repeat = read_repeat(from, fields);
    let kind = match subject.key {
        "link" => read_link_event(from, fields),
        "node" => read_node_event(from, fields),
        "partition" => from.read(fields, Event::PARTITION).flatten().map(EventDraftKind::Partition),
        "route" => from.read(fields, Event::ROUTE).flatten().map(EventDraftKind::Route),
        "reroute" => from.read(fields, Event::REROUTE).flatten().map(|()| EventDraftKind::Reroute),
        "flap" => from.read(fields, Event::FLAP).flatten().map(EventDraftKind::Flap),
        "churn" => from.read(fields, Event::CHURN).flatten().map(EventDraftKind::Churn),
        "service" => read_service_event(from, fields).map(EventDraftKind::Service),
        _ => from.read(fields, Event::HEAL).flatten().map(|()| EventDraftKind::Heal),
    };
    Some(EventDraft { place: fields.place, at: at?, repeat: repeat?, kind: kind? })
}

/// The keys that say what an event is about.
const SUBJECTS: [&str; 9] =
    ["link", "node", "partition", "heal", "route", "reroute", "flap", "churn", "service"];

/// The one key that says what the event is about; the others must go with it.
fn find_subject<'t>(from: &mut Decoder<'_>, fields: &Fields<'t>) -> Option<YamlMapEntry<'t>> {
    let found = SUBJECTS.into_iter().find_map(|key| Some((key, fields.find(key)?)));
    let Some((name, subject)) = found else {
        if !fields.unknown {
            let message = "this event says not what happens";
            let hint = "it needs one of `link`, `node`, `partition`, `heal`, `route`, `reroute`, \
                        `flap`, `churn` or `service`";
            from.mistake_with_hint(fields.place, message, hint);
        }
        return None;
    };
    let mut with = vec![name, Event::AT.name];
    // A flap and churn have the keys of a repetition inside.
    let inside = match name {
        "flap" => Flap::list(),
        "churn" => Churn::list(),
        _ => {
            with.push(Event::EVERY.name);
            Ending::keys(&mut with);
            Vec::new()
        }
    };
    match name {
        "link" => OfLinks::keys(&mut with),
        "node" => OfNodes::keys(&mut with),
        "service" => OfServices::keys(&mut with),
        _ => {}
    }
    let known = Event::list();
    let stray = fields.all().find(|field| known.contains(&field.key) && !with.contains(&field.key));
    let Some(stray) = stray else { return Some(subject) };
    let message = format!("`{}` does not go with `{name}`", stray.key);
    let hint = match inside.contains(&stray.key) {
        true => format!("write it inside: `{name}: {{{}: …}}`", stray.key),
        false => "write two events with the same `at`".to_owned(),
    };
    from.mistake_with_hint(stray.place, message, hint);
    None
}

/// `every` and what ends it; `Some(None)` where the event happens once.
fn read_repeat(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<Option<RepeatDraft>> {
    if !fields.has(Event::EVERY) {
        let Some(stray) = Ending::list().iter().find_map(|key| fields.find(key)) else {
            return Some(None);
        };
        let message = format!("`{}` without `every`: this happens once", stray.key);
        from.mistake_with_hint(stray.place, message, "add `every: 10s`");
        return None;
    }
    let every = from.read(fields, Event::EVERY).flatten();
    let end = read_end(from, fields);
    Some(Some(RepeatDraft { every: every?, end: end? }))
}

fn read_link_event(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<EventDraftKind> {
    let links = from.read(fields, OfLinks::LINK).flatten();
    let direction = from.read(fields, OfLinks::DIRECTION);
    let set = from.read(fields, OfLinks::SET).flatten().unwrap_or_default();
    let up = from.read(fields, OfLinks::UP);
    let down = from.read(fields, OfLinks::DOWN);
    if fields.has(OfLinks::UP) && fields.has(OfLinks::DOWN) {
        from.mistake(fields.place, "a link cannot be taken `up` and `down` at once");
        return None;
    }
    let state = up?.map(|()| true).or(down?.map(|()| false));
    if state.is_none() && !fields.has(OfLinks::SET) && !fields.unknown {
        let hint = "it needs `set: {…}`, `down: true` or `up: true`";
        from.mistake_with_hint(fields.place, "this event changes nothing", hint);
        return None;
    }
    Some(EventDraftKind::Link { links: links?, direction: direction?, set: Box::new(set), state })
}

fn read_node_event(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<EventDraftKind> {
    let nodes = from.read(fields, OfNodes::NODE).flatten();
    let some = from.read_at(fields, OfNodes::SOME);
    if let Some(limit) = fields.get(OfNodes::LIMIT) {
        let limits = from.read(fields, OfNodes::LIMIT).flatten();
        if fields.has(OfNodes::DO) || fields.has(OfNodes::SOME) {
            let message = "`limit` goes neither with `do` nor with `some`";
            from.mistake_with_hint(limit.place, message, "write two events with the same `at`");
            return None;
        }
        return Some(EventDraftKind::Limit { nodes: nodes?, limits: limits? });
    }
    let verb = from.need(fields, OfNodes::DO, "this event")?;
    if fields.has(OfNodes::SOME) && some.is_none() {
        return None;
    }
    Some(EventDraftKind::Node { nodes: nodes?, verb, some })
}

form! {
    /// `true`: the key stands there to say that something happens.
    True: (), by read_true, like bool::schema
}

fn read_true(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<()> {
    if from.flag(field)? {
        return Some(());
    }
    let message = format!("`{}: false` says nothing", field.key);
    let hint = format!("write `{}: true` or leave it out", field.key);
    from.mistake_with_hint(field.wrong(), message, hint);
    None
}
