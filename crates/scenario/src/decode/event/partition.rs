//! Partitions: which nodes are cut off from which.

use serde_json::{Value as Json, json};

use super::EventKind;
use crate::decode::{At, Decoder, Field};
use crate::grammar::{Definitions, Form, Names, Required, form, map, texts};
use crate::tree::Kind;

map! {
    /// A partition of one way: nothing passes `from` these `to` those; the way back stays open.
    OneWay {
        /// Nodes and routers.
        "from" FROM: Required<Group>,
        /// Nodes and routers.
        "to" TO: Required<Group>,
    }
}

/// The groups between which nothing passes.
pub(super) struct Partition;

impl Form for Partition {
    type Value = EventKind;

    fn read(from: &mut Decoder<'_>, field: Field<'_>) -> Option<EventKind> {
        let place = field.place;
        if let Kind::Map(_) = &field.value.kind {
            let fields = from.table::<OneWay>(field, "a partition of one way")?;
            let [start, end] = [OneWay::FROM, OneWay::TO]
                .map(|key| from.need(&fields, key, "a partition of one way"));
            return Some(EventKind::Partition { place, groups: vec![start?, end?], one_way: true });
        }
        let needed = "a list of two or more lists of names, or {from: […], to: […]}";
        let groups: Vec<_> = from.list(field, needed)?.collect();
        if groups.len() < 2 {
            from.mistake(field.wrong(), format!("`partition` must be {needed}"));
            return None;
        }
        let read = groups.into_iter().map(|group| {
            if !matches!(group.value.kind, Kind::List(_)) {
                return from.wrong_type(group, needed);
            }
            Group::read(from, group)
        });
        let groups = read.collect::<Option<Vec<_>>>()?;
        Some(EventKind::Partition { place, groups, one_way: false })
    }

    fn schema(definitions: &mut Definitions) -> Json {
        let lists = |definitions: &mut Definitions| {
            let names = texts(definitions);
            json!({"type": "array", "items": names, "minItems": 2})
        };
        definitions.any_of(
            "Partition",
            "The groups of a partition.",
            &[
                ("Nothing passes between these groups.", lists),
                ("Nothing passes one way.", OneWay::definition),
            ],
        )
    }
}

form! {
    /// A group of a partition.
    Group: Vec<At<String>>, by read_group, like Names::schema
}

fn read_group(from: &mut Decoder<'_>, field: Field<'_>) -> Option<Vec<At<String>>> {
    let names = Names::read(from, field)?;
    if names.is_empty() {
        from.mistake(field.wrong(), "a group of the partition is empty");
        return None;
    }
    Some(names)
}
