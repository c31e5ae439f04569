//! The cursor over the tree: fields of maps and their values, and what is wrong with them.

mod fields;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use windtunnel_model::trace::TraceContent;

use super::{MapSchema, SchemaKey, ValueForm};
use crate::error::Diagnostics;
use crate::position::{LocatedValue, SourceLocation};
use crate::text::{hint_for_unit, list, nearest, shorten};
use crate::trace::{TraceFiles, TraceFormat};
use crate::tree::{YamlValueKind, is_extension};
pub(crate) use fields::{Fields, YamlMapEntry};

/// What reads the tree: where mistakes go, and the other files that the scenario names.
pub(crate) struct Decoder<'a> {
    pub(crate) diagnostics: &'a mut Diagnostics,
    pub(crate) traces: &'a mut TraceFiles,
}

impl Decoder<'_> {
    /// Reports a mistake.
    pub(crate) fn mistake(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.diagnostics.mistake(place, message);
    }

    /// Reports a mistake and how to repair it.
    pub(crate) fn mistake_with_hint(
        &mut self,
        place: SourceLocation,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.diagnostics.mistake_with_hint(place, message, hint);
    }

    /// Adds a notice about a place.
    pub(crate) fn notice(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.diagnostics.notice(place, message);
    }

    /// The value of a key: `Some(None)` if the file has none, `None` if it is wrong.
    pub(crate) fn read<F: ValueForm>(
        &mut self,
        fields: &Fields<'_>,
        key: SchemaKey<F>,
    ) -> Option<Option<F::Value>> {
        match fields.get(key) {
            Some(field) => F::read(self, field).map(Some),
            None => Some(None),
        }
    }

    /// The value of a key, or `default` if the file has none.
    pub(crate) fn read_or<F: ValueForm>(
        &mut self,
        fields: &Fields<'_>,
        key: SchemaKey<F>,
        default: F::Value,
    ) -> Option<F::Value> {
        self.read(fields, key).map(|value| value.unwrap_or(default))
    }

    /// The value of a key with the place of the key, if the file has it and it is right.
    pub(crate) fn read_at_key<F: ValueForm>(
        &mut self,
        fields: &Fields<'_>,
        key: SchemaKey<F>,
    ) -> Option<LocatedValue<F::Value>> {
        let field = fields.get(key)?;
        F::read(self, field).map(|value| LocatedValue { value, place: field.place })
    }

    /// The value of a key with its own place, if the file has it and it is right.
    pub(crate) fn read_at<F: ValueForm>(
        &mut self,
        fields: &Fields<'_>,
        key: SchemaKey<F>,
    ) -> Option<LocatedValue<F::Value>> {
        let field = fields.get(key)?;
        F::read(self, field).map(|value| LocatedValue { value, place: field.value.place })
    }

    /// The value of a key that must be there; `what` names the map in messages ("this link").
    pub(crate) fn need<F: ValueForm>(
        &mut self,
        fields: &Fields<'_>,
        key: SchemaKey<F>,
        what: &str,
    ) -> Option<F::Value> {
        let field = self.required(fields, key, what)?;
        F::read(self, field)
    }

    /// The trace in `file`, which is named at `place`: its id and content.
    pub(crate) fn trace_file(
        &mut self,
        file: &str,
        form: TraceFormat,
        place: SourceLocation,
    ) -> Option<(u32, &TraceContent)> {
        self.traces.trace(self.diagnostics, file, form, place)
    }

    /// A map with the keys of the table `M` and extensions only; `what` names it in messages.
    pub(crate) fn table<'t, M: MapSchema>(
        &mut self,
        field: YamlMapEntry<'t>,
        what: &str,
    ) -> Option<Fields<'t>> {
        self.fields(field, what, &M::list())
    }

    /// A map with any keys.
    pub(crate) fn map<'t>(&mut self, field: YamlMapEntry<'t>, needed: &str) -> Option<Fields<'t>> {
        match &field.value.kind {
            YamlValueKind::Map(entries) => {
                let place = field.value.place;
                Some(Fields { place, entries, keyed: false, unknown: false })
            }
            _ => self.wrong_type(field, needed),
        }
    }

    /// A map with the keys `known` and extensions only; `what` names it in messages ("a link").
    pub(crate) fn fields<'t>(
        &mut self,
        field: YamlMapEntry<'t>,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'t>> {
        let fields = self.map(field, &format!("{what}: a map of keys"))?;
        let mut unknown = false;
        for (key, _) in fields.entries {
            if !known.contains(&key.text.as_str()) && !is_extension(&key.text) {
                self.unknown_key(&key.text, key.place, what, known);
                unknown = true;
            }
        }
        // The other keys are judged all the same: their mistakes do not follow from this one. But
        // what is missing may be what the unknown key was meant to be.
        let place = if fields.place.length == 0 { field.place } else { fields.place };
        Some(Fields { place, keyed: true, unknown, ..fields })
    }

    /// Reports a key that a map does not have.
    pub(crate) fn unknown_key(
        &mut self,
        key: &str,
        place: SourceLocation,
        what: &str,
        known: &[&str],
    ) {
        let message = format!("unknown key `{}` of {what}", shorten(key));
        if self.diagnostics.is_full() {
            return self.mistake(place, message);
        }
        match nearest(key, known.iter().copied()) {
            Some(near) => {
                self.mistake_with_hint(place, message, format!("did you mean `{near}`?"));
            }
            None => {
                self.mistake_with_hint(place, message, format!("it has {}", known.join(", ")));
            }
        }
    }

    /// The entry of a key that must be there.
    pub(crate) fn required<'t, 'k>(
        &mut self,
        fields: &Fields<'t>,
        key: impl Into<&'k str>,
        what: &str,
    ) -> Option<YamlMapEntry<'t>> {
        let key = key.into();
        let found = fields.find(key);
        if found.is_none() && !fields.unknown {
            self.mistake(fields.place, format!("{what} lacks `{key}`"));
        }
        found
    }

    /// The items of a list.
    pub(crate) fn list<'t>(
        &mut self,
        field: YamlMapEntry<'t>,
        needed: &str,
    ) -> Option<impl Iterator<Item = YamlMapEntry<'t>> + Clone + use<'t>> {
        match &field.value.kind {
            YamlValueKind::List(items) => Some(items.iter().map(move |item| field.with(item))),
            _ => self.wrong_type(field, needed),
        }
    }

    /// A scalar's text.
    pub(crate) fn text<'t>(&mut self, field: YamlMapEntry<'t>, needed: &str) -> Option<&'t str> {
        match &field.value.kind {
            YamlValueKind::Text(text) if text.contains('\0') => {
                let message = format!("`{}` holds a NUL character", shorten(text));
                self.mistake(field.wrong(), message);
                None
            }
            YamlValueKind::Text(text) => Some(text),
            _ => self.wrong_type(field, needed),
        }
    }

    /// A scalar's text with its place.
    pub(crate) fn text_at(
        &mut self,
        field: YamlMapEntry<'_>,
        needed: &str,
    ) -> Option<LocatedValue<String>> {
        let value = self.text(field, needed)?.to_owned();
        Some(LocatedValue { value, place: field.value.place })
    }

    /// A quantity with a unit.
    pub(crate) fn quantity<T>(&mut self, field: YamlMapEntry<'_>, needed: &str) -> Option<T>
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
    pub(crate) fn flag(&mut self, field: YamlMapEntry<'_>) -> Option<bool> {
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
        field: YamlMapEntry<'_>,
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
    pub(crate) fn choice<T: Clone>(
        &mut self,
        field: YamlMapEntry<'_>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let text = self.text(field, &list(&words))?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(value.clone());
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
    pub(crate) fn names(
        &mut self,
        field: YamlMapEntry<'_>,
        needed: &str,
    ) -> Option<Vec<LocatedValue<String>>> {
        match &field.value.kind {
            YamlValueKind::List(items) => {
                items.iter().map(|item| self.text_at(field.with(item), needed)).collect()
            }
            _ => Some(vec![self.text_at(field, needed)?]),
        }
    }

    /// Reports that a key holds something of another type.
    pub(crate) fn wrong_type<T>(&mut self, field: YamlMapEntry<'_>, needed: &str) -> Option<T> {
        let found = match &field.value.kind {
            YamlValueKind::Null if !field.key.is_empty() => {
                let message = format!("`{}` has no value: it must be {needed}", shorten(field.key));
                self.mistake(field.wrong(), message);
                return None;
            }
            YamlValueKind::Null => "nothing".to_owned(),
            YamlValueKind::Text(text) => format!("the text `{}`", shorten(text)),
            YamlValueKind::List(_) => "a list".to_owned(),
            YamlValueKind::Map(_) => "a map".to_owned(),
        };
        let message = match field.key {
            "" => format!("the file must hold {needed}, not {found}"),
            key => format!("`{}` must be {needed}, not {found}", shorten(key)),
        };
        self.mistake(field.wrong(), message);
        None
    }
}
