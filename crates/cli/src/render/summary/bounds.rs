//! Limits of memory, processes, descriptors and disks in a summary.

use windtunnel_model::Bytes;
use windtunnel_trace::report::{NodeBound, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// What is limited beside what was used of it.
pub(super) fn bounds(report: &RunReport) -> String {
    if report.bounds.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("node", ColumnAlignment::Left),
        ("limit", ColumnAlignment::Left),
        ("asked", ColumnAlignment::Right),
        ("most", ColumnAlignment::Right),
        ("met", ColumnAlignment::Right),
        ("ended", ColumnAlignment::Right),
        ("by", ColumnAlignment::Left),
    ]);
    for bound in report.bounds.iter().take(BOUNDS_MAX) {
        table.row(cells(bound));
    }
    let mut text = table.render("");
    if let Some(more) = report.bounds.len().checked_sub(BOUNDS_MAX + 1) {
        let more = quantity::count(more + 1, "more limit");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

fn cells(bound: &NodeBound) -> [String; 7] {
    let value = |value: u64| match bound.limit.as_str() {
        "memory" => quantity::bytes(value),
        "disk" => format!("{}/s", quantity::bytes(value)),
        _ => value.to_string(),
    };
    let asked = match bound.limit.as_str() {
        "memory" => Bytes(bound.asked).to_string(),
        "disk" => format!("{}/s", Bytes(bound.asked)),
        _ => bound.asked.to_string(),
    };
    [
        super::limits::owner(&bound.node, bound.program),
        bound.limit.clone(),
        asked,
        bound.peak.map_or_else(|| "-".to_owned(), value),
        bound.met.to_string(),
        bound.ended.to_string(),
        bound.mechanism.clone(),
    ]
}

const BOUNDS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_size_and_what_is_not_known_a_dash() {
        let bound = NodeBound {
            reservation: false,
            node: "db".into(),
            program: Some(1),
            limit: "memory".into(),
            mechanism: "cgroup v1".into(),
            asked: 64_000_000,
            peak: Some(63_999_000),
            met: 12,
            ended: 1,
            faults: Some(0),
            evicted: None,
            refaulted: None,
            read: None,
            written: None,
            failure: None,
        };
        let row = cells(&bound);
        assert_eq!(row[..3], ["db.1", "memory", "64MB"]);
        assert_eq!(row[4..], ["12", "1", "cgroup v1"]);
        let files = NodeBound { limit: "open-files".into(), asked: 256, peak: None, ..bound };
        assert_eq!(cells(&files)[2..4], ["256", "-"]);
        let disk = NodeBound { limit: "disk".into(), asked: 1_000_000, peak: Some(999), ..files };
        assert_eq!(cells(&disk)[2..4], ["1MB/s", "999B/s"]);
    }
}
