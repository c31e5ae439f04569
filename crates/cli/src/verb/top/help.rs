//! The help that `?` shows.

use super::app::LiveTableTab;
use super::columns::{LINKS, LiveTableColumn, NODES};

/// The lines of the help for a table.
pub(super) fn lines(tab: LiveTableTab) -> Vec<String> {
    let columns = match tab {
        LiveTableTab::Links => LINKS,
        LiveTableTab::Nodes => NODES,
    };
    let keys = KEYS.iter().map(|(keys, what)| format!("  {keys:<15} {what}"));
    let columns = columns.iter().enumerate().map(|(index, it)| column(index, it));
    let titled = |title: &str| [String::new(), title.to_owned()];
    std::iter::once("Keys".to_owned())
        .chain(keys)
        .chain(titled("Columns"))
        .chain(columns)
        .chain(titled("Any other key goes back to the table."))
        .collect()
}

/// The first ten have a digit.
fn column(index: usize, column: &LiveTableColumn) -> String {
    let digit = if index < 10 { ((index + 1) % 10).to_string() } else { " ".to_owned() };
    format!("  {digit} {:<13} {}", column.heading, column.meaning)
}

const KEYS: &[(&str, &str)] = &[
    ("Tab", "links or nodes"),
    ("Up Down k j", "select another row; PgUp PgDn by pages, Home End to the ends"),
    ("Left Right", "columns that do not fit"),
    ("< >", "sort by the next column to the left or right; beyond the last, as in the file"),
    ("1 ... 9 0", "sort by this column; once more: the other way round"),
    ("r", "reverse the order"),
    ("/", "show only rows with this in a name; Esc shows all again"),
    ("Enter s", "change the link's direction, as `windtunnel set`: latency=80ms loss=1%"),
    ("", "of a node its limits: cpu=50%, memory=100MB, pids=20, disk=5MB/s"),
    ("d u", "take the direction down, or up again; D U: both directions"),
    ("p", "hold the tables still, or let them go on"),
    ("q Ctrl-C", "leave; the run goes on"),
];
