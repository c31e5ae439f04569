//! What routers redirected for services, in a summary.

use windtunnel_model::Span;
use windtunnel_trace::report::{ReplicaReport, RunReport, ServiceReport};

use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// A line for each service.
pub(super) fn services(report: &RunReport) -> String {
    if report.services.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("service", ColumnAlignment::Left),
        ("redirected", ColumnAlignment::Right),
        ("connections and flows", ColumnAlignment::Left),
        ("changes", ColumnAlignment::Right),
        ("known within", ColumnAlignment::Right),
        ("unserved", ColumnAlignment::Right),
    ]);
    let interval_ns = report.replicas_watched.map_or(0, |it| it.interval_max_ns);
    for service in report.services.iter().take(SERVICES_MAX) {
        table.row([
            service.service.clone(),
            service.packets().to_string(),
            shares(service),
            service.changes().to_string(),
            known_within(service, interval_ns),
            service.unserved_packets.to_string(),
        ]);
    }
    let mut text = table.render("");
    if let Some(more) = report.services.len().checked_sub(SERVICES_MAX + 1) {
        let more = quantity::count(more + 1, "more service");
        text.push_str(&format!("… and {more}: see run.json\n"));
    }
    for service in report.services.iter().filter(|service| service.moved_flows > 0) {
        let (name, count) = (&service.service, service.moved_flows);
        text.push_str(&format!("{name}: other routers gave other replicas to {count} flows\n"));
    }
    text
}

/// `s1 12, s2 0`: those of each replica.
fn shares(service: &ServiceReport) -> String {
    let share = |it: &ReplicaReport| format!("{} {}", it.replica, it.connections + it.flows);
    let mut shares: Vec<String> = service.replicas.iter().take(REPLICAS_MAX).map(share).collect();
    if let Some(more) = service.replicas.len().checked_sub(REPLICAS_MAX + 1) {
        shares.push(format!("{} more", more + 1));
    }
    shares.join(", ")
}

/// The longest from a change of a replica's sockets to when routers knew it: from one look at them
/// to the next, and from what was seen to when it held.
fn known_within(service: &ServiceReport, interval_ns: u64) -> String {
    if service.changes() == 0 {
        return "-".to_owned();
    }
    let longest = |it: &ReplicaReport| it.registering_max_ns.max(it.withdrawing_max_ns);
    let applied_ns = service.replicas.iter().map(longest).max().unwrap_or(0);
    quantity::span(Span::from_nanos(interval_ns.saturating_add(applied_ns)))
}

const SERVICES_MAX: usize = 40;
/// Replicas that are named.
const REPLICAS_MAX: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_a_line_with_what_each_replica_got() {
        let replica = |name: &str, connections, registering_max_ns| ReplicaReport {
            replica: name.to_owned(),
            connections,
            packets: 10 * connections,
            registrations: 1,
            registering_max_ns,
            ..ReplicaReport::default()
        };
        let www = ServiceReport {
            service: "www".to_owned(),
            replicas: vec![replica("s1", 4, 1_000_000), replica("s2", 0, 50_000)],
            unserved_packets: 3,
            ..ServiceReport::default()
        };
        assert_eq!(shares(&www), "s1 4, s2 0");
        assert_eq!(known_within(&www, 4_000_000), "5ms");
        assert_eq!((www.packets(), www.changes()), (40, 2));
        let many = ServiceReport {
            replicas: (0..8).map(|n| replica(&format!("s{n}"), n, 0)).collect(),
            ..ServiceReport::default()
        };
        assert_eq!(shares(&many), "s0 0, s1 1, s2 2, s3 3, s4 4, s5 5, 2 more");
        let idle = ServiceReport::default();
        assert_eq!(known_within(&idle, 4_000_000), "-", "nothing has changed");
    }
}
