//! Entries of a map with known keys, and values with their key.

use crate::grammar::SchemaKey;
use crate::position::SourceLocation;
use crate::tree::{YamlKey as KeyText, YamlValue, YamlValueKind, is_extension};

/// A map whose keys are all known.
pub(crate) struct Fields<'t> {
    /// The map itself, or the key that it belongs to where the map has no mark of its own.
    pub(crate) place: SourceLocation,
    pub(super) entries: &'t [(KeyText, YamlValue)],
    /// Whether the keys are those of the file's language, so that `x-` ones are extensions, and no
    /// names.
    pub(super) keyed: bool,
    /// Whether a key was not known, so that a missing one is not a mistake of its own.
    pub(crate) unknown: bool,
}

/// One entry of a map; items of a list carry the list's key.
#[derive(Clone, Copy)]
pub(crate) struct YamlMapEntry<'t> {
    pub(crate) key: &'t str,
    pub(crate) place: SourceLocation,
    pub(crate) value: &'t YamlValue,
}

impl<'t> Fields<'t> {
    /// The entry of a key, if the file has it.
    pub(crate) fn get<F>(&self, key: SchemaKey<F>) -> Option<YamlMapEntry<'t>> {
        self.find(key.name)
    }

    /// The entry called `key`, if the file has it.
    pub(crate) fn find(&self, key: &str) -> Option<YamlMapEntry<'t>> {
        let (key, value) = self.entries.iter().find(|(known, _)| known.text == key)?;
        Some(YamlMapEntry { key: &key.text, place: key.place, value })
    }

    pub(crate) fn has<'k>(&self, key: impl Into<&'k str>) -> bool {
        self.find(key.into()).is_some()
    }

    /// Every entry that is not an extension.
    pub(crate) fn all(&self) -> impl Iterator<Item = YamlMapEntry<'t>> + use<'t> {
        let keyed = self.keyed;
        let counts = move |(key, _): &&(KeyText, YamlValue)| !(keyed && is_extension(&key.text));
        let field = |(key, value): &'t (KeyText, YamlValue)| YamlMapEntry {
            key: &key.text,
            place: key.place,
            value,
        };
        self.entries.iter().filter(counts).map(field)
    }
}

impl<'t> YamlMapEntry<'t> {
    /// Another value under the same key.
    pub(crate) fn with(self, value: &'t YamlValue) -> Self {
        YamlMapEntry { value, place: value.place, ..self }
    }

    /// Whether anything was written; a list whose items are all commented out is nothing.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self.value.kind, YamlValueKind::Null)
    }

    /// Where to point when the value is wrong: the value, or the key if the value is nothing.
    pub(crate) fn wrong(self) -> SourceLocation {
        match self.value.kind {
            YamlValueKind::Null => self.place,
            _ => self.value.place,
        }
    }

    /// The scalar's text, if it is one.
    pub(crate) fn scalar(self) -> Option<&'t str> {
        match &self.value.kind {
            YamlValueKind::Text(text) => Some(text),
            _ => None,
        }
    }
}
