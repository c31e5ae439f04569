//! Routers: their names, and what they do beside forwarding.

mod firewall;
mod nat;
mod timeouts;

use serde_json::{Value as Json, json};

use crate::grammar::{
    Decoder, Name, NameListForm, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry,
    map, texts,
};
use crate::position::LocatedValue;
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
