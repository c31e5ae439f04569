//! What services did, as `run.json` has it, and whether it was seen what their replicas did.

use windtunnel_dataplane::ServiceRedirectionTotals;
use windtunnel_engine::FailOverCounters;
use windtunnel_model::Span;
use windtunnel_model::plan::Service;
use windtunnel_trace::report::{FailOverReport, ReplicaReport, ServiceReport};

use super::doubt::FidelityDoubt;
use crate::evidence::{ReplicaHistory, RunEvidence, ServiceState};
use crate::text::rounded;

/// Why what routers redirected may not be what the replicas' programs did.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<FidelityDoubt> {
    let mut doubts: Vec<FidelityDoubt> =
        evidence.services.doubts.iter().cloned().map(FidelityDoubt::other).collect();
    let watched = evidence.services.watched.unwrap_or_default();
    if watched.overruns > 0 {
        doubts.push(FidelityDoubt::other(format!(
            "the kernel had no room for {} messages about sockets of replicas: a registration or a \
             withdrawal may be missing",
            watched.overruns
        )));
    }
    let bound = APPLIED_WITHIN.max(evidence.late_above);
    let looked = Span::from_nanos(watched.interval_max_ns);
    let applied = evidence.services.states.iter().flat_map(|state| &state.replicas);
    let applied = applied.map(|it| it.registering_max.max(it.withdrawing_max)).max();
    let longest = looked + applied.unwrap_or_default();
    if longest > bound {
        doubts.push(FidelityDoubt::of_speed(format!(
            "routers may have known up to {} late which replicas of services listen, which is more \
             than {}",
            rounded(longest),
            rounded(bound)
        )));
    }
    let refused = evidence.redirections().services.iter().map(|it| it.counters.refused);
    let refused = refused.fold(0, u64::saturating_add);
    if refused > 0 {
        doubts
            .push(FidelityDoubt::other(format!("{refused} changes of services were not possible")));
    }
    doubts.extend(counted(evidence).filter_map(|(service, it)| unkept(service, it)));
    doubts
}

/// The services with `fail-over: transparent`, and what was counted of each.
fn counted<'a>(
    evidence: &'a RunEvidence<'_>,
) -> impl Iterator<Item = (&'a Service, &'a FailOverCounters)> {
    let services = evidence.plan.services.iter().zip(&evidence.redirections().services);
    services.filter_map(|(service, it)| Some((service, it.fail_over.as_ref()?)))
}

/// Connections that were to survive their server, and would not have.
fn unkept(service: &Service, counters: &FailOverCounters) -> Option<FidelityDoubt> {
    (counters.unkept > 0).then(|| {
        FidelityDoubt::other(format!(
            "service {}: {} connections were not kept, since the table was full: they ended with \
             their replica, which fail-over: transparent excludes",
            service.name, counters.unkept
        ))
    })
}

/// What is to be known of services beside what they did.
pub(super) fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    let pins = evidence.redirections().pins;
    let counts = [
        (pins.unknown_fragments, "fragments came before the first of their datagram"),
        (pins.displaced_datagrams, "datagrams in fragments were forgotten because of others"),
        (pins.not_reassembled, "packets to replicas did not arrive in all their fragments"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut warnings: Vec<String> =
        counts.map(|(count, what)| format!("services: {count} {what}")).collect();
    warnings.extend(counted(evidence).filter(|(_, it)| it.half_open_forgotten > 0).map(
        |(service, it)| {
            format!(
                "service {}: {} connections were forgotten before their clients had answered, \
                 because more than 4096 began at a time",
                service.name, it.half_open_forgotten
            )
        },
    ));
    for (service, state) in evidence.plan.services.iter().zip(&evidence.services.states) {
        warnings.extend(one_sided(evidence, service, state));
    }
    warnings
}

/// A replica that listens for one IP version only, where the service has addresses of both.
fn one_sided(
    evidence: &RunEvidence<'_>,
    service: &Service,
    state: &ServiceState,
) -> Option<String> {
    let addresses = service.addresses().count();
    let sided = |it: &ReplicaHistory| it.one_sided(addresses).next().map(|at| (it.state.node, at));
    let (node, (port, address)) = state.replicas.iter().find_map(sided)?;
    let name = &evidence.plan.nodes.get(node.index())?.name;
    let other = if address.is_ipv4() { "IPv6" } else { "IPv4" };
    Some(format!(
        "service {}: {name} listens on {port} at {address} only, so clients that use {other} are \
         refused by it: let it listen on both, or turn {other} off",
        service.name
    ))
}

/// The figures as `run.json` has them.
pub(super) fn report(evidence: &RunEvidence<'_>) -> Vec<ServiceReport> {
    let none = ServiceRedirectionTotals::default();
    let services = evidence.plan.services.iter().zip(&evidence.services.states);
    let reports = services.enumerate().map(|(position, (service, state))| {
        let redirected = evidence.redirections().services.get(position).unwrap_or(&none);
        of_service(evidence, service, state, redirected)
    });
    reports.collect()
}

fn of_service(
    evidence: &RunEvidence<'_>,
    service: &Service,
    state: &ServiceState,
    redirected: &ServiceRedirectionTotals,
) -> ServiceReport {
    let counters = &redirected.counters;
    let replicas = state.replicas.iter();
    ServiceReport {
        service: service.name.clone(),
        addresses: service.addresses().map(|it| it.to_string()).collect(),
        ports: service.ports.iter().map(ToString::to_string).collect(),
        policy: service.policy.into(),
        fail_over: service.fail_over.into(),
        replicas: replicas.map(|it| of_replica(evidence, it, redirected)).collect(),
        unserved_packets: counters.unserved,
        picked_up: counters.picked_up,
        moved_flows: counters.moved_flows,
        lost_connections: counters.lost_connections,
        lost_packets: counters.lost,
        resets: counters.resets,
        silenced_packets: counters.silenced,
        clamped: counters.clamped,
        evicted: counters.evicted,
        expired: counters.expired,
        transparent: redirected.fail_over.as_ref().map(transparent),
    }
}

fn transparent(counters: &FailOverCounters) -> FailOverReport {
    let expelled = &counters.expelled;
    FailOverReport {
        opened: counters.opened,
        plain: counters.plain,
        unkept: counters.unkept,
        half_open_forgotten: counters.half_open_forgotten,
        promoted: counters.promoted,
        lost: counters.lost,
        expelled_gone: expelled.gone,
        expelled_silent: expelled.silent,
        expelled_stalled: expelled.stalled,
        expelled_differed: expelled.differed,
        expelled_finished_alone: expelled.finished_alone,
        expelled_reset: expelled.reset,
        expelled_not_opened: expelled.not_opened,
        resumed: counters.resumed,
        silence_max_ns: counters.silence_max_ns,
        detection_max_ns: counters.detection_max_ns,
        delivered_bytes: counters.delivered_bytes,
        probes: counters.probes,
        unusable_packets: counters.unusable,
        output_dropped: counters.output_dropped,
        unsent: counters.no_memory,
        events_lost: counters.news_lost,
    }
}

fn of_replica(
    evidence: &RunEvidence<'_>,
    replica: &ReplicaHistory,
    redirected: &ServiceRedirectionTotals,
) -> ReplicaReport {
    let counters = redirected.replica(replica.state.node);
    let node = evidence.plan.nodes.get(replica.state.node.index());
    ReplicaReport {
        replica: node.map(|node| node.name.clone()).unwrap_or_default(),
        state: replica.state.availability().into(),
        connections: counters.connections,
        flows: counters.flows,
        packets: counters.packets,
        bytes: counters.bytes,
        registrations: replica.registrations,
        withdrawals: replica.withdrawals,
        losses: replica.losses,
        registering_max_ns: replica.registering_max.as_nanos(),
        withdrawing_max_ns: replica.withdrawing_max.as_nanos(),
    }
}

/// Registrations are to hold within this time after bind(2) or listen(2), and withdrawals after the
/// end of the socket.
const APPLIED_WITHIN: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use windtunnel_trace::report::ReplicasWatched;

    use super::super::testing::RunEvidenceFixture;
    use super::*;

    fn case() -> RunEvidenceFixture {
        let mut case = RunEvidenceFixture::of(
            "services: {www: {ports: 80/tcp, replicas: b}}
nodes: {a: {}, b: {}}
routers: [r]
links: [{between: [a, r]}, {between: [b, r]}]",
        );
        case.services.states = case.plan.services.iter().map(ServiceState::new).collect();
        case.services.watched = Some(ReplicasWatched::default());
        case
    }

    fn unfaithful(case: &RunEvidenceFixture) -> (Vec<String>, bool) {
        let verdict = case.judge().verdict;
        (verdict.unfaithful, verdict.disturbed)
    }

    #[test]
    fn a_replica_that_was_not_looked_at_makes_a_run_doubtful() {
        let mut case = case();
        assert_eq!(unfaithful(&case), (Vec::new(), false));
        case.services.doubts = vec!["it was not seen".to_owned()];
        assert_eq!(unfaithful(&case), (vec!["it was not seen".to_owned()], false));
    }

    #[test]
    fn messages_that_were_lost_make_it_doubtful_and_are_no_matter_of_speed() {
        let mut case = case();
        case.services.watched = Some(ReplicasWatched { overruns: 3, ..Default::default() });
        let (doubts, disturbed) = unfaithful(&case);
        assert!(doubts[0].contains("no room for 3 messages") && !disturbed, "{doubts:?}");
    }

    #[test]
    fn what_was_known_late_counts_from_one_look_to_the_next_and_until_it_held() {
        let mut case = case();
        let interval_max_ns = 60_000_000;
        case.services.watched = Some(ReplicasWatched { interval_max_ns, ..Default::default() });
        let applied = |case: &mut RunEvidenceFixture, millis| {
            case.services.states[0].replicas[0].registering_max = Span::from_millis(millis);
        };
        applied(&mut case, 40);
        assert_eq!(unfaithful(&case).0, Vec::<String>::new());
        applied(&mut case, 41);
        let (doubts, disturbed) = unfaithful(&case);
        assert!(doubts[0].contains("up to 101ms late") && disturbed, "{doubts:?}");
    }

    #[test]
    fn connections_that_were_not_kept_make_a_run_doubtful_and_forgotten_openings_are_a_warning() {
        let mut case = case();
        let fail_over = FailOverCounters { half_open_forgotten: 7, ..Default::default() };
        case.tally.services.services = vec![ServiceRedirectionTotals {
            fail_over: Some(fail_over),
            ..ServiceRedirectionTotals::default()
        }];
        assert_eq!(unfaithful(&case), (Vec::new(), false));
        let warnings = case.judge().verdict.warnings;
        let is_it = |it: &String| it.starts_with("service www: 7 connections were forgotten");
        assert!(warnings.iter().any(is_it), "{warnings:?}");
        case.tally.services.services[0].fail_over =
            Some(FailOverCounters { unkept: 3, ..fail_over });
        let (doubts, disturbed) = unfaithful(&case);
        assert!(doubts[0].starts_with("service www: 3 connections were not kept"), "{doubts:?}");
        assert!(!disturbed);
    }

    #[test]
    fn what_redirectors_counted_after_the_end_makes_no_run_doubtful() {
        let mut case = case();
        let of = |unkept, half_open_forgotten| {
            let fail_over =
                Some(FailOverCounters { unkept, half_open_forgotten, ..Default::default() });
            vec![ServiceRedirectionTotals { fail_over, ..ServiceRedirectionTotals::default() }]
        };
        // 6000 openings of programs that were being stopped.
        case.tally.services.services = of(3, 6000);
        case.tally.services.pins.unknown_fragments = 9;
        case.services.redirected.services = of(0, 0);
        let verdict = case.judge().verdict;
        assert_eq!((verdict.unfaithful, verdict.warnings), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_report_has_a_section_with_each_replica() {
        let mut case = case();
        case.services.states[0].replicas[0].registrations = 2;
        let report = case.judge();
        let www = &report.services[0];
        assert_eq!(
            (www.service.as_str(), www.policy.as_str(), www.changes()),
            ("www", "nearest", 2)
        );
        assert_eq!(
            (www.replicas[0].replica.as_str(), www.replicas[0].state.as_str()),
            ("b", "waiting")
        );
    }
}
