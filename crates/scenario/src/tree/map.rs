//! A map while it is read: keys that are given once, and merge keys.

use std::collections::BTreeMap;

use super::{TreeError, YamlKey, YamlValue, YamlValueKind, error};
use crate::position::SourceLocation;

/// A map whose end has not come.
#[derive(Debug, Default)]
pub(super) struct OpenMap {
    entries: Vec<(YamlKey, YamlValue)>,
    /// The keys of `entries`, with the line of each.
    known: BTreeMap<String, u32>,
    key: Option<PendingMapKey>,
    merge: Option<YamlMergeKey>,
}

/// A key whose value has not come.
#[derive(Debug)]
enum PendingMapKey {
    Key(YamlKey),
    Merge(SourceLocation),
}

/// What `<<` brings, and how many entries stand before it.
#[derive(Debug)]
struct YamlMergeKey {
    place: SourceLocation,
    before: usize,
    maps: Vec<Vec<(YamlKey, YamlValue)>>,
}

impl OpenMap {
    /// Whether a key comes next.
    pub(super) fn expects_key(&self) -> bool {
        self.key.is_none()
    }

    /// Adds a key, or the value of the last one. `plain`: it is a scalar without quotes.
    pub(super) fn add(&mut self, value: YamlValue, plain: bool) -> Result<(), TreeError> {
        match self.key.take() {
            Some(PendingMapKey::Key(key)) => self.entries.push((key, value)),
            Some(PendingMapKey::Merge(place)) => {
                let before = self.entries.len();
                self.merge = Some(YamlMergeKey { place, before, maps: maps(place, value)? });
            }
            None => self.key = Some(self.new_key(value, plain)?),
        }
        Ok(())
    }

    /// The entries in the order of the text. Merged ones stand where `<<` does; keys that are
    /// written out win, and of several maps the first that has a key (<https://yaml.org/type/merge.html>).
    pub(super) fn close(mut self) -> Vec<(YamlKey, YamlValue)> {
        let Some(YamlMergeKey { before, maps, .. }) = self.merge.take() else {
            return self.entries;
        };
        let mut known = self.known;
        let mut merged = Vec::new();
        for (key, value) in maps.into_iter().flatten() {
            if !known.contains_key(&key.text) {
                known.insert(key.text.clone(), key.place.line);
                merged.push((key, value));
            }
        }
        let after = self.entries.split_off(before.min(self.entries.len()));
        self.entries.into_iter().chain(merged).chain(after).collect()
    }

    fn new_key(&mut self, value: YamlValue, plain: bool) -> Result<PendingMapKey, TreeError> {
        let place = value.place;
        let text = match value.kind {
            YamlValueKind::Text(text) => text,
            YamlValueKind::Null => return Err(error(place, "a key must be a text, here is none")),
            YamlValueKind::List(_) | YamlValueKind::Map(_) => {
                return Err(error(place, "a key must be a text, not a list or a map"));
            }
        };
        if plain && text == MERGE {
            return match &self.merge {
                None => Ok(PendingMapKey::Merge(place)),
                Some(YamlMergeKey { place: first, .. }) => Err(twice(MERGE, place, first.line)
                    .hint("merge several maps with one list: `<<: [*first, *second]`")),
            };
        }
        if let Some(first) = self.known.insert(text.clone(), place.line) {
            return Err(twice(&text, place, first).hint("keep one of the two"));
        }
        Ok(PendingMapKey::Key(YamlKey { place, text }))
    }
}

/// The maps that are the value of the `<<` at `place`.
fn maps(
    place: SourceLocation,
    value: YamlValue,
) -> Result<Vec<Vec<(YamlKey, YamlValue)>>, TreeError> {
    let map = |value: YamlValue| match value.kind {
        YamlValueKind::Map(entries) => Ok(entries),
        other => Err(no_map(place, &other)),
    };
    match value.kind {
        YamlValueKind::List(items) => items.into_iter().map(map).collect(),
        _ => Ok(vec![map(value)?]),
    }
}

fn no_map(place: SourceLocation, kind: &YamlValueKind) -> TreeError {
    let found = match kind {
        YamlValueKind::Text(text) => format!("the text `{}`", crate::text::shorten(text)),
        YamlValueKind::List(_) => "a list".to_owned(),
        YamlValueKind::Null | YamlValueKind::Map(_) => "nothing".to_owned(),
    };
    error(place, format!("`<<` merges a map or a list of maps, not {found}"))
        .hint("mark a map with `&name` and merge it with `<<: *name`")
}

fn twice(key: &str, place: SourceLocation, first: u32) -> TreeError {
    let shown = crate::text::shorten(key);
    error(place, format!("`{shown}` is given twice, first in line {first}"))
}

/// The key that merges maps, where it is written without quotes.
const MERGE: &str = "<<";
