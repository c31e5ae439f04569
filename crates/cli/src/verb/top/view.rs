//! One table: its rows in the wanted order, those that pass the filter, and the selected one.

use super::columns::{LiveTableColumn, LiveTableRow, LiveTableRowKey};
use crate::render::table::ColumnAlignment;

/// A table that is looked at.
#[derive(Debug)]
pub(super) struct LiveTableView {
    columns: &'static [LiveTableColumn],
    /// In the order of the file.
    rows: Vec<LiveTableRow>,
    /// Positions among `rows` of the shown ones, in their order.
    shown: Vec<usize>,
    sort: Option<ColumnSortOrder>,
    filter: String,
    /// Position among `shown`, and the row there: the selection follows the row, not the place.
    selected: usize,
    key: Option<LiveTableRowKey>,
    /// Columns left out between the names and the rest.
    skipped: usize,
}

/// By which column rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnSortOrder {
    /// Position of the column.
    pub(super) column: usize,
    /// Whether the largest come first.
    pub(super) descending: bool,
}

impl LiveTableView {
    /// An empty table.
    pub(super) fn new(columns: &'static [LiveTableColumn]) -> Self {
        LiveTableView {
            columns,
            rows: Vec::new(),
            shown: Vec::new(),
            sort: None,
            filter: String::new(),
            selected: 0,
            key: None,
            skipped: 0,
        }
    }

    /// The columns.
    pub(super) fn columns(&self) -> &'static [LiveTableColumn] {
        self.columns
    }

    /// How many rows there are, shown or not.
    pub(super) fn total(&self) -> usize {
        self.rows.len()
    }

    /// The shown rows, in order.
    pub(super) fn shown(&self) -> impl ExactSizeIterator<Item = &LiveTableRow> {
        self.shown.iter().map(|&index| &self.rows[index])
    }

    /// The order, if it is not that of the file.
    pub(super) fn sort(&self) -> Option<ColumnSortOrder> {
        self.sort
    }

    /// The text that names must contain to be shown.
    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Position of the selected row among those shown.
    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// The selected row; none in an empty table.
    pub(super) fn selected_key(&self) -> Option<&LiveTableRowKey> {
        self.key.as_ref()
    }

    /// How many columns behind the names are left out.
    pub(super) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Takes new rows.
    pub(super) fn update(&mut self, rows: Vec<LiveTableRow>) {
        self.rows = rows;
        self.arrange();
    }

    /// Shows only rows in which this text appears, in upper or lower case.
    pub(super) fn set_filter(&mut self, filter: &str) {
        filter.clone_into(&mut self.filter);
        self.arrange();
    }

    /// Sorts by a column; by the column of now the other way round.
    pub(super) fn sort_by(&mut self, column: usize) {
        let Some(spec) = self.columns.get(column) else { return };
        self.sort = match self.sort {
            Some(now) if now.column == column => {
                Some(ColumnSortOrder { descending: !now.descending, ..now })
            }
            // Of figures the largest ones are of interest.
            _ => Some(ColumnSortOrder { column, descending: spec.align == ColumnAlignment::Right }),
        };
        self.arrange();
    }

    /// Sorts by the next column to the right or left; beyond the ends is the order of the file.
    pub(super) fn sort_beside(&mut self, right: bool) {
        let last = self.columns.len() - 1;
        let column = match (self.sort.map(|sort| sort.column), right) {
            (None, true) => Some(0),
            (None, false) => Some(last),
            (Some(column), true) => (column < last).then_some(column + 1),
            (Some(column), false) => column.checked_sub(1),
        };
        self.sort = None;
        match column {
            Some(column) => self.sort_by(column),
            None => self.arrange(),
        }
    }

    /// The other way round, if sorted.
    pub(super) fn reverse(&mut self) {
        if let Some(sort) = self.sort {
            self.sort_by(sort.column);
        }
    }

    /// Moves the selection down, or up if negative.
    pub(super) fn move_by(&mut self, rows: isize) {
        self.select(self.selected.saturating_add_signed(rows));
    }

    /// Selects a row by its position, the last at most.
    pub(super) fn select(&mut self, position: usize) {
        self.selected = position.min(self.shown.len().saturating_sub(1));
        let row = self.shown.get(self.selected);
        self.key = row.map(|&index| self.rows[index].key.clone());
    }

    /// Leaves out a column more or less behind the names.
    pub(super) fn scroll(&mut self, right: bool, names: usize) {
        let most = self.columns.len() - names - 1;
        self.skipped =
            if right { (self.skipped + 1).min(most) } else { self.skipped.saturating_sub(1) };
    }

    fn arrange(&mut self) {
        let wanted = self.filter.to_lowercase();
        let passes = |row: &LiveTableRow| {
            wanted.is_empty() || row.words().any(|word| word.contains(&wanted))
        };
        let rows = self.rows.iter().enumerate().filter(|(_, row)| passes(row));
        self.shown = rows.map(|(index, _)| index).collect();
        if let Some(ColumnSortOrder { column, descending }) = self.sort {
            self.shown.sort_by(|&one, &two| {
                let order = self.rows[one].cells[column].order(&self.rows[two].cells[column]);
                if descending { order.reverse() } else { order }
            });
        }
        let same = |&index: &usize| self.key.as_ref() == Some(&self.rows[index].key);
        let position = self.shown.iter().position(same);
        self.select(position.unwrap_or(self.selected));
    }
}

impl LiveTableRow {
    fn words(&self) -> impl Iterator<Item = String> {
        self.cells.iter().filter_map(|cell| match cell {
            super::cells::LiveTableCell::Text(text) => Some(text.to_lowercase()),
            _ => None,
        })
    }
}
