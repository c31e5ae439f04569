//! Lines of flow collections that start no deeper than their key.
//!
//! YAML wants them deeper (YAML 1.2, rule 140, `s-flow-line-prefix`), and so does the parser. Other readers,
//! PyYAML and go-yaml among them, do not care how lines inside of brackets are indented, and files
//! are written for those:
//!
//! ```yaml
//! command: [
//!   "serve",
//! ]
//! ```
//!
//! Where the parser refuses such a line, it is indented, and the text is read again.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::ScanError;

use crate::position::{SourceLocation, line, line_start};

/// The most lines that are indented.
const MOST_LINES: usize = 1000;
/// The most characters that are read again.
const MOST_AGAIN: usize = 64 << 20;

/// A text of which some lines were indented.
pub(super) struct ReindentedText<'t> {
    pub(super) text: Cow<'t, str>,
    /// Columns that were put before a line.
    by: BTreeMap<u32, u32>,
    again: usize,
}

impl<'t> ReindentedText<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        ReindentedText { text: Cow::Borrowed(text), by: BTreeMap::new(), again: 0 }
    }

    /// A place in the text as it was.
    pub(super) fn original(&self, place: SourceLocation) -> SourceLocation {
        let by = self.by.get(&place.line).copied().unwrap_or(0);
        SourceLocation { column: place.column.saturating_sub(by).max(1), ..place }
    }

    /// Whether this text has a flow collection at a place.
    pub(super) fn is_flow(&self, place: SourceLocation) -> bool {
        let by = self.by.get(&place.line).copied().unwrap_or(0);
        let column = usize::try_from(place.column.saturating_add(by)).unwrap_or(usize::MAX);
        let line = line_start(&self.text, place.line).map(|start| &self.text[start..]);
        let first = line.and_then(|line| line.chars().nth(column.saturating_sub(1)));
        matches!(first, Some('[' | '{'))
    }

    /// Whether a line between these two was indented.
    pub(super) fn has_moved(&self, from: u32, to: u32) -> bool {
        from <= to && self.by.range(from..=to).next().is_some()
    }

    /// The flow collection with which the line before the refused one ends, if that has nothing
    /// else: the parser still waits whether it is a key.
    pub(super) fn unnoticed(&self, error: &ScanError) -> Option<SourceLocation> {
        let refused = u32::try_from(error.marker().line()).ok()?;
        if error.info().contains("flow construct") {
            let column = u32::try_from(error.marker().col()).ok()?;
            return Some(SourceLocation {
                line: refused - 1,
                column: column.saturating_add(2),
                length: 1,
            });
        }
        let is_bracket = |c: char| "[{".contains(c);
        for number in (1..refused).rev() {
            let text = line(&self.text, number);
            let text = text.split_once(" #").map_or(text, |(text, _)| text).trim_end();
            if text.trim_start().is_empty() || text.trim_start().starts_with('#') {
                continue;
            }
            let bare = text.chars().all(|c| " -?".contains(c) || is_bracket(c));
            let first =
                text.chars().position(is_bracket).filter(|_| bare && text.ends_with(is_bracket));
            let column = u32::try_from(first?).ok()?.saturating_add(1);
            return Some(self.original(SourceLocation { line: number, column, length: 1 }));
        }
        None
    }

    /// Indents the line that was refused inside of the flow collection at `flow` as deep as that
    /// begins. Whether the text is to be read again.
    pub(super) fn indent(&mut self, error: &ScanError, flow: SourceLocation) -> bool {
        let marker = error.marker();
        let clamp = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let (number, column) = (clamp(marker.line()), clamp(marker.col()));
        let missing = flow.column.saturating_sub(1).saturating_sub(column);
        self.again = self.again.saturating_add(marker.index());
        let is_too_much = self.by.len() >= MOST_LINES || self.again > MOST_AGAIN;
        if !error.info().starts_with("invalid indentation")
            || missing == 0
            || number <= flow.line
            || is_too_much
        {
            return false;
        }
        let Some(start) = line_start(&self.text, number) else { return false };
        let before = &self.text[start..];
        if before.chars().take_while(|c| *c == ' ').count() != marker.col() {
            return false;
        }
        let blanks = " ".repeat(usize::try_from(missing).unwrap_or(0));
        self.text.to_mut().insert_str(start, &blanks);
        *self.by.entry(number).or_default() += missing;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{YamlValue, YamlValueKind, parse};
    use super::*;

    /// The texts of a tree, in its order.
    fn texts(value: &YamlValue) -> Vec<String> {
        match &value.kind {
            YamlValueKind::Null => vec!["null".to_owned()],
            YamlValueKind::Text(text) => vec![text.clone()],
            YamlValueKind::List(items) => items.iter().flat_map(texts).collect(),
            YamlValueKind::Map(entries) => entries
                .iter()
                .flat_map(|(key, value)| [vec![key.text.clone()], texts(value)].concat())
                .collect(),
        }
    }

    /// As PyYAML 6.0 and go-yaml 3 read them.
    #[test]
    fn lines_in_brackets_may_start_at_the_column_of_their_key_or_before_it() {
        let cases = [
            ("a: [\n  b,\n  c\n]\nd: e\n", "a b c d e"),
            ("a:\n  b: [\n    c\n  ]\n  d: {\n    e: f\n  }\n", "a b c d e f"),
            ("a:\n  b: [\nc,\n{d: e},\n[\nf\n]\n  ]\ng: h\n", "a b c d e f g h"),
            ("- {\na: 'b',\r\nc: \"d\"\r\n}\n- e\n", "a b c d e"),
            ("a: [ # why\n# that\n]\nb: c\n", "a b c"),
        ];
        for (text, expected) in cases {
            let root = parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).unwrap();
            assert_eq!(texts(&root).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn places_are_those_of_the_text_as_it_was() {
        let root = parse("a: [\nb\n]\nc: d\n").unwrap().unwrap();
        let YamlValueKind::Map(entries) = &root.kind else { panic!("{root:?}") };
        let YamlValueKind::List(items) = &entries[0].1.kind else { panic!("{root:?}") };
        assert_eq!(items[0].place, SourceLocation { line: 2, column: 1, length: 1 });
        assert_eq!(entries[1].0.place, SourceLocation { line: 4, column: 1, length: 1 });
        let error = parse("a: [\nb,\n]\nc: !x d\n").unwrap_err();
        assert_eq!((error.place.line, error.place.column), (4, 4));
    }

    #[test]
    fn a_list_that_does_not_end_is_refused_where_it_starts() {
        let error = parse("a: [\n  b,\nc: d\ne: f\n").unwrap_err();
        assert_eq!((error.place.line, error.place.column), (1, 4), "{error:?}");
    }

    #[test]
    fn the_work_for_such_lines_is_bounded() {
        let text = |lists: usize| "- [\n]\n".repeat(lists);
        assert!(parse(&text(MOST_LINES)).is_ok());
        let error = parse(&text(MOST_LINES + 1)).unwrap_err();
        assert_eq!(error.place.line, 2002);
    }
}
