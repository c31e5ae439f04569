//! Routers: their names, and what they do beside forwarding.

mod firewall;
mod nat;

use serde_json::{Value as Json, json};
use windtunnel_model::Span;
use windtunnel_model::plan::Timeouts;

use super::{Decoder, Fields, LocatedValue, YamlMapEntry};
use crate::grammar::{
    Name, NameListForm, SchemaAlternative, SchemaDefinitions, ValueForm, form, map, texts,
};
use crate::text::shorten;
use crate::tree::YamlValueKind;
use firewall::FirewallForm;
pub(crate) use firewall::{FirewallDraft, RuleDraft};
use nat::NatForm;
pub(crate) use nat::{ForwardDraft, NatDraft};

/// A router as the file has it.
#[derive(Debug)]
pub(crate) struct RouterDraft {
    pub(crate) name: LocatedValue<String>,
    /// Links or neighbours on the inside.
    pub(crate) inside: Option<Vec<LocatedValue<String>>>,
    pub(crate) outside: Option<Vec<LocatedValue<String>>>,
    pub(crate) nat: Option<LocatedValue<NatDraft>>,
    pub(crate) firewall: Option<LocatedValue<FirewallDraft>>,
}

impl RouterDraft {
    fn plain(name: LocatedValue<String>) -> Self {
        RouterDraft { name, inside: None, outside: None, nat: None, firewall: None }
    }

    /// Whether it does more than forward.
    pub(crate) fn is_middlebox(&self) -> bool {
        self.nat.is_some() || self.firewall.is_some()
    }
}

map! {
    /// What a router does beside forwarding.
    Router, RouterDraft, by read_router {
        /// The links that lead inside, or the neighbours at their ends (nodes, groups, routers, LANs);
        /// the others are outside. Default: all links but those towards other routers, if these
        /// are on one side of the router.
        "inside" INSIDE: NameListForm,
        /// The links that lead outside, or the neighbours at their ends; the others are inside.
        "outside" OUTSIDE: NameListForm,
        /// Translates the IPv4 addresses of what passes between inside and outside.
        "nat" NAT: NatForm,
        /// Lets some packets pass and others not.
        "firewall" FIREWALL: FirewallForm,
    }
}

/// Routers: a list of names, or a map of names with what each does.
pub(super) struct Routers;

impl ValueForm for Routers {
    type Value = Vec<RouterDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<RouterDraft>> {
        if let YamlValueKind::Map(_) = field.value.kind {
            let entries = from.map(field, "a map of names and routers")?;
            return Some(entries.all().filter_map(|entry| read_router(from, entry)).collect());
        }
        let items = from.list(field, "a list of names, or a map of names and routers")?;
        let names = items.filter_map(|item| Name::read(from, item));
        Some(names.map(RouterDraft::plain).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let map = |definitions: &mut SchemaDefinitions| {
            let router = Router::schema(definitions);
            json!({"type": "object", "additionalProperties": {"anyOf": [router, {"type": "null"}]}})
        };
        definitions.any_of(
            "Routers",
            "The routers.",
            &[
                SchemaAlternative("Their names.", texts),
                SchemaAlternative("With what each does.", map),
            ],
        )
    }
}

fn read_router(from: &mut Decoder<'_>, entry: YamlMapEntry<'_>) -> Option<RouterDraft> {
    let name = LocatedValue { value: entry.key.to_owned(), place: entry.place };
    if !entry.is_some() {
        return Some(RouterDraft::plain(name));
    }
    let fields = from.table::<Router>(entry, "a router")?;
    let draft = RouterDraft {
        name,
        inside: from.read(&fields, Router::INSIDE)?,
        outside: from.read(&fields, Router::OUTSIDE)?,
        nat: from.read_at_key(&fields, Router::NAT),
        firewall: from.read_at_key(&fields, Router::FIREWALL),
    };
    for (key, side) in [("inside", &draft.inside), ("outside", &draft.outside)] {
        if let (Some(field), true, false) =
            (fields.find(key), side.is_some(), fields.has("nat") || fields.has("firewall"))
        {
            let message = format!("{key}: a router without `nat` and `firewall` has no sides");
            from.mistake(field.place, message);
            return None;
        }
    }
    Some(draft)
}

map! {
    /// How long a flow without packets is known.
    TimeoutKeys {
        /// A UDP flow without a packet for so long is forgotten; default 5min (RFC 4787, REQ-5).
        "udp-timeout" UDP: Timeout,
        /// An established TCP connection without a segment for so long is forgotten; default 2h4min
        /// (RFC 5382, REQ-5).
        "tcp-timeout" TCP: Timeout,
        /// A TCP connection that is not established yet, or closed, is forgotten after so long;
        /// default 4min (RFC 5382, REQ-5).
        "tcp-transitory-timeout" TCP_TRANSITORY: Timeout,
        /// An ICMP query without a message for so long is forgotten; default 60s (RFC 5508, REQ-2).
        "icmp-timeout" ICMP: Timeout,
    }
}

fn read_timeouts(from: &mut Decoder<'_>, fields: &Fields<'_>) -> Option<Timeouts> {
    let default = Timeouts::NAT;
    Some(Timeouts {
        udp: from.read_or(fields, TimeoutKeys::UDP, default.udp)?,
        tcp: from.read_or(fields, TimeoutKeys::TCP, default.tcp)?,
        tcp_transitory: from.read_or(
            fields,
            TimeoutKeys::TCP_TRANSITORY,
            default.tcp_transitory,
        )?,
        icmp: from.read_or(fields, TimeoutKeys::ICMP, default.icmp)?,
    })
}

form! {
    /// How long a flow without packets is known.
    Timeout: Span, by read_timeout, like Span::schema
}

fn read_timeout(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Span> {
    let timeout = Span::read(from, field)?;
    let (least, most) = (Timeouts::LEAST, Timeouts::MOST);
    if !(least..=most).contains(&timeout) {
        let message = format!("{}: `{timeout}` is not between {least} and {most}", field.key);
        from.mistake(field.wrong(), message);
        return None;
    }
    Some(timeout)
}

fn read_ports(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<windtunnel_model::plan::PortRange> {
    let needed = "a range of ports such as 40000-49999";
    let text = from.text(field, needed)?;
    let range = windtunnel_model::plan::PortRange::of(text);
    if range.is_none() {
        let message = format!("{}: `{}` is not {needed}", field.key, shorten(text));
        from.mistake(field.wrong(), message);
    }
    range
}

form! {
    /// A range of ports.
    PortsForm: windtunnel_model::plan::PortRange, by read_ports, like ports_schema
}

fn ports_schema(definitions: &mut SchemaDefinitions) -> Json {
    let description = "A port, or ports from the first to the last.";
    let pattern = "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$";
    definitions.text("PortRange", description, pattern, "40000-49999")
}
