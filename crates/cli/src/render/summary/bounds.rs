//! Limits of memory, processes, descriptors and disks in a summary.

use windtunnel_model::{Bytes, Resource};
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
    let held = &bound.held;
    let value = |value: u64| match bound.limit {
        Resource::Memory => quantity::bytes(value),
        Resource::Disk => format!("{}/s", quantity::bytes(value)),
        _ => value.to_string(),
    };
    let asked = match bound.limit {
        Resource::Memory => Bytes(held.asked).to_string(),
        Resource::Disk => format!("{}/s", Bytes(held.asked)),
        _ => held.asked.to_string(),
    };
    [
        super::limits::owner(&bound.node, bound.program),
        bound.limit.to_string(),
        asked,
        held.peak.map_or_else(|| "-".to_owned(), value),
        held.met.to_string(),
        held.ended.to_string(),
        held.mechanism.to_string(),
    ]
}

const BOUNDS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use windtunnel_model::{HeldLimit, LimitMechanism};

    use super::*;

    #[test]
    fn a_size_is_a_size_and_what_is_not_known_a_dash() {
        let held = HeldLimit::new(Resource::Memory, LimitMechanism::GroupV1, 64_000_000);
        let bound = NodeBound {
            reservation: false,
            node: "db".into(),
            program: Some(1),
            limit: Resource::Memory,
            held: HeldLimit { peak: Some(63_999_000), met: 12, ended: 1, ..held },
        };
        let row = cells(&bound);
        assert_eq!(row[..3], ["db.1", "memory", "64MB"]);
        assert_eq!(row[4..], ["12", "1", "cgroup v1"]);
        let of = |limit, asked, peak| {
            let held = HeldLimit { asked, peak, ..bound.held.clone() };
            cells(&NodeBound { limit, held, ..bound.clone() })
        };
        assert_eq!(of(Resource::OpenFiles, 256, None)[2..4], ["256", "-"]);
        assert_eq!(of(Resource::Disk, 1_000_000, Some(999))[2..4], ["1MB/s", "999B/s"]);
    }
}
