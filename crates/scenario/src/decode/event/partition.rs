//! Partitions: which nodes are cut off from which.

use serde_json::{Value as Json, json};
use windtunnel_model::plan::PartitionMode;

use crate::grammar::{
    Decoder, NameListForm, RequiredKeyForm, SchemaAlternative, SchemaDefinitions, ValueForm,
    YamlMapEntry, form, map, texts,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::tree::YamlValueKind;

/// A partition as the file has it.
#[derive(Debug)]
pub(crate) struct PartitionDraft {
    pub(crate) place: SourceLocation,
    pub(crate) groups: Vec<Vec<LocatedValue<String>>>,
    pub(crate) cut: PartitionMode,
}

map! {
    /// A partition of one way: nothing passes `from` these `to` those; the way back stays open.
    OneWay {
        /// Nodes and routers.
        "from" FROM: RequiredKeyForm<Group>,
        /// Nodes and routers.
        "to" TO: RequiredKeyForm<Group>,
    }
}

map! {
    /// A partition of pairs: nothing passes between the two of each pair, and all else passes. So each
    /// node may see other nodes than its neighbour does.
    Pairs {
        /// Pairs such as `[[a, c], [a, d], [b, d]]`; each of the two is a node, router, LAN or group,
        /// or a list of these.
        "pairs" PAIRS: RequiredKeyForm<PairList>,
    }
}

/// The groups between which nothing passes.
pub(super) struct Partition;

impl ValueForm for Partition {
    type Value = PartitionDraft;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<PartitionDraft> {
        let place = field.place;
        if let YamlValueKind::Map(keys) = &field.value.kind {
            if keys.iter().any(|(key, _)| key.text == Pairs::PAIRS.name) {
                let fields = from.table::<Pairs>(field, "a partition of pairs")?;
                let groups = from.need(&fields, Pairs::PAIRS, "a partition of pairs")?;
                return Some(PartitionDraft { place, groups, cut: PartitionMode::Pairs });
            }
            let fields = from.table::<OneWay>(field, "a partition of one way")?;
            let [start, end] = [OneWay::FROM, OneWay::TO]
                .map(|key| from.need(&fields, key, "a partition of one way"));
            let groups = vec![start?, end?];
            return Some(PartitionDraft { place, groups, cut: PartitionMode::OneWay });
        }
        let needed =
            "a list of two or more lists of names, or {from: […], to: […]}, or {pairs: […]}";
        let groups: Vec<_> = from.list(field, needed)?.collect();
        if groups.len() < 2 {
            from.mistake(field.wrong(), format!("`partition` must be {needed}"));
            return None;
        }
        let read = groups.into_iter().map(|group| {
            if !matches!(group.value.kind, YamlValueKind::List(_)) {
                return from.wrong_type(group, needed);
            }
            Group::read(from, group)
        });
        let groups = read.collect::<Option<Vec<_>>>()?;
        Some(PartitionDraft { place, groups, cut: PartitionMode::Between })
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let lists = |definitions: &mut SchemaDefinitions| {
            let names = texts(definitions);
            json!({"type": "array", "items": names, "minItems": 2})
        };
        definitions.any_of(
            "Partition",
            "The groups of a partition.",
            &[
                SchemaAlternative("Nothing passes between these groups.", lists),
                SchemaAlternative("Nothing passes one way.", OneWay::definition),
                SchemaAlternative("Nothing passes between the two of a pair.", Pairs::definition),
            ],
        )
    }
}

/// Groups, each two a pair.
struct PairList;

impl ValueForm for PairList {
    type Value = Vec<Vec<LocatedValue<String>>>;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Self::Value> {
        let needed = "a list of pairs such as [[a, b], [b, c]]";
        let pairs: Vec<_> = from.list(field, needed)?.collect();
        if pairs.is_empty() {
            from.mistake(field.wrong(), format!("`pairs` must be {needed}"));
            return None;
        }
        let mut groups = Vec::with_capacity(2 * pairs.len());
        for pair in pairs {
            let sides: Vec<_> = from.list(pair, needed)?.collect();
            if sides.len() != 2 {
                let message = format!("a pair of the partition has {} sides", sides.len());
                from.mistake_with_hint(pair.wrong(), message, "write two: `[a, b]`");
                return None;
            }
            for side in sides {
                groups.push(read_group(from, side)?);
            }
        }
        Some(groups)
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let side = json!({"anyOf": [{"type": "string"}, texts(definitions)]});
        let pair = json!({"type": "array", "items": side, "minItems": 2, "maxItems": 2});
        json!({"type": "array", "items": pair, "minItems": 1})
    }
}

form! {
    /// A group of a partition.
    Group: Vec<LocatedValue<String>>, by read_group, like NameListForm::schema
}

fn read_group(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<Vec<LocatedValue<String>>> {
    let names = NameListForm::read(from, field)?;
    if names.is_empty() {
        from.mistake(field.wrong(), "a group of the partition is empty");
        return None;
    }
    Some(names)
}
