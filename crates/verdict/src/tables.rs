//! What was measured, as tables of the run folder.

use std::fmt::Write;

use windtunnel_dataplane::{NatTally, Tally};
use windtunnel_limit::LimitAccount;
use windtunnel_limit::supervisor::LimitSample;
use windtunnel_model::{NodeId, Plan, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::sample::lane_names;

use crate::evidence::RunEvidence;

/// File names and contents; none where nothing was measured.
pub(crate) fn tables(evidence: &RunEvidence<'_>) -> Vec<(&'static str, String)> {
    let RunEvidence { plan, echoes, tally, limits, bounds, .. } = *evidence;
    let name = |node: NodeId| plan.nodes[node.index()].name.as_str();
    let mut tables = Vec::new();
    if tally.departures.packets() > 0 {
        tables.push(("lateness.csv", bins_of_lateness(plan, tally)));
    }
    if !echoes.is_empty() {
        let mut table = "from,to,sent_s,rtt_s\n".to_owned();
        for (probe, seen) in echoes {
            let (from, to) = (name(probe.from), name(probe.to));
            for (sent, rtt) in &seen.echoes {
                let sent = probe.during.map_or_else(String::new, |_| micros(*sent));
                let rtt = rtt.map_or_else(String::new, micros);
                // Writing to a text cannot fail.
                let _ = writeln!(table, "{from},{to},{sent},{rtt}");
            }
        }
        tables.push(("echoes.csv", table));
    }
    if !tally.flows.is_empty() {
        let mut table = "time_s,from,to,payload_bytes\n".to_owned();
        for flow in &tally.flows {
            let (from, to) = (name(flow.from), name(flow.to));
            for (at, bytes) in &flow.payload.counts {
                let at = micros(at.since(Time::ZERO));
                let _ = writeln!(table, "{at},{from},{to},{bytes}");
            }
        }
        tables.push(("paths.csv", table));
    }
    if !tally.nats.is_empty() {
        tables.push(("nat.csv", mappings(plan, &tally.nats)));
    }
    if !limits.is_empty() {
        tables.push(("limits.csv", seconds_of_limits(plan, limits)));
    }
    if bounds.iter().any(|bound| !bound.looks.is_empty()) {
        tables.push(("bounds.csv", seconds_of_bounds(plan, bounds)));
    }
    tables
}

/// The mappings of NATs: those that are over, then those that live at the end.
fn mappings(plan: &Plan, nats: &[NatTally]) -> String {
    let mut table =
        "router,protocol,internal,external,remote,made_s,ended_s,state,outbound,inbound\n"
            .to_owned();
    for nat in nats {
        let router = &plan.routers[nat.router.index()].name;
        let ended = nat.ended.iter().map(|it| (&it.mapping, Some(it.ended)));
        for (mapping, ended) in ended.chain(nat.live.iter().map(|it| (it, None))) {
            let state = match (ended, mapping.forwarded) {
                (Some(_), _) => "expired",
                (None, true) => "forwarded",
                (None, false) => "live",
            };
            let seconds = |at| micros(Span::from_nanos(nat.in_run(at)));
            let (made, ended) = (seconds(mapping.made), ended.map_or_else(String::new, seconds));
            let (protocol, internal) = (mapping.transport.name(), mapping.internal);
            let remote = mapping.remote.map_or_else(String::new, |it| it.to_string());
            // Writing to a text cannot fail.
            let _ = writeln!(
                table,
                "{router},{protocol},{internal},{},{remote},{made},{ended},{state},{},{}",
                mapping.external, mapping.outbound, mapping.inbound
            );
        }
    }
    table
}

/// A row for each bin of a histogram of lateness: first of all packets that nodes got, without a
/// link, then of each link direction.
fn bins_of_lateness(plan: &Plan, tally: &Tally) -> String {
    let mut table = "link,direction,lateness_ns,packets\n".to_owned();
    let mut add = |link: &str, direction: &str, lateness: &LatenessHistogram| {
        for (nanos, packets) in lateness.bins() {
            let _ = writeln!(table, "{link},{direction},{nanos},{packets}");
        }
    };
    add("", "", &tally.departures);
    for ((link, direction), lane) in lane_names(plan).iter().zip(&tally.lanes) {
        add(link, direction, &lane.lateness);
    }
    table
}

/// A row for each second of each limit of memory or processes: what was in use at its end, and what
/// happened in it.
fn seconds_of_bounds(plan: &Plan, bounds: &[LimitAccount]) -> String {
    let mut table =
        "time_s,node,program,limit,asked,used,met,ended,faults,evicted,refaulted\n".to_owned();
    for bound in bounds {
        let (name, limit) = (bound.owner.name(plan), bound.resource);
        let program = bound.owner.program().map(|it| it.to_string()).unwrap_or_default();
        let mut before = LimitSample::default();
        for look in &bound.looks {
            let LimitSample { asked, used, .. } = *look;
            let at = micros(Span::from_nanos(look.at_ns));
            let new = |count: fn(&LimitSample) -> u64| count(look).saturating_sub(count(&before));
            let (met, ended) = (new(|it| it.met), new(|it| it.ended));
            let faults = new(|it| it.faults);
            let evicted = grown(look.evicted, before.evicted);
            let refaulted = grown(look.refaulted, before.refaulted);
            // Writing to a text cannot fail.
            let _ = writeln!(
                table,
                "{at},{name},{program},{limit},{asked},{used},{met},{ended},{faults},{evicted},{refaulted}"
            );
            before = *look;
        }
    }
    table
}

/// By how much a count has grown that the kernel may not have.
fn grown(now: Option<u64>, before: Option<u64>) -> String {
    now.map_or_else(String::new, |now| now.saturating_sub(before.unwrap_or(0)).to_string())
}

/// A row for each second of each node, program or reservation.
fn seconds_of_limits(plan: &Plan, limits: &[LimitAccount]) -> String {
    let mut table = "time_s,node,program,asked_cpus,delivered_cpus,throttled_s\n".to_owned();
    for account in limits {
        let name = account.owner.name(plan);
        let program =
            account.owner.program().map(|program| program.to_string()).unwrap_or_default();
        for window in &account.windows {
            let (at, held) = (Span::from_nanos(window.end_ns), Span::from_nanos(window.held_ns));
            let (at, held) = (micros(at), micros(held));
            let (asked, delivered) = (f64::from(window.asked_millis) / 1000.0, window.delivered());
            // Writing to a text cannot fail.
            let _ = writeln!(table, "{at},{name},{program},{asked:.3},{delivered:.4},{held}");
        }
    }
    table
}

/// Seconds with six decimals.
fn micros(span: Span) -> String {
    let micros = span.as_nanos() / 1000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use windtunnel_model::expect::ExpectationWindow;
    use windtunnel_trace::rate::IntervalByteCounts;

    use super::*;
    use crate::evidence::{EchoProbe, EchoResults, JudgingTerms};
    use crate::results::PartResults;
    use windtunnel_dataplane::{LaneResult, NodePairThroughput};
    use windtunnel_limit::ResourceLimitOwner;
    use windtunnel_model::{HeldLimit, LimitMechanism, Resource};

    /// The tables of a run in which nothing but this was measured.
    fn tables_of(plan: &Plan, results: &PartResults) -> Vec<(&'static str, String)> {
        let terms = JudgingTerms { plan_hash: "", late_above: Span::ZERO, attempts: &[] };
        tables(&RunEvidence::of(plan, terms, results))
    }

    #[test]
    fn requests_before_the_run_have_no_time_and_those_without_reply_no_round_trip() {
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        let (from, to) = (NodeId(0), NodeId(1));
        let before = EchoProbe { from, to, during: None };
        let window = ExpectationWindow { from: Span::from_secs(1), to: None };
        let during =
            EchoProbe { from: to, to: from, during: Some((window, Span::from_millis(100))) };
        let seen = |at, rtt| EchoResults { echoes: vec![(at, rtt)], error: None };
        let rtt = Some(Span::from_micros(1_500_250));
        let echoes =
            vec![(before, seen(Span::ZERO, rtt)), (during, seen(Span::from_millis(1_100), None))];
        let expected = "from,to,sent_s,rtt_s\na,b,,1.500250\nb,a,1.100000,\n".to_owned();
        let results = PartResults { echoes, ..PartResults::default() };
        assert_eq!(tables_of(&plan, &results), [("echoes.csv", expected)]);
    }

    #[test]
    fn payload_is_a_row_for_each_interval_and_no_table_without_measurements() {
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        assert!(tables_of(&plan, &PartResults::default()).is_empty());
        let at = |tenth: u64| Time::from_nanos(tenth * 100_000_000);
        let payload =
            IntervalByteCounts { start: Time::ZERO, counts: vec![(at(1), 1448), (at(2), 0)] };
        let flows = vec![NodePairThroughput::counted(NodeId(0), NodeId(1), payload)];
        let tally = Tally { flows, ..Tally::default() };
        let expected =
            "time_s,from,to,payload_bytes\n0.100000,a,b,1448\n0.200000,a,b,0\n".to_owned();
        let results = PartResults { tally, ..PartResults::default() };
        assert_eq!(tables_of(&plan, &results), [("paths.csv", expected)]);
    }

    #[test]
    fn what_happened_at_a_limit_is_a_row_for_each_second() {
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {memory: 64MB}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        let held = HeldLimit::new(Resource::Memory, LimitMechanism::Watch, 64_000_000);
        let mut bound = LimitAccount::new(ResourceLimitOwner::Node(0), Resource::Memory, held);
        let look = LimitSample {
            asked: 64_000_000,
            used: 7,
            met: 3,
            refaulted: Some(5),
            ..LimitSample::default()
        };
        bound.looks = vec![
            LimitSample { at_ns: 1_000_000_000, ..look },
            LimitSample { at_ns: 2_000_500_000, met: 4, ended: 1, refaulted: Some(9), ..look },
        ];
        let expected = "time_s,node,program,limit,asked,used,met,ended,faults,evicted,refaulted\n\
                        1.000000,a,,memory,64000000,7,3,0,0,,5\n\
                        2.000500,a,,memory,64000000,7,1,1,0,,4\n";
        let results = PartResults { bounds: vec![bound], ..PartResults::default() };
        assert_eq!(tables_of(&plan, &results), [("bounds.csv", expected.to_owned())]);
    }

    #[test]
    fn lateness_is_a_row_for_each_bin_of_all_packets_and_of_each_direction() {
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        let mut tally = Tally::default();
        tally.departures.record(Span::from_nanos(40));
        let mut lane = LaneResult::default();
        lane.lateness.record(Span::from_nanos(40));
        lane.lateness.record(Span::from_nanos(90));
        lane.lateness.record(Span::from_nanos(90));
        tally.lanes = vec![lane, LaneResult::default()];
        let found = tables_of(&plan, &PartResults { tally, ..PartResults::default() });
        let rows: Vec<Vec<&str>> =
            found[0].1.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!((found.len(), found[0].0), (1, "lateness.csv"));
        assert_eq!(rows[0], ["link", "direction", "lateness_ns", "packets"]);
        assert_eq!((rows[1][0], rows[1][1], rows[1][3]), ("", "", "1"));
        let packets: Vec<(&str, &str)> = rows[2..].iter().map(|row| (row[1], row[3])).collect();
        assert_eq!(packets.iter().map(|(_, n)| n.parse::<u64>().unwrap()).sum::<u64>(), 3);
        assert!(packets.iter().all(|(direction, _)| *direction == "a-b"));
    }
}
