//! From the tree to the file's own terms: types and values of single keys. What needs more than one
//! place of the file to judge is left to `resolve`.

mod discipline;
mod event;
mod expect;
mod fault;
mod file;
mod lan;
mod link;
mod machine;
mod model;
mod node;
mod pool;
mod property;
mod ready;
mod route;
mod trace;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::error::Findings;
use crate::keys;
use crate::position::Place;
use crate::text::{list, nearest, shorten};
use crate::tree::{Key, Kind, Value};

pub(crate) use event::{EventDraft, EventKind, decode_now};
pub(crate) use expect::{ExpectDraft, Subject};
pub(crate) use fault::{
    Amount, ChurnDraft, ChurnKind, EndDraft, FlapDraft, RepeatDraft, TextDraft,
};
pub(crate) use file::{Draft, decode_file};
pub(crate) use lan::LanDraft;
pub(crate) use link::overlay;
pub(crate) use link::{LinkDraft, LinkKeys};
pub(crate) use machine::{MachineKeys, NodeMachineKeys};
pub(crate) use model::{ModelDraft, Paths};
pub(crate) use node::{MOST_NODES, NodeDraft, NodeKeys};
pub(crate) use pool::{Pool, Pools, is_usable};
pub(crate) use property::{decode_property, parse_queue};
pub(crate) use route::{RouteDraft, WayDraft};

/// Something with the place where it was written.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// A map whose keys are all known.
pub(crate) struct Fields<'t> {
    /// The map itself, or the key that it belongs to where the map has no mark of its own.
    pub(crate) place: Place,
    entries: &'t [(Key, Value)],
    /// Whether the keys are those of the file's language, so that `x-` ones are extensions, and no
    /// names.
    keyed: bool,
    /// Whether a key was not known, so that a missing one is no mistake of its own.
    pub(crate) unknown: bool,
}

/// One entry of a map; items of a list carry the list's key.
#[derive(Clone, Copy)]
pub(crate) struct Field<'t> {
    pub(crate) key: &'t str,
    pub(crate) place: Place,
    pub(crate) value: &'t Value,
}

impl<'t> Fields<'t> {
    /// The entry of `key`, if the file has it.
    pub(crate) fn find(&self, key: &str) -> Option<Field<'t>> {
        let (key, value) = self.entries.iter().find(|(known, _)| known.text == key)?;
        Some(Field { key: &key.text, place: key.place, value })
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Every entry that is no extension.
    pub(crate) fn all(&self) -> impl Iterator<Item = Field<'t>> + use<'t> {
        let keyed = self.keyed;
        let counts = move |(key, _): &&(Key, Value)| !(keyed && keys::is_extension(&key.text));
        let field =
            |(key, value): &'t (Key, Value)| Field { key: &key.text, place: key.place, value };
        self.entries.iter().filter(counts).map(field)
    }
}

impl<'t> Field<'t> {
    /// Another value under the same key.
    pub(crate) fn with(self, value: &'t Value) -> Self {
        Field { value, place: value.place, ..self }
    }

    /// Whether anything was written; a list whose items are all commented out is nothing.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self.value.kind, Kind::Null)
    }

    /// Where to point when the value is wrong: the value, or the key if the value is nothing.
    pub(crate) fn wrong(self) -> Place {
        match self.value.kind {
            Kind::Null => self.place,
            _ => self.value.place,
        }
    }

    /// The scalar's text, if it is one.
    pub(crate) fn scalar(self) -> Option<&'t str> {
        match &self.value.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Findings {
    /// A map with any keys.
    pub(crate) fn map<'t>(&mut self, field: Field<'t>, needed: &str) -> Option<Fields<'t>> {
        match &field.value.kind {
            Kind::Map(entries) => {
                let place = field.value.place;
                Some(Fields { place, entries, keyed: false, unknown: false })
            }
            _ => self.wrong_type(field, needed),
        }
    }

    /// A map with the keys `known` and extensions only; `what` names it in messages ("a link").
    pub(crate) fn fields<'t>(
        &mut self,
        field: Field<'t>,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'t>> {
        let fields = self.map(field, &format!("{what}: a map of keys"))?;
        let mut unknown = false;
        for (key, _) in fields.entries {
            if !known.contains(&key.text.as_str()) && !keys::is_extension(&key.text) {
                self.unknown_key(key, what, known);
                unknown = true;
            }
        }
        // The other keys are judged all the same: their mistakes do not follow from this one. But
        // what is missing may be what the unknown key was meant to be.
        let place = if fields.place.length == 0 { field.place } else { fields.place };
        Some(Fields { place, keyed: true, unknown, ..fields })
    }

    fn unknown_key(&mut self, key: &Key, what: &str, known: &[&str]) {
        let message = format!("unknown key `{}` of {what}", shorten(&key.text));
        if self.is_full() {
            return self.mistake(key.place, message);
        }
        match nearest(&key.text, known.iter().copied()) {
            Some(near) => {
                self.mistake_with_hint(key.place, message, format!("did you mean `{near}`?"));
            }
            None => {
                self.mistake_with_hint(key.place, message, format!("it has {}", known.join(", ")));
            }
        }
    }

    /// The entry of a key that must be there.
    pub(crate) fn required<'t>(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        what: &str,
    ) -> Option<Field<'t>> {
        let found = fields.find(key);
        if found.is_none() && !fields.unknown {
            self.mistake(fields.place, format!("{what} lacks `{key}`"));
        }
        found
    }

    /// The items of a list.
    pub(crate) fn list<'t>(
        &mut self,
        field: Field<'t>,
        needed: &str,
    ) -> Option<impl Iterator<Item = Field<'t>> + Clone + use<'t>> {
        match &field.value.kind {
            Kind::List(items) => Some(items.iter().map(move |item| field.with(item))),
            _ => self.wrong_type(field, needed),
        }
    }

    /// A scalar's text.
    pub(crate) fn text<'t>(&mut self, field: Field<'t>, needed: &str) -> Option<&'t str> {
        match &field.value.kind {
            Kind::Text(text) if text.contains('\0') => {
                let message = format!("`{}` holds a NUL character", shorten(text));
                self.mistake(field.wrong(), message);
                None
            }
            Kind::Text(text) => Some(text),
            _ => self.wrong_type(field, needed),
        }
    }

    /// A scalar's text with its place.
    pub(crate) fn text_at(&mut self, field: Field<'_>, needed: &str) -> Option<At<String>> {
        let value = self.text(field, needed)?.to_owned();
        Some(At { value, place: field.value.place })
    }

    /// A quantity with a unit.
    pub(crate) fn quantity<T>(&mut self, field: Field<'_>, needed: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(field, needed)?;
        match text.parse() {
            Ok(quantity) => Some(quantity),
            Err(_) if !text.starts_with(|c: char| c.is_ascii_digit()) => {
                let message = format!("{}: `{}` is not {needed}", field.key, shorten(text));
                self.mistake(field.wrong(), message);
                None
            }
            Err(error) => {
                let message = format!("{}: {error}", field.key);
                match hint_for_unit(text) {
                    Some(hint) => self.mistake_with_hint(field.wrong(), message, hint),
                    None => self.mistake(field.wrong(), message),
                }
                None
            }
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, field: Field<'_>) -> Option<bool> {
        match self.text(field, "`true` or `false`")? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let message =
                    format!("{}: `{}` is not `true` or `false`", field.key, shorten(other));
                self.mistake(field.wrong(), message);
                None
            }
        }
    }

    /// A whole number.
    pub(crate) fn integer(
        &mut self,
        field: Field<'_>,
        range: RangeInclusive<u64>,
        needed: &str,
    ) -> Option<u64> {
        let text = self.text(field, needed)?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let shown = shorten(text);
        if !digits {
            self.mistake(field.wrong(), format!("{}: `{shown}` is not {needed}", field.key));
            return None;
        }
        let value = text.parse().ok().filter(|value| range.contains(value));
        if value.is_none() {
            let (least, most) = (range.start(), range.end());
            let message = format!("{}: `{shown}` is not between {least} and {most}", field.key);
            self.mistake(field.wrong(), message);
        }
        value
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        field: Field<'_>,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let text = self.text(field, &list(&words))?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let message = format!("{}: `{}` is not {}", field.key, shorten(text), list(&words));
        match nearest(text, words.iter().copied()) {
            Some(near) => {
                self.mistake_with_hint(field.wrong(), message, format!("did you mean `{near}`?"));
            }
            None => self.mistake(field.wrong(), message),
        }
        None
    }

    /// One name or a list of names.
    pub(crate) fn names(&mut self, field: Field<'_>, needed: &str) -> Option<Vec<At<String>>> {
        match &field.value.kind {
            Kind::List(items) => {
                items.iter().map(|item| self.text_at(field.with(item), needed)).collect()
            }
            _ => Some(vec![self.text_at(field, needed)?]),
        }
    }

    /// Reports that a key holds something of another type.
    pub(crate) fn wrong_type<T>(&mut self, field: Field<'_>, needed: &str) -> Option<T> {
        let found = match &field.value.kind {
            Kind::Null if !field.key.is_empty() => {
                let message = format!("`{}` has no value: it must be {needed}", shorten(field.key));
                self.mistake(field.wrong(), message);
                return None;
            }
            Kind::Null => "nothing".to_owned(),
            Kind::Text(text) => format!("the text `{}`", shorten(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        };
        let message = match field.key {
            "" => format!("the file must hold {needed}, not {found}"),
            key => format!("`{}` must be {needed}, not {found}", shorten(key)),
        };
        self.mistake(field.wrong(), message);
        None
    }
}

/// Units that people write and that mean bits to some and bytes to others.
pub(crate) fn hint_for_unit(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.to_ascii_lowercase().ends_with("bps") {
        Some("write `mbit` for a million bits a second, `MB/s` for a million bytes")
    } else if text.ends_with('b') {
        Some("write `KB`, `MB` or `GB` for bytes")
    } else {
        None
    }
}
