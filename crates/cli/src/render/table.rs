//! Columns that line up, also with names of wide characters.

use unicode_width::UnicodeWidthStr;

use crate::render::text;

/// On which side a column is flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnAlignment {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table for people.
#[derive(Debug)]
pub(crate) struct TextTable {
    aligns: Vec<ColumnAlignment>,
    /// The headings are the first.
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these columns.
    pub(crate) fn new(columns: &[(&str, ColumnAlignment)]) -> Self {
        TextTable {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
        }
    }

    /// Adds a row; cells that are missing at its end are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(printable).collect());
    }

    /// The lines, headings first, without blanks at their ends.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.aligns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.width()).max().unwrap_or(0)
            })
            .collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    /// The whole table, each line behind `indent` and with its end.
    pub(crate) fn render(&self, indent: &str) -> String {
        self.lines().into_iter().map(|line| format!("{indent}{line}\n")).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(widths).zip(&self.aligns) {
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                ColumnAlignment::Left => line.extend([cell, blanks.as_str(), GAP]),
                ColumnAlignment::Right => line.extend([blanks.as_str(), cell, GAP]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

const GAP: &str = "  ";

/// Control characters are shown escaped.
pub(crate) fn printable(cell: String) -> String {
    if !cell.chars().any(text::is_active) {
        return cell;
    }
    text::escaped(&cell, text::is_active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_wide_and_long_names() {
        let mut table =
            TextTable::new(&[("from", ColumnAlignment::Left), ("hops", ColumnAlignment::Right)]);
        table.row(["東京".to_owned(), "3".to_owned()]);
        table.row(["a-very-long-name".to_owned(), "12".to_owned()]);
        assert_eq!(
            table.render("  "),
            "  from              hops\n\
             \u{20} 東京                 3\n\
             \u{20} a-very-long-name    12\n"
        );
    }

    #[test]
    fn a_cell_cannot_break_the_line_or_steer_the_terminal() {
        let mut table = TextTable::new(&[("argv", ColumnAlignment::Left)]);
        table.row(["printf 'a\nb\u{1b}[2J'".to_owned()]);
        assert_eq!(table.lines()[1], "printf 'a\\nb\\u{1b}[2J'");
    }

    #[test]
    fn missing_cells_are_empty_and_lines_have_no_blanks_at_the_end() {
        let mut table =
            TextTable::new(&[("a", ColumnAlignment::Left), ("b", ColumnAlignment::Left)]);
        table.row(["x".to_owned()]);
        assert_eq!(table.lines(), ["a  b", "x"]);
    }
}
