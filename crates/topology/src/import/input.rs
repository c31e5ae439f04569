//! The file as text, and mistakes at places in it.

use std::borrow::Cow;

use windtunnel_scenario::ScenarioMistake;
use windtunnel_scenario::yaml::SourceLocation;

use super::document::{ImportDocument, LARGEST_IMPORT};

/// A file's text.
#[derive(Debug)]
pub(super) struct ImportSourceText<'a> {
    pub(super) name: &'a str,
    pub(super) text: Cow<'a, str>,
    /// Whether it was read as ISO-8859-1.
    pub(super) latin1: bool,
}

impl<'a> ImportSourceText<'a> {
    /// The text: UTF-8, else ISO-8859-1 for which every byte is a character.
    pub(super) fn new(original: &ImportDocument<'a>) -> Result<Self, ScenarioMistake> {
        let bytes = original.text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(original.text);
        let name = original.name;
        if bytes.len() > LARGEST_IMPORT {
            let message = format!("the file is larger than {} MiB", LARGEST_IMPORT >> 20);
            return Err(ScenarioMistake::at(name, "", SourceLocation::START, message, None));
        }
        let (text, latin1) = match std::str::from_utf8(bytes) {
            Ok(text) => (Cow::Borrowed(text), false),
            Err(_) => (Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()), true),
        };
        let input = ImportSourceText { name, text: without_late_declaration(text), latin1 };
        match input.text.find('\0') {
            Some(at) => Err(input.mistake(at, 1, "a NUL byte: this is not a text")),
            None if input.text.trim().is_empty() => Err(input.mistake(0, 1, "the file is empty")),
            None => Ok(input),
        }
    }

    /// A mistake `offset` bytes into the text, about `length` characters.
    pub(super) fn mistake(
        &self,
        offset: usize,
        length: usize,
        message: impl Into<String>,
    ) -> ScenarioMistake {
        self.at(self.place(offset, length), message, None)
    }

    /// The same with a hint.
    pub(super) fn mistake_with_hint(
        &self,
        offset: usize,
        length: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScenarioMistake {
        self.at(self.place(offset, length), message, Some(hint.into()))
    }

    /// A mistake at a place.
    pub(super) fn at(
        &self,
        place: SourceLocation,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> ScenarioMistake {
        ScenarioMistake::at(self.name, &self.text, place, message, hint)
    }

    fn place(&self, offset: usize, length: usize) -> SourceLocation {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.text[..end].replace("\r\n", "\n");
        let line = before.matches(['\n', '\r']).count() + 1;
        let column = before.rsplit(['\n', '\r']).next().unwrap_or("").chars().count() + 1;
        let clamp = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        SourceLocation { line: clamp(line), column: clamp(column), length: clamp(length) }
    }
}

/// What was written, short enough for a message, without control characters.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(SHOWN).map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The text with blanks in place of an XML declaration that comments or blanks stand before: it may
/// only be the very first thing (XML 1.0, section 2.8), and says nothing that is needed. All other
/// places stay what they are.
fn without_late_declaration(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        let Some(end) = comment.find("-->") else { return text };
        rest = comment[end + "-->".len()..].trim_start();
    }
    let start = text.len() - rest.len();
    let is_declaration =
        rest.strip_prefix("<?xml").is_some_and(|r| r.starts_with(char::is_whitespace));
    let (true, Some(length)) = (start > 0 && is_declaration, rest.find("?>")) else { return text };
    let end = start + length + "?>".len();
    let blank = |c: char| if c.is_ascii_whitespace() { c } else { ' ' };
    let blanks: String = text[start..end].chars().map(blank).collect();
    Cow::Owned(format!("{}{blanks}{}", &text[..start], &text[end..]))
}
