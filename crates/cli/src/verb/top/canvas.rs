//! A screen as characters with styles, and the bytes that show it in a terminal.

use std::fmt::Write as _;
use std::ops::Range;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What one frame shows. Rows and columns are numbered from 0, from the top left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenCanvas {
    width: usize,
    rows: Vec<Vec<ScreenCell>>,
    /// The column and row of the cursor, where one is to be seen.
    cursor: Option<ScreenPosition>,
}

/// One place for a character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenCell {
    /// `None` right of a character that is two places wide.
    character: Option<char>,
    /// Characters without a width that belong to it.
    marks: String,
    pub(super) style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScreenPosition {
    pub(super) column: usize,
    pub(super) row: usize,
}

impl ScreenCell {
    const BLANK: ScreenCell =
        ScreenCell { character: Some(' '), marks: String::new(), style: Style::new() };
}

impl ScreenCanvas {
    pub(super) fn new(width: usize, height: usize) -> ScreenCanvas {
        ScreenCanvas { width, rows: vec![vec![ScreenCell::BLANK; width]; height], cursor: None }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> usize {
        self.rows.len()
    }

    #[cfg(test)]
    pub(super) fn row(&self, row: usize) -> &[ScreenCell] {
        &self.rows[row]
    }

    /// The characters of a row.
    #[cfg(test)]
    pub(super) fn row_text(&self, row: usize) -> String {
        let mut text = String::new();
        for cell in &self.rows[row] {
            text.extend(cell.character);
            text.push_str(&cell.marks);
        }
        text
    }

    /// Writes a text from a position on, up to the end of its row; returns the column behind it.
    pub(super) fn print(&mut self, at: ScreenPosition, text: &str, style: Style) -> usize {
        let Some(row) = self.rows.get_mut(at.row) else { return at.column };
        let mut column = at.column;
        for character in text.chars() {
            let width = character.width().unwrap_or(0);
            if width == 0 {
                if let Some(cell) = column.checked_sub(1).and_then(|last| row.get_mut(last)) {
                    cell.marks.push(character);
                }
                continue;
            }
            let Some(places) = row.get_mut(column..column + width) else { break };
            places.fill(ScreenCell { character: None, marks: String::new(), style });
            places[0].character = Some(character);
            column += width;
        }
        column
    }

    /// Gives a whole row one style, on top of which its text is written.
    pub(super) fn tint(&mut self, row: usize, style: Style) {
        for cell in self.rows.get_mut(row).into_iter().flatten() {
            cell.style = style;
        }
    }

    pub(super) fn show_cursor(&mut self, at: ScreenPosition) {
        self.cursor = Some(at);
    }

    /// What a terminal has to be sent that shows `shown`: the rows that differ.
    pub(super) fn changes_since(&self, shown: Option<&ScreenCanvas>) -> String {
        let shown = shown.filter(|shown| shown.width == self.width);
        let shown = shown.filter(|shown| shown.height() == self.height());
        let mut bytes = String::from(HIDE_CURSOR);
        if shown.is_none() {
            bytes.push_str(CLEAR);
        }
        for (number, row) in self.rows.iter().enumerate() {
            if shown.is_none_or(|shown| shown.rows[number] != *row) {
                move_to(&mut bytes, ScreenPosition { column: 0, row: number });
                push_row(&mut bytes, row);
            }
        }
        if let Some(cursor) = self.cursor {
            move_to(&mut bytes, cursor);
            bytes.push_str(SHOW_CURSOR);
        }
        bytes
    }
}

/// The cells of a row, with an order where the style changes.
fn push_row(bytes: &mut String, row: &[ScreenCell]) {
    let mut style = Style::new();
    for cell in row {
        if cell.style != style {
            // A string takes all that is written.
            let _ = write!(bytes, "{RESET}{}", cell.style.render());
            style = cell.style;
        }
        bytes.extend(cell.character);
        bytes.push_str(&cell.marks);
    }
    bytes.push_str(RESET);
}

fn move_to(bytes: &mut String, at: ScreenPosition) {
    let _ = write!(bytes, "\x1b[{};{}H", at.row + 1, at.column + 1);
}

/// Which rows of a screen the title, the table, the message and the keys have. The title and the keys come first, then one
/// row of the table, then the message.
pub(super) fn divide(height: usize, message_rows: usize) -> [Range<usize>; 4] {
    let title_end = height.min(1);
    let keys_begin = height.saturating_sub(1).max(title_end);
    let table_end = keys_begin.saturating_sub(message_rows).max(title_end + 1).min(keys_begin);
    [0..title_end, title_end..table_end, table_end..keys_begin, keys_begin..height]
}

/// A text without what its first columns show.
pub(super) fn skip_columns(text: &str, columns: usize) -> &str {
    let mut rest = text;
    while text.width() - rest.width() < columns {
        let mut characters = rest.chars();
        if characters.next().is_none() {
            break;
        }
        rest = characters.as_str();
    }
    rest
}

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR: &str = "\x1b[2J";
const RESET: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas(text: &str) -> ScreenCanvas {
        let mut canvas = ScreenCanvas::new(6, 2);
        canvas.print(ScreenPosition { column: 1, row: 1 }, text, Style::new());
        canvas
    }

    #[test]
    fn a_text_ends_with_its_row_and_wide_characters_are_whole_or_not_there() {
        assert_eq!(canvas("abcdefg").row_text(1), " abcde");
        assert_eq!(canvas("a日本語").row_text(1), " a日本");
        assert_eq!(canvas("日本語").row_text(1), " 日本 ");
        assert_eq!(canvas("e\u{301}!").row_text(1), " e\u{301}!   ");
    }

    #[test]
    fn only_rows_that_differ_are_sent() {
        let (one, other) = (canvas("one"), canvas("two"));
        assert_eq!(one.changes_since(Some(&one)), HIDE_CURSOR);
        let expected = format!("{HIDE_CURSOR}\x1b[2;1H two  {RESET}");
        assert_eq!(other.changes_since(Some(&one)), expected);
        let resized = ScreenCanvas::new(5, 2);
        assert!(resized.changes_since(Some(&one)).contains(CLEAR));
        assert!(one.changes_since(None).contains(CLEAR));
    }

    #[test]
    fn the_title_and_the_keys_have_a_row_before_the_message_has() {
        assert_eq!(divide(24, 2), [0..1, 1..21, 21..23, 23..24]);
        assert_eq!(divide(4, 3), [0..1, 1..2, 2..3, 3..4]);
        assert_eq!(divide(2, 1), [0..1, 1..1, 1..1, 1..2]);
        assert_eq!(divide(0, 1), [0..0, 0..0, 0..0, 0..0]);
    }

    #[test]
    fn columns_are_skipped_by_what_they_show() {
        assert_eq!(skip_columns("abc", 2), "c");
        assert_eq!(skip_columns("日本", 1), "本");
        assert_eq!(skip_columns("a", 5), "");
    }
}
