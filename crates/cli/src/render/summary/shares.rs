//! Programs of a summary that shared the link of their node.

use windtunnel_model::Rate;
use windtunnel_trace::report::{NodeShares, ProgramShare, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// What each program sent, and what is not known of it.
pub(super) fn shares(report: &RunReport) -> String {
    if report.shares.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("sender", ColumnAlignment::Left),
        ("program", ColumnAlignment::Left),
        ("min", ColumnAlignment::Right),
        ("weight", ColumnAlignment::Right),
        ("sent", ColumnAlignment::Right),
        ("share", ColumnAlignment::Right),
        ("dropped", ColumnAlignment::Right),
    ]);
    for node in report.shares.iter().take(NODES_MAX) {
        let all: u64 = node.programs.iter().map(|program| program.wire_bytes).sum();
        node.programs.iter().for_each(|program| table.row(cells(node, program, all)));
    }
    let mut text = table.render("");
    if let Some(more) = report.shares.len().checked_sub(NODES_MAX + 1) {
        let more = quantity::count(more + 1, "more sender");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text.extend(report.shares.iter().take(NODES_MAX).filter_map(unclassified));
    text
}

fn cells(node: &NodeShares, program: &ProgramShare, all: u64) -> [String; 7] {
    let min = program.min_bits_per_second.and_then(Rate::from_bits_per_second);
    let share = program.wire_bytes as f64 * 100.0 / all.max(1) as f64;
    [
        node.node.clone(),
        program.name.clone(),
        min.map_or_else(|| "-".to_owned(), |min| min.to_string()),
        program.weight.to_string(),
        quantity::bytes(program.wire_bytes),
        format!("{share:.1}%"),
        program.dropped_packets.to_string(),
    ]
}

/// What was among the rest because nothing more was known of it.
fn unclassified(node: &NodeShares) -> Option<String> {
    let packets = [
        (node.early_packets, "before its program was found"),
        (node.unowned_packets, "of sockets that no process had any more"),
        (node.portless_packets, "without ports"),
        (node.untracked_packets, "of flows beyond those that are tracked"),
    ];
    let packets = packets.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = packets.map(|(count, what)| format!("{count} {what}")).collect();
    let mut text = String::new();
    if !parts.is_empty() {
        text = format!("packets of {} among the rest: {}\n", node.node, parts.join(", "));
    }
    if node.shared_flows > 0 {
        let NodeShares { shared_flows, attributed_packets, unattributed_packets, .. } = node;
        text.push_str(&format!(
            "flows of sockets that several programs had: {shared_flows}; of their packets, \
             {attributed_packets} count as the sender's, {unattributed_packets} as the first \
             program's\n"
        ));
    }
    (!text.is_empty()).then_some(text)
}

const NODES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn share(name: &str, min: Option<u64>, wire_bytes: u64) -> ProgramShare {
        ProgramShare {
            program: None,
            name: name.to_owned(),
            min_bits_per_second: min,
            weight: 2,
            packets: 1,
            bytes: 1,
            wire_bytes,
            dropped_packets: 4,
        }
    }

    #[test]
    fn what_is_not_known_of_packets_is_said_where_it_is_something() {
        let mut node = NodeShares {
            node: "box".to_owned(),
            lane: "box-isp".to_owned(),
            programs: vec![share("a", Some(1000), 750_000), share("(rest)", None, 250_000)],
            flows: 2,
            shared_flows: 0,
            attributed_packets: 0,
            attributed_bytes: 0,
            unattributed_packets: 0,
            unattributed_bytes: 0,
            early_packets: 0,
            early_bytes: 0,
            unowned_packets: 0,
            unowned_bytes: 0,
            portless_packets: 0,
            portless_bytes: 0,
            untracked_packets: 0,
            untracked_bytes: 0,
        };
        assert_eq!(unclassified(&node), None);
        let shown = cells(&node, &node.programs[0], 1_000_000);
        assert_eq!(shown, ["box", "a", "1kbit", "2", "750KB", "75.0%", "4"].map(str::to_owned));
        (node.early_packets, node.portless_packets, node.shared_flows) = (3, 1, 2);
        (node.attributed_packets, node.unattributed_packets) = (70, 5);
        let text = unclassified(&node).unwrap();
        assert_eq!(
            text,
            "packets of box among the rest: 3 before its program was found, 1 without ports\n\
             flows of sockets that several programs had: 2; of their packets, \
             70 count as the sender's, 5 as the first program's\n"
        );
    }
}
