//! LANs and their subnets.

use std::net::IpAddr;

use serde_json::{Value as Json, json};
use windtunnel_model::Subnet;

use super::pool::read_pool;
use crate::grammar::{
    Decoder, Name, SchemaAlternative, SchemaDefinitions, ValueForm, YamlMapEntry, form, map,
    one_or_two, texts,
};
use crate::position::LocatedValue;
use crate::text::shorten;
use crate::tree::YamlValueKind;

/// A LAN as the file has it.
#[derive(Debug)]
pub(crate) struct LanDraft {
    pub(crate) name: LocatedValue<String>,
    /// The subnets that it is given.
    pub(crate) subnets: Vec<LocatedValue<Subnet>>,
}

map! {
    /// A LAN.
    Lan, LanDraft, by read_lan {
        /// Its subnet, such as 192.168.1.0/24, or an IPv4 and an IPv6 one; default: from the end of
        /// the pools.
        "address" ADDRESS: Subnets,
    }
}

/// LANs: a list of names, or a map of names with what is known of each.
pub(super) struct Lans;

impl ValueForm for Lans {
    type Value = Vec<LanDraft>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Vec<LanDraft>> {
        if let YamlValueKind::Map(_) = field.value.kind {
            let entries = from.map(field, "a map of names and LANs")?;
            return Some(entries.all().filter_map(|entry| read_lan(from, entry)).collect());
        }
        let items = from.list(field, "a list of names, or a map of names and LANs")?;
        let names = items.filter_map(|item| Name::read(from, item));
        Some(names.map(|name| LanDraft { name, subnets: Vec::new() }).collect())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let map = |definitions: &mut SchemaDefinitions| {
            let lan = Lan::schema(definitions);
            json!({"type": "object", "additionalProperties": {"anyOf": [lan, {"type": "null"}]}})
        };
        definitions.any_of(
            "Lans",
            "The LANs.",
            &[
                SchemaAlternative("Their names.", texts),
                SchemaAlternative("With what is known of each.", map),
            ],
        )
    }
}

fn read_lan(from: &mut Decoder<'_>, entry: YamlMapEntry<'_>) -> Option<LanDraft> {
    let name = LocatedValue { value: entry.key.to_owned(), place: entry.place };
    if !entry.is_some() {
        return Some(LanDraft { name, subnets: Vec::new() });
    }
    let fields = from.table::<Lan>(entry, "a LAN")?;
    Some(LanDraft { name, subnets: from.read_or(&fields, Lan::ADDRESS, Vec::new())? })
}

form! {
    /// A subnet, or one of each family.
    Subnets: Vec<LocatedValue<Subnet>>, by read_subnets, like one_or_two
}

fn read_subnets(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<Subnet>>> {
    let mut subnets: Vec<LocatedValue<Subnet>> = Vec::new();
    for text in from.names(field, "a subnet such as 192.168.1.0/24, or a list of two")? {
        let (network, prefix) = read_pool(from, &text.value, text.place)?;
        let same =
            |known: &LocatedValue<Subnet>| known.value.network.is_ipv4() == network.is_ipv4();
        if subnets.iter().any(same) {
            let family = if matches!(network, IpAddr::V4(_)) { "IPv4" } else { "IPv6" };
            let shown = shorten(&text.value);
            let message = format!("address: `{shown}` is a second {family} subnet of this LAN");
            from.mistake(text.place, message);
            return None;
        }
        subnets.push(LocatedValue { value: Subnet { network, prefix }, place: text.place });
    }
    Some(subnets)
}
