//! Both tables as plain text.

use windtunnel_control::Snapshot;

use super::columns::{self, LiveTableColumn, LiveTableRow};
use crate::render::quantity;
use crate::render::table::TextTable;
use crate::verb::service::render_services;

/// Links, then nodes, with every column.
pub(super) fn render(snapshot: &Snapshot) -> String {
    let status = &snapshot.status;
    let window = match snapshot.window_ns {
        0 => "nothing is measured yet".to_owned(),
        window => format!("rates over {}", quantity::nanos(window)),
    };
    let elapsed = quantity::nanos(status.elapsed_ns);
    let services = match &status.services[..] {
        [] => String::new(),
        services => format!("\n{}", render_services(services)),
    };
    format!(
        "{}, {elapsed} after it began, {window}\n{}\n{}{services}",
        status.name,
        table(columns::LINKS, &columns::links(snapshot)),
        table(columns::NODES, &columns::nodes(snapshot)),
    )
}

fn table(columns: &[LiveTableColumn], rows: &[LiveTableRow]) -> String {
    let headings: Vec<_> = columns.iter().map(|column| (column.heading, column.align)).collect();
    let mut table = TextTable::new(&headings);
    for row in rows {
        table.row(row.cells.iter().map(super::cells::LiveTableCell::text));
    }
    table.render("")
}
