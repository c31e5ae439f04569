//! Links and their properties.

use serde_json::{Value as Json, json};
use windtunnel_model::LinkPatch;

use super::property::{Direction, read_properties};
use crate::grammar::{
    Decoder, Fields, ListElement, RequiredKeyForm, SchemaDefinitions, ValueForm, YamlMapEntry,
    form, map, texts,
};
use crate::position::{LocatedValue, SourceLocation};
use crate::preset::{AccessLinkPreset, presets};

/// A link as the file has it.
#[derive(Debug)]
pub(crate) struct LinkDraft {
    pub(crate) place: SourceLocation,
    pub(crate) name: Option<LocatedValue<String>>,
    pub(crate) between: [LocatedValue<String>; 2],
    pub(crate) keys: LinkKeys,
}

/// Properties that were written for both directions, and for each; a preset is below both.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkKeys {
    pub(crate) preset: Option<&'static AccessLinkPreset>,
    pub(crate) both: LinkPatch,
    /// Up and down; they win over `both`.
    pub(crate) each: [LinkPatch; 2],
    /// Where each key of `both`, up and down was written.
    places: Vec<(&'static str, SourceLocation)>,
}

impl LinkKeys {
    /// What is changed for one direction.
    pub(crate) fn patch(&self, direction: usize) -> LinkPatch {
        let written = self.both.with(&self.each[direction]);
        match self.preset {
            Some(preset) => preset.patch(direction).with(&written),
            None => written,
        }
    }

    /// Where `key` was written, for whatever direction.
    pub(crate) fn place(&self, key: &str) -> Option<SourceLocation> {
        self.places.iter().find(|(known, _)| *known == key).map(|(_, place)| *place)
    }
}

map! {
    /// Properties of both directions, and of each.
    Both, LinkKeys, by read_change {
        ..Direction,
        ..EachDirection,
    }
}

map! {
    /// Properties of both directions at once, and what differs in each.
    EachDirection {
        /// A kind of access link, whose latency, jitter, loss, rate and queue hold where nothing
        /// else is written; the first named end is the user's.
        "preset" PRESET: PresetName,
        /// What differs from the first named end to the second.
        "up" UP: OneDirection,
        /// What differs from the second named end to the first.
        "down" DOWN: OneDirection,
    }
}

map! {
    /// A link between two ends. Properties hold for both directions; `up` and `down` win over
    /// them.
    Link, LinkDraft, by read_link {
        /// The two ends: names of nodes, groups (one link a member), routers or LANs.
        "between" BETWEEN: RequiredKeyForm<LinkEndsForm>,
        /// Its name; default `a--b`, then `a--b-2` … The links of a group are called `name-1` ….
        "name" NAME: String,
        ..Direction,
        ..EachDirection,
    }
}

impl ListElement for Link {
    const LIST: &'static str = "a list of links";
}

fn read_link(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LinkDraft> {
    let fields = from.table::<Link>(field, "a link")?;
    let keys = read_keys(from, &fields);
    let name = from.read(&fields, Link::NAME);
    let between = from.need(&fields, Link::BETWEEN, "this link")?;
    Some(LinkDraft { place: fields.place, name: name?, between, keys })
}

/// The two ends of a link.
struct LinkEndsForm;

impl ValueForm for LinkEndsForm {
    type Value = [LocatedValue<String>; 2];

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<[LocatedValue<String>; 2]> {
        let needed = "a list of two names of nodes, groups, routers or LANs";
        let names = from.list(field, needed)?;
        let names: Vec<_> = names.map(|item| from.text_at(item, "names")).collect::<Option<_>>()?;
        let count = names.len();
        let pair = <[LocatedValue<String>; 2]>::try_from(names).ok();
        if pair.is_none() {
            let message = format!("`between` must be {needed}, here are {count}");
            from.mistake(field.wrong(), message);
        }
        pair
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let mut schema = texts(definitions);
        (schema["minItems"], schema["maxItems"]) = (Json::from(2), Json::from(2));
        schema
    }
}

fn read_change(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<LinkKeys> {
    read_both(from, field, "a change of a link")
}

/// `defaults.link` and `set`; `what` names it in messages.
pub(super) fn read_both(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
    what: &str,
) -> Option<LinkKeys> {
    let fields = from.table::<Both>(field, what)?;
    Some(read_keys(from, &fields))
}

fn read_keys(from: &mut Decoder<'_>, fields: &Fields<'_>) -> LinkKeys {
    let mut found = LinkKeys::default();
    if let Some(field) = fields.get(EachDirection::PRESET) {
        found.preset = PresetName::read(from, field);
        found.places.push((EachDirection::PRESET.name, field.wrong()));
    }
    read_properties(from, fields, &mut found.both, &mut found.places);
    for (index, key) in [EachDirection::UP, EachDirection::DOWN].into_iter().enumerate() {
        if let Some((patch, places)) = from.read(fields, key).flatten() {
            found.each[index] = patch;
            found.places.extend(places);
        }
    }
    found
}

form! {
    /// The properties of one direction, and where each is written.
    OneDirection: (LinkPatch, Vec<(&'static str, SourceLocation)>), by read_direction,
    like Direction::definition
}

fn read_direction(
    from: &mut Decoder<'_>,
    field: YamlMapEntry<'_>,
) -> Option<(LinkPatch, Vec<(&'static str, SourceLocation)>)> {
    let (mut patch, mut places) = (LinkPatch::default(), Vec::new());
    let fields = from.table::<Direction>(field, &format!("one direction (`{}`)", field.key))?;
    read_properties(from, &fields, &mut patch, &mut places);
    Some((patch, places))
}

/// The name of a preset.
struct PresetName;

impl ValueForm for PresetName {
    type Value = &'static AccessLinkPreset;

    fn read(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<&'static AccessLinkPreset> {
        from.choice(field, &AccessLinkPreset::choices())
    }

    fn schema(definitions: &mut SchemaDefinitions) -> Json {
        let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
        let description = "A kind of access link; docs/presets.md has the values.";
        let schema = json!({"type": "string", "enum": names});
        definitions.named("PresetName", description, schema)
    }
}
