//! Limited nodes of a summary.

use windtunnel_trace::report::{NodeLimit, RunReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// The processor time that limited nodes asked for beside what they had.
pub(super) fn limits(report: &RunReport) -> String {
    if report.limits.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("node", ColumnAlignment::Left),
        ("cpu", ColumnAlignment::Right),
        ("delivered", ColumnAlignment::Right),
        ("most", ColumnAlignment::Right),
        ("throttled", ColumnAlignment::Right),
        ("by", ColumnAlignment::Left),
    ]);
    for limit in report.limits.iter().take(LIMITS_MAX) {
        table.row(cells(limit));
    }
    let mut text = table.render("");
    if let Some(more) = report.limits.len().checked_sub(LIMITS_MAX + 1) {
        let more = quantity::count(more + 1, "more limited node");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    text
}

/// What was delivered is of the seconds in which programs wanted more.
fn cells(limit: &NodeLimit) -> [String; 6] {
    let bound = limit.bound_windows > 0;
    let share = |cpus: f64| if bound { percent(cpus) } else { "-".to_owned() };
    let seconds = format!("{} of {} s", limit.bound_windows, limit.windows);
    [
        owner(&limit.node, limit.program),
        percent(limit.asked_cpus),
        share(limit.delivered_median_cpus),
        share(limit.delivered_max_cpus),
        seconds,
        limit.mechanism.to_string(),
    ]
}

/// `db`, or `db.1` for its second program.
pub(super) fn owner(node: &str, program: Option<usize>) -> String {
    program.map_or_else(|| node.to_owned(), |program| format!("{node}.{program}"))
}

fn percent(cpus: f64) -> String {
    format!("{:.1}%", cpus * 100.0)
}

const LIMITS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use windtunnel_model::LimitMechanism;

    use super::*;

    #[test]
    fn what_was_never_wanted_has_no_share() {
        let limit = NodeLimit {
            reservation: false,
            node: "db".into(),
            program: None,
            mechanism: LimitMechanism::DutyCycle,
            asked_cpus: 0.25,
            windows: 9,
            bound_windows: 4,
            delivered_mean_cpus: 0.2201,
            delivered_median_cpus: 0.2501,
            delivered_max_cpus: 0.2534,
            used_ns: 0,
            throttled_ns: 0,
            failure: None,
        };
        let expected = ["db", "25.0%", "25.0%", "25.3%", "4 of 9 s", "duty cycle"];
        assert_eq!(cells(&limit), expected);
        let idle = NodeLimit { bound_windows: 0, ..limit };
        assert_eq!(cells(&idle)[2..5], ["-", "-", "0 of 9 s"]);
    }
}
