//! What is wrong with a file, reported so that it can be repaired.

mod options;

use std::fmt;

use serde::Serialize;

use crate::position::{SourceLocation, snippet};
use options::OptionTexts;

/// One mistake in a file.
///
/// This is a record and not an enum of kinds: a mistake is read by people, and programs that want
/// to show it at its place need the place and the texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScenarioMistake {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, with the offending text.
    pub message: String,
    /// How to repair it, where that is known.
    pub hint: Option<String>,
    /// The source line with carets under the offending text: two lines, no newline at the end.
    pub snippet: String,
}

impl ScenarioMistake {
    /// A mistake at a place of `text`, the text of `file`.
    #[must_use]
    pub fn at(
        file: &str,
        text: &str,
        place: SourceLocation,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Self {
        let SourceLocation { line, column, .. } = place;
        let (file, message) = (file.to_owned(), message.into());
        ScenarioMistake { file, line, column, message, hint, snippet: snippet(text, place) }
    }
}

impl fmt::Display for ScenarioMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioMistake { file, line, column, message, hint, snippet } = self;
        write!(f, "{file}:{line}:{column}: {message}\n{snippet}")?;
        match hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioMistake {}

/// All mistakes that were found, in the order of the file; at least one, at most [`ScenarioErrors::MOST`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioErrors {
    mistakes: Vec<ScenarioMistake>,
    more: usize,
}

impl ScenarioErrors {
    /// So many mistakes are reported; the rest is counted.
    pub const MOST: usize = 20;

    /// Mistakes that were found in a file that has no others: at least one.
    #[must_use]
    pub fn of(mut mistakes: Vec<ScenarioMistake>) -> Self {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        let more = mistakes.len().saturating_sub(ScenarioErrors::MOST);
        mistakes.truncate(ScenarioErrors::MOST);
        ScenarioErrors { mistakes, more }
    }

    /// The mistakes in the order of the file.
    #[must_use]
    pub fn mistakes(&self) -> &[ScenarioMistake] {
        &self.mistakes
    }

    /// How many more there were.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{mistake}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ScenarioErrors {}

/// Something that is allowed and probably not what was meant, or a choice that was made for the
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScenarioNotice {
    /// Line and column from 1; none for a choice that was made for the file.
    pub place: Option<(u32, u32)>,
    /// What there is to notice.
    pub message: String,
}

impl ScenarioNotice {
    /// Whether it reports a choice that was made because the file leaves it open.
    #[must_use]
    pub fn is_of_default(&self) -> bool {
        self.place.is_none()
    }

    /// Something to notice at a place.
    #[must_use]
    pub fn at(place: SourceLocation, message: impl Into<String>) -> Self {
        ScenarioNotice { place: Some((place.line, place.column)), message: message.into() }
    }
}

impl fmt::Display for ScenarioNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, _)) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// The mistakes in a file and what there is to notice, as decoding and resolving find them.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    mistakes: Vec<(SourceLocation, String, Option<String>)>,
    more: usize,
    pub(crate) notices: Vec<ScenarioNotice>,
    /// Mistakes in trace files.
    elsewhere: Vec<ScenarioMistake>,
    /// Texts of the command line in which mistakes can be, too.
    pub(crate) options: OptionTexts,
}

impl Diagnostics {
    /// For a file with this text.
    pub(crate) fn of(text: &str) -> Self {
        Diagnostics { options: OptionTexts::after(text), ..Diagnostics::default() }
    }

    /// Reports a mistake.
    pub(crate) fn mistake(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.record(place, message.into(), None);
    }

    /// Reports a mistake and how to repair it.
    pub(crate) fn mistake_with_hint(
        &mut self,
        place: SourceLocation,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.record(place, message.into(), Some(hint.into()));
    }

    /// Adds a notice about a place of the file.
    pub(crate) fn notice(&mut self, place: SourceLocation, message: impl Into<String>) {
        let place = Some((place.line, place.column));
        if self.notices.len() < 100 {
            self.notices.push(ScenarioNotice { place, message: message.into() });
        }
    }

    /// Whether further mistakes are only counted, so that no hint has to be searched for.
    pub(crate) fn is_full(&self) -> bool {
        self.mistakes.len() >= ScenarioErrors::MOST
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.mistakes.is_empty() && self.elsewhere.is_empty()
    }

    /// Reports a mistake in another file, whose text is given.
    pub(crate) fn mistake_in(
        &mut self,
        file: &str,
        text: &str,
        place: SourceLocation,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.elsewhere.push(ScenarioMistake {
            file: file.to_owned(),
            line: place.line,
            column: place.column,
            message: message.into(),
            hint,
            snippet: snippet(text, place),
        });
    }

    fn record(&mut self, place: SourceLocation, message: String, hint: Option<String>) {
        // An alias repeats what it stands for; its mistakes are the anchor's.
        let known = self.mistakes.iter().any(|(at, text, _)| *at == place && *text == message);
        match (known, self.is_full()) {
            (true, _) => {}
            (false, true) => self.more += 1,
            (false, false) => self.mistakes.push((place, message, hint)),
        }
    }

    /// The errors for `file` with `text`; call only if there are any.
    pub(crate) fn into_errors(mut self, file: &str, text: &str) -> ScenarioErrors {
        self.mistakes.sort_by_key(|(place, ..)| *place);
        let options = &self.options;
        let mistakes = self.mistakes.into_iter().map(|(place, message, hint)| {
            let (file, text, place) = options.find(place).unwrap_or((file, text, place));
            ScenarioMistake::at(file, text, place, message, hint)
        });
        let mut mistakes: Vec<ScenarioMistake> = mistakes.chain(self.elsewhere).collect();
        let more = self.more + mistakes.len().saturating_sub(ScenarioErrors::MOST);
        mistakes.truncate(ScenarioErrors::MOST);
        ScenarioErrors { mistakes, more }
    }

    /// The first mistake's texts, for input that is not a file.
    pub(crate) fn into_first(self) -> Option<(String, Option<String>)> {
        self.mistakes.into_iter().next().map(|(_, message, hint)| (message, hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "first: 1\nsecond: 2\n";

    fn place(line: u32) -> SourceLocation {
        SourceLocation { line, column: 1, length: 3 }
    }

    #[test]
    fn mistakes_come_out_in_the_order_of_the_file_with_their_lines() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.mistake_with_hint(place(2), "b", "mend it");
        diagnostics.mistake(place(1), "a");
        assert!(!diagnostics.is_clean());
        assert_eq!(
            diagnostics.into_errors("f.yaml", TEXT).to_string(),
            "f.yaml:1:1: a\n    1 | first: 1\n      | ^^^\n\
             f.yaml:2:1: b\n    2 | second: 2\n      | ^^^\nhint: mend it"
        );
    }

    #[test]
    fn the_same_mistake_at_the_same_place_is_one() {
        let mut diagnostics = Diagnostics::default();
        for _ in 0..3 {
            diagnostics.mistake(place(1), "a");
        }
        diagnostics.mistake(place(1), "b");
        assert_eq!(diagnostics.into_errors("f.yaml", TEXT).mistakes().len(), 2);
    }

    #[test]
    fn mistakes_beyond_the_limit_are_counted() {
        let mut diagnostics = Diagnostics::default();
        for number in 0..ScenarioErrors::MOST + 5 {
            diagnostics.mistake(place(1), format!("mistake {number}"));
        }
        assert!(diagnostics.is_full());
        let errors = diagnostics.into_errors("f.yaml", TEXT);
        assert_eq!((errors.mistakes().len(), errors.more()), (ScenarioErrors::MOST, 5));
    }

    #[test]
    fn a_notice_is_not_a_mistake() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.notice(place(2), "look here");
        assert!(diagnostics.is_clean());
        assert_eq!(diagnostics.notices, [ScenarioNotice::at(place(2), "look here")]);
    }
}
