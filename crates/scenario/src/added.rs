//! Reservations that the command line adds to those of the file: `--reserve 'site={of: [a, b], cpu:
//! {min: 80%}}'`.
//!
//! Places in such a text have lines behind those of the file, so that a mistake that shows later,
//! with all names known, is shown where it is, too.

use crate::decode::{ReservationDraft, ScenarioDraft, read_reservation};
use crate::grammar::{Decoder, YamlMapEntry};
use crate::position::SourceLocation;
use crate::text::shorten;
use crate::tree::{TreeError, YamlValue, YamlValueKind, parse};

/// Adds the reservations of these texts to those of the file.
pub(crate) fn reserve(from: &mut Decoder<'_>, draft: &mut ScenarioDraft, texts: &[String]) {
    for text in texts {
        let Some(added) = read(from, text) else { continue };
        let known = draft.reserve.iter().find(|it| it.name.value == added.name.value);
        match known {
            None => draft.reserve.push(added),
            Some(known) => refuse(from, &added, known.name.place),
        }
    }
}

fn refuse(from: &mut Decoder<'_>, added: &ReservationDraft, first: SourceLocation) {
    let first = from.diagnostics.options.whereabouts(first);
    let message = format!("reservation `{}` is given twice, first in {first}", added.name.value);
    from.mistake_with_hint(added.name.place, message, "keep one of the two");
}

/// The reservation of one text.
fn read(from: &mut Decoder<'_>, text: &str) -> Option<ReservationDraft> {
    let before = from.diagnostics.options.add(OPTION, text);
    let at_start = SourceLocation { line: before.saturating_add(1), column: 1, length: 1 };
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        let message = format!("`{}` is not NAME={{of: …}}", shorten(text));
        from.mistake_with_hint(at_start, message, HINT);
        return None;
    };
    let letters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    let shift = SourceLocationShift { lines: before, columns: letters.saturating_add(1) };
    let place = SourceLocation { length: letters, ..at_start };
    let nothing = YamlValue { place, kind: YamlValueKind::Null };
    let value = match parse(value) {
        Ok(value) => value.map_or(nothing, |value| shift.value(value)),
        Err(TreeError { place, message, hint }) => {
            let place = shift.place(place);
            match hint {
                Some(hint) => from.mistake_with_hint(place, message, hint),
                None => from.mistake(place, message),
            }
            return None;
        }
    };
    read_reservation(from, YamlMapEntry { key: name, place, value: &value })
}

/// How far the places of a value are from those of its text.
#[derive(Debug, Clone, Copy)]
struct SourceLocationShift {
    lines: u32,
    /// In the first line.
    columns: u32,
}

impl SourceLocationShift {
    fn place(self, place: SourceLocation) -> SourceLocation {
        let columns = if place.line == 1 { self.columns } else { 0 };
        let column = place.column.saturating_add(columns);
        SourceLocation { line: place.line.saturating_add(self.lines), column, ..place }
    }

    /// A value is no deeper than its parser allows.
    fn value(self, value: YamlValue) -> YamlValue {
        let kind = match value.kind {
            YamlValueKind::List(items) => {
                YamlValueKind::List(items.into_iter().map(|it| self.value(it)).collect())
            }
            YamlValueKind::Map(entries) => {
                let entry = |(mut key, value): (crate::tree::YamlKey, YamlValue)| {
                    key.place = self.place(key.place);
                    (key, self.value(value))
                };
                YamlValueKind::Map(entries.into_iter().map(entry).collect())
            }
            kind @ (YamlValueKind::Null | YamlValueKind::Text(_)) => kind,
        };
        YamlValue { place: self.place(value.place), kind }
    }
}

const OPTION: &str = "--reserve";
const HINT: &str = "for example --reserve 'site={of: [web, db], cpu: {min: 80%}}'";
