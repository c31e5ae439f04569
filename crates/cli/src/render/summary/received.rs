//! Nodes of a summary that had no time for all that came to them.

use windtunnel_trace::report::{NodeReceived, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// What came beside what was dropped before the node's kernel worked for it, of nodes where that
/// was something.
pub(super) fn received(report: &RunReport) -> String {
    let lossy = |node: &&NodeReceived| node.delivered < node.came || node.overflowed > 0;
    let nodes: Vec<&NodeReceived> = report.received.iter().filter(lossy).collect();
    if nodes.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("receiver", ColumnAlignment::Left),
        ("packets", ColumnAlignment::Right),
        ("queue full", ColumnAlignment::Right),
        ("dropped early", ColumnAlignment::Right),
        ("sockets full", ColumnAlignment::Right),
        ("receiving took", ColumnAlignment::Right),
    ]);
    for node in nodes.iter().take(NODES_MAX) {
        table.row(cells(node));
    }
    let mut text = table.render("");
    if let Some(more) = nodes.len().checked_sub(NODES_MAX + 1) {
        let more = quantity::count(more + 1, "more receiver");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

fn cells(node: &NodeReceived) -> [String; 6] {
    [
        node.node.clone(),
        node.came.to_string(),
        node.dropped_full.to_string(),
        node.dropped_early.to_string(),
        node.overflowed.to_string(),
        format!("{:.2} s", node.computed_ns as f64 / 1e9),
    ]
}

const NODES_MAX: usize = 40;
