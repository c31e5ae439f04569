//! The columns of both tables, and rows made of a snapshot.

use windtunnel_control::{LaneStatus, NodeStatus, ProgramStatus, Snapshot};
use windtunnel_model::word::{LaneOperationalState, ProgramState};

use super::cells::LiveTableCell;
use crate::render::table::ColumnAlignment;

/// A column.
#[derive(Debug)]
pub(super) struct LiveTableColumn {
    /// Its heading.
    pub(super) heading: &'static str,
    /// On which side it is flush.
    pub(super) align: ColumnAlignment,
    /// Its description, for the help.
    pub(super) meaning: &'static str,
}

/// The identity of a row; it stays the same from one snapshot to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiveTableRowKey {
    /// A direction of a link.
    Lane {
        /// Name of the link.
        link: String,
        /// `from-to`.
        direction: String,
    },
    /// A program of a node.
    Program {
        /// Name of the node.
        node: String,
        /// Its position.
        program: usize,
    },
}

/// A row.
#[derive(Debug, Clone)]
pub(super) struct LiveTableRow {
    pub(super) key: LiveTableRowKey,
    /// One for each column.
    pub(super) cells: Vec<LiveTableCell>,
    /// How it is drawn.
    pub(super) mood: RowHighlight,
}

/// The state that a row highlights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowHighlight {
    /// Nothing.
    Calm,
    /// Packets were dropped lately.
    Dropping,
    /// It is down, or has failed.
    Bad,
}

/// The columns of links.
pub(super) const LINKS: &[LiveTableColumn] = &[
    left("link", "name of the link"),
    left("direction", "one direction of it, from-to"),
    left("is", "up, down or parted from the other end"),
    right("delivered", "IP bits a second that came out, over the last second"),
    right("offered", "IP bits a second that went in, over the last second"),
    right("queue", "packets that wait for the rate"),
    right("bytes", "bytes that wait for the rate"),
    right("drops", "packets dropped in the last second, for any reason"),
    right("marks", "packets marked (ECN) in the last second"),
    right("late", "the most that a packet left too late in the last second"),
    right("latency", "as it is asked for now"),
    right("rate", "as it is asked for now"),
    right("loss", "as it is asked for now, in the long run"),
    right("on wire", "delivered with framing overhead: what the rate bounds"),
    right("most queued", "the most packets that waited in the last second"),
    right("all drops", "packets dropped since the run began"),
];

/// The columns of nodes.
pub(super) const NODES: &[LiveTableColumn] = &[
    left("node", "name of the node"),
    left("addresses", "its addresses"),
    left("state", "waiting, absent, running, ready, paused, exited or failed"),
    right("pid", "process id of the program inside the node"),
    right("exit", "its exit code, or 128+n for a signal n"),
    left("program", "its words"),
    right("cpu", "processors: what a limited node had in its last whole second"),
    right("cpu limit", "what it may have"),
    right("memory", "what a limited node uses, when last looked at"),
    right("memory limit", "what it may use"),
];

const fn left(heading: &'static str, meaning: &'static str) -> LiveTableColumn {
    LiveTableColumn { heading, align: ColumnAlignment::Left, meaning }
}

const fn right(heading: &'static str, meaning: &'static str) -> LiveTableColumn {
    LiveTableColumn { heading, align: ColumnAlignment::Right, meaning }
}

/// The rows of links, in the order of the file.
pub(super) fn links(snapshot: &Snapshot) -> Vec<LiveTableRow> {
    snapshot.links.iter().map(link).collect()
}

/// The rows of nodes, in the order of the file: one for each program, and one for a node without.
pub(super) fn nodes(snapshot: &Snapshot) -> Vec<LiveTableRow> {
    let nodes = snapshot.status.nodes.iter();
    let rows = nodes.flat_map(|node| {
        let programs = node.programs.iter().enumerate();
        let idle = node.programs.is_empty().then(|| program(node, 0, None));
        programs.map(|(index, of)| program(node, index, Some(of))).chain(idle)
    });
    rows.collect()
}

fn link(lane: &LaneStatus) -> LiveTableRow {
    let asked = |name: &str, cell: LiveTableCell| {
        if lane.traced.iter().any(|traced| traced == name) {
            LiveTableCell::Traced(Box::new(cell))
        } else {
            cell
        }
    };
    let mood = match lane.state.known() {
        Some(LaneOperationalState::Up) if lane.recent_dropped_packets == 0 => RowHighlight::Calm,
        Some(LaneOperationalState::Up) => RowHighlight::Dropping,
        _ => RowHighlight::Bad,
    };
    LiveTableRow {
        key: LiveTableRowKey::Lane { link: lane.link.clone(), direction: lane.direction.clone() },
        cells: vec![
            LiveTableCell::Text(lane.link.clone()),
            LiveTableCell::Text(lane.direction.clone()),
            LiveTableCell::Text(lane.state.to_string()),
            LiveTableCell::Rate(lane.delivered_bit_per_s),
            LiveTableCell::Rate(lane.offered_bit_per_s),
            LiveTableCell::Count(lane.queue_packets),
            LiveTableCell::Bytes(lane.queue_bytes),
            LiveTableCell::Count(lane.recent_dropped_packets),
            LiveTableCell::Count(lane.recent_marked_packets),
            LiveTableCell::Time(lane.recent_lateness_max_ns),
            asked("latency", LiveTableCell::Time(lane.latency_ns)),
            asked("rate", lane.rate_bit_per_s.map_or(LiveTableCell::Missing, LiveTableCell::Rate)),
            asked("loss", LiveTableCell::Loss(lane.loss_ppb)),
            LiveTableCell::Rate(lane.delivered_wire_bit_per_s),
            LiveTableCell::Count(lane.recent_queue_max_packets),
            LiveTableCell::Count(lane.dropped_packets),
        ],
        mood,
    }
}

fn program(node: &NodeStatus, index: usize, program: Option<&ProgramStatus>) -> LiveTableRow {
    let text = |of: fn(&ProgramStatus) -> String| {
        program.map_or(LiveTableCell::Missing, |program| LiveTableCell::Text(of(program)))
    };
    // Process 0 means none; an exit code of 0 is a figure to be seen.
    let number = |of: fn(&ProgramStatus) -> Option<String>| {
        program.and_then(of).map_or(LiveTableCell::Missing, LiveTableCell::Text)
    };
    let (asked, used) = (&node.limits.asked, &node.limits.used);
    let failed =
        program.is_some_and(|p| p.state == ProgramState::Failed || p.exit.is_some_and(|e| e != 0));
    LiveTableRow {
        key: LiveTableRowKey::Program { node: node.node.clone(), program: index },
        cells: vec![
            LiveTableCell::Text(node.node.clone()),
            LiveTableCell::Text(node.addresses.join(" ")),
            text(|program| program.state.to_string()),
            number(|program| program.pid.map(|pid| pid.to_string())),
            number(|program| program.exit.map(|exit| exit.to_string())),
            text(|program| program.argv.join(" ")),
            used.cpu_millis.map_or(LiveTableCell::Missing, LiveTableCell::Share),
            asked.cpu_millis.map_or(LiveTableCell::Missing, LiveTableCell::Share),
            used.memory.map_or(LiveTableCell::Missing, LiveTableCell::Bytes),
            asked.memory.map_or(LiveTableCell::Missing, LiveTableCell::Bytes),
        ],
        mood: if failed { RowHighlight::Bad } else { RowHighlight::Calm },
    }
}
