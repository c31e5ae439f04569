//! Texts that options of the command line add to a file.
//!
//! Their lines are numbered after those of the file, so that one place says which text it is in.

use crate::position::SourceLocation;
use crate::text::shorten;

#[derive(Debug, Default)]
pub(crate) struct OptionTexts {
    texts: Vec<OptionText>,
    /// The lines of the file and of all texts so far.
    lines: u32,
}

#[derive(Debug)]
struct OptionText {
    /// As in `--reserve`.
    option: &'static str,
    text: String,
    /// The lines before it.
    before: u32,
}

impl OptionTexts {
    /// For a file with this text.
    pub(super) fn after(file: &str) -> Self {
        OptionTexts { texts: Vec::new(), lines: lines(file) }
    }

    /// Adds a text: its first line has the number after the one that is returned.
    pub(crate) fn add(&mut self, option: &'static str, text: &str) -> u32 {
        let before = self.lines;
        self.texts.push(OptionText { option, text: text.to_owned(), before });
        self.lines = before.saturating_add(lines(text));
        before
    }

    /// Where a place is, for messages about another one.
    pub(crate) fn whereabouts(&self, place: SourceLocation) -> String {
        match self.find(place) {
            Some((option, text, _)) => format!("`{option} {}`", shorten(text)),
            None => format!("line {}", place.line),
        }
    }

    /// The option and its text in which a place is, and the place there; `None`: it is in the file.
    pub(super) fn find(&self, place: SourceLocation) -> Option<(&str, &str, SourceLocation)> {
        let text = self.texts.iter().rev().find(|text| place.line > text.before)?;
        let place = SourceLocation { line: place.line - text.before, ..place };
        Some((text.option, &text.text, place))
    }
}

/// At least as many lines as a text has; in YAML a carriage return alone ends one, too.
fn lines(text: &str) -> u32 {
    u32::try_from(text.matches(['\n', '\r']).count()).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use crate::error::Diagnostics;

    use super::*;

    #[test]
    fn mistakes_in_options_are_in_their_texts() {
        const FILE: &str = "first: 1\nsecond: 2\n";
        let mut found = Diagnostics::of(FILE);
        let first = found.options.add("--reserve", "a=1");
        let second = found.options.add("--reserve", "b=\n2");
        let at = |line, column| SourceLocation { line, column, length: 1 };
        found.mistake(at(second + 2, 1), "two");
        found.mistake(at(first + 1, 3), "one");
        found.mistake(at(2, 1), "file");
        assert_eq!(found.options.whereabouts(at(2, 1)), "line 2");
        assert_eq!(found.options.whereabouts(at(first + 1, 1)), "`--reserve a=1`");
        assert_eq!(
            found.into_errors("f.yaml", FILE).to_string(),
            "f.yaml:2:1: file\n    2 | second: 2\n      | ^\n\
             --reserve:1:3: one\n    1 | a=1\n      |   ^\n\
             --reserve:2:1: two\n    2 | 2\n      | ^"
        );
    }
}
