//! Other names by which services call each other: a node has one, so the others are listed.

use std::collections::BTreeSet;

use windtunnel_scenario::Mistake;
use windtunnel_scenario::yaml::{Kind, Value};

use super::find;
use super::reader::{Map, Reader};
use crate::import::input::shorten;
use crate::topology::Notes;

/// Notes the names of the service `key` that do not lead to its node: its own, if a host cannot be
/// called that, `container_name`, `aliases`, and those that `links` gives to others.
pub(super) fn note(
    reader: &Reader<'_>,
    key: &str,
    keys: &Map,
    node: &str,
    notes: &mut Notes,
) -> Result<(), Mistake> {
    let mut names = BTreeSet::from([key.to_owned()]);
    if let Some(value) = find(keys, "container_name") {
        names.insert(reader.text(value, "container_name", notes)?);
    }
    if let Some(Value { kind: Kind::Map(networks), .. }) = find(keys, "networks") {
        for (_, value) in networks {
            let Kind::Map(inner) = &value.kind else { continue };
            if let Some(aliases) = find(inner, "aliases") {
                names.extend(reader.texts(aliases, "aliases", notes)?);
            }
        }
    }
    let text = "Names that lead nowhere: call the node by its own";
    for name in names.iter().filter(|name| *name != node) {
        notes.lose_once(text, format!("{} of {node}", shorten(name)));
    }
    if let Some(value) = find(keys, "links") {
        for link in reader.texts(value, "links", notes)? {
            if let Some((service, alias)) = link.split_once(':').filter(|(a, b)| a != b) {
                notes.lose_once(text, format!("{} of {}", shorten(alias), shorten(service)));
            }
        }
    }
    Ok(())
}
