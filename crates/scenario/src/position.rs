//! Places in the file, and the lines that errors show.

/// A place in the file: 1-based line and column (in characters), and how many characters it marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SourceLocation {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters are meant.
    pub length: u32,
}

impl SourceLocation {
    /// Where the parser found something; what spans several lines is marked to the end of its
    /// first.
    pub(crate) fn of(span: saphyr_parser::Span) -> Self {
        let length = if span.start.line() == span.end.line() {
            span.end.col().saturating_sub(span.start.col())
        } else {
            usize::MAX
        };
        SourceLocation { length: clamp(length), ..Self::at(&span.start) }
    }

    /// A single character.
    pub(crate) fn at(marker: &saphyr_parser::Marker) -> Self {
        SourceLocation { line: clamp(marker.line()), column: clamp(marker.col() + 1), length: 1 }
    }

    /// The first character of the file.
    pub const START: SourceLocation = SourceLocation { line: 1, column: 1, length: 1 };
}

/// Something with the place where it was written.
#[derive(Debug, Clone)]
pub(crate) struct LocatedValue<T> {
    pub(crate) value: T,
    pub(crate) place: SourceLocation,
}

/// The most characters of a line that an error shows.
const SHOWN: usize = 100;

/// The source line of `place` with a line of carets below it. Long lines are cut around the place,
/// and characters that would move the carets are replaced.
pub(crate) fn snippet(text: &str, place: SourceLocation) -> String {
    let line = line(text, place.line);
    let column = usize::try_from(place.column).unwrap_or(1).saturating_sub(1);
    let skipped = if column + 20 > SHOWN { column.saturating_sub(SHOWN / 2) } else { 0 };
    let shown: Vec<char> = line.chars().skip(skipped).take(SHOWN).map(visible).collect();
    let start = (column - skipped).min(shown.len());
    let length = usize::try_from(place.length).unwrap_or(1);
    let length = length.clamp(1, shown.len().saturating_sub(start).max(1));
    let shown: String = shown.into_iter().collect();
    let number = place.line;
    let (blank, carets) = (" ".repeat(start), "^".repeat(length));
    let cut = if skipped > 0 { "…" } else { "" };
    let indent = if skipped > 0 { " " } else { "" };
    format!("{number:>5} | {cut}{}\n      | {indent}{blank}{carets}", shown.trim_end())
}

/// A line of `text`, from 1, without its end. As in YAML, a carriage return alone ends a line as
/// well.
pub(crate) fn line(text: &str, number: u32) -> &str {
    let rest = line_start(text, number).map_or("", |start| &text[start..]);
    rest.split(['\n', '\r']).next().unwrap_or("")
}

/// Where a line of `text` begins, from 1; `None`: there are fewer.
pub(crate) fn line_start(text: &str, number: u32) -> Option<usize> {
    let mut start = 0;
    for _ in 1..number {
        let rest = &text[start..];
        let end = rest.find(['\n', '\r'])?;
        start += end + if rest[end..].starts_with("\r\n") { 2 } else { 1 };
    }
    Some(start)
}

/// Keeps every character one column wide.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() || c == '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

fn clamp(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
