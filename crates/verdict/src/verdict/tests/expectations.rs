//! What the file expects.

use windtunnel_model::{DropReason, Span, Time};
use windtunnel_trace::rate::IntervalByteCounts;
use windtunnel_trace::report::ExpectationResult;
use windtunnel_trace::sample::LinkSampleRow;
use windtunnel_trace::series::{LinkSample, LinkSampleSeries};

use super::super::testing::RunEvidenceFixture;
use crate::evidence::{EchoProbe, EchoResults, LogLine, LogMatches, ProgramKey};

fn file(expect: &str) -> String {
    format!(
        "nodes: {{web: {{run: serve, daemon: true, ready: listen}}, peer: {{run: get, count: 3}}}}\n\
         links: [{{between: [web, peer]}}]\nexpect: [{expect}]"
    )
}

fn first(case: &RunEvidenceFixture) -> ExpectationResult {
    case.judge().expectations.remove(0)
}

#[test]
fn any_of_a_group_must_do_what_is_expected() {
    let mut case = RunEvidenceFixture::of(&file("{node: peer, of: any, exit: 4}"));
    case.start(0);
    let key = ProgramKey { node: 0, program: 0 };
    assert_eq!(case.programs[&key].starts, 1);
    case.exit(2, 0, 1);
    case.exit(3, 4, 1);
    case.exit(4, 0, 1);
    let found = first(&case);
    assert!(found.met, "{found:?}");
    assert_eq!(found.about, "any node of peer exit");
    let seen =
        "true of 1 of 3; peer-1: exited with 0; peer-2: exited with 4; peer-3: exited with 0";
    assert_eq!(found.seen, seen);
}

#[test]
fn times_of_programs_count_from_the_beginning_of_the_run() {
    let ready = |max: &str| {
        let mut case =
            RunEvidenceFixture::of(&file(&format!("{{node: web, ready: {{max: {max}}}}}")));
        case.start(1);
        let key = ProgramKey { node: 0, program: 0 };
        case.programs.get_mut(&key).unwrap().note_ready(Span::from_millis(2_500));
        let found = first(&case);
        (found.seen.clone(), found.met)
    };
    assert_eq!(ready("2.5s"), ("at 2.500s".to_owned(), true));
    assert_eq!(ready("2.4s"), ("at 2.500s".to_owned(), false));
}

#[test]
fn lines_of_a_log_are_counted_over_the_streams_and_the_first_is_shown() {
    let mut case = RunEvidenceFixture::of(&file("{node: web, log: {match: up, count: {min: 3}}}"));
    let seen = |file: &str, lines, number, at_ns: u64| LogMatches {
        expectation: 0,
        key: ProgramKey { node: 0, program: 0 },
        file: file.into(),
        lines,
        first: Some(LogLine { number, at_ns, text: "up".into() }),
    };
    case.carried.logs =
        vec![seen("/r/stdout", 1, 9, 2_000_000_000), seen("/r/stderr", 2, 4, 1_250_000_000)];
    let found = first(&case);
    assert!(found.met, "{found:?}");
    assert_eq!(found.seen, "3 lines, the first at 1.250s: up");
    assert_eq!(found.look, "nodes/web/stderr:4");
    case.carried.logs.pop();
    assert!(!first(&case).met);
}

#[test]
fn the_round_trip_of_a_path_is_the_median_of_the_replies() {
    let mut case = RunEvidenceFixture::of(&file("{path: [web, peer-1], rtt: {max: 20ms}}"));
    assert_eq!((first(&case).seen.as_str(), first(&case).met), ("no reply", false));
    let probe = EchoProbe::all(&case.plan)[0];
    let rtts = [Some(10), None, Some(20), Some(40)];
    let echoes = rtts.map(|ms| (Span::ZERO, ms.map(Span::from_millis)));
    case.echoes = vec![(probe, EchoResults { echoes: echoes.to_vec(), error: None })];
    let found = first(&case);
    assert_eq!((found.about.as_str(), found.met), ("path web to peer-1 rtt", true));
    assert_eq!(found.look, "echoes.csv, lines with `web,peer-1,`");
    case.echoes[0].1 = EchoResults { echoes: Vec::new(), error: Some("no route".into()) };
    assert_eq!(first(&case).seen, "no route");
}

#[test]
fn the_loss_of_a_path_is_the_share_of_requests_without_reply() {
    let with_bound = |max: &str| {
        let expect = format!("{{path: [web, peer-1], loss: {{max: {max}}}}}");
        let mut case = RunEvidenceFixture::of(&file(&expect));
        let probe = EchoProbe::all(&case.plan)[0];
        let reply = (Span::ZERO, Some(Span::from_millis(1)));
        let mut echoes = vec![reply; 39];
        echoes.push((Span::ZERO, None));
        case.echoes = vec![(probe, EchoResults { echoes, error: None })];
        let found = first(&case);
        (found.seen.clone(), found.met)
    };
    assert_eq!(with_bound("2.5%"), ("2.500% (1 of 40 echo requests)".to_owned(), true));
    assert!(!with_bound("2.4%").1);
}

#[test]
fn the_throughput_of_a_path_is_payload_by_time() {
    let mut case =
        RunEvidenceFixture::of(&file("{path: [web, peer-1], throughput: {mean: {min: 8mbit}}}"));
    assert_eq!(first(&case).seen, "no sample");
    // A megabyte a second for three seconds.
    let second = |n: u64| Time::from_nanos(n * 1_000_000_000);
    let counts = (1..=3).map(|n| (second(n), 1_000_000)).collect();
    let (from, to) = (windtunnel_model::NodeId(0), windtunnel_model::NodeId(1));
    let payload = IntervalByteCounts { start: Time::ZERO, counts };
    case.tally.flows = vec![windtunnel_dataplane::NodePairThroughput::counted(from, to, payload)];
    let found = first(&case);
    assert_eq!((found.seen.as_str(), found.met), ("8.000mbit (0.000s to 3.000s)", true));
}

#[test]
fn a_window_that_the_run_did_not_reach_is_not_met() {
    let mut case = RunEvidenceFixture::of(&file(
        "{path: [web, peer-1], between: [20s, 30s], loss: {max: 1%}}",
    ));
    case.elapsed = Span::from_secs(10);
    let found = first(&case);
    assert!(!found.met);
    assert_eq!(found.seen, "the run ended at 10.0s, before that");
    assert!(found.about.starts_with("path web to peer-1 loss, "), "{}", found.about);
}

/// A second of samples of the first link, up: 100 packets of 1250 bytes each tenth, of which the
/// last tenth drops one by loss and two as the queue was full.
fn with_samples(expect: &str) -> ExpectationResult {
    let mut case =
        RunEvidenceFixture::of(&file(&format!("{{link: web--peer-1, direction: up, {expect}}}")));
    let sample = |tenth: u64| {
        let row = LinkSampleRow {
            offered_packets: 103,
            delivered_packets: 100,
            delivered_bytes: 100 * 1_000,
            delivered_wire_bytes: 100 * 1_250,
            lateness_max_ns: tenth * 10_000,
            queue_max_packets: tenth,
            ..LinkSampleRow::default()
        };
        let dropped = if tenth == 10 {
            vec![(DropReason::Loss, 1), (DropReason::QueueFull, 2)]
        } else {
            Vec::new()
        };
        LinkSample { at: Time::from_nanos(tenth * 100_000_000), row, dropped, rate_bit_per_s: None }
    };
    case.tally.lanes[0].series = Some(LinkSampleSeries((1..=10).map(sample).collect()));
    first(&case)
}

#[test]
fn drops_of_a_direction_are_bounded_together_and_by_cause() {
    assert!(with_samples("drops: {max: 3}").met);
    assert!(!with_samples("drops: {max: 2}").met);
    assert!(with_samples("drops: {queue-full: {max: 2}}").met);
    assert!(!with_samples("drops: {queue-full: {max: 1}}").met);
    // Three of 1030.
    assert!(with_samples("drops: {share: {max: 0.3%}}").met);
    assert!(!with_samples("drops: {share: {max: 0.29%}}").met);
}

#[test]
fn the_rate_of_a_direction_is_wire_bytes_by_time() {
    // 125 000 bytes each tenth of a second are 10 Mbit/s.
    let found = with_samples("rate: {mean: {min: 10mbit, max: 10mbit}}");
    assert!(found.met, "{found:?}");
    assert!(found.seen.starts_with("10.000mbit"), "{}", found.seen);
    assert!(!with_samples("rate: {mean: {max: 9.999mbit}}").met);
}

#[test]
fn the_latest_packet_of_a_direction_is_named_with_its_row() {
    let found = with_samples("lateness: {max: 100us}");
    assert!(found.met, "{found:?}");
    assert_eq!(found.seen, "100us by 1.000s");
    assert_eq!(
        found.look,
        "links.csv, the line that begins with `1.000000,web--peer-1,web-peer-1,`"
    );
    assert!(!with_samples("lateness: {max: 99us}").met);
}

#[test]
fn a_window_of_a_direction_is_judged_by_its_own_samples() {
    let found = with_samples("between: [0s, 0.9s], drops: {max: 0}");
    assert!(found.met, "{found:?}");
    assert!(!with_samples("between: [0.5s, 1s], drops: {max: 0}").met);
}

#[test]
fn a_direction_without_samples_meets_nothing() {
    let mut case =
        RunEvidenceFixture::of(&file("{link: web--peer-1, direction: up, drops: {max: 9}}"));
    case.tally.lanes[0].series = None;
    let found = first(&case);
    assert_eq!((found.seen.as_str(), found.met), ("no sample", false));
}

/// What is seen of a service with three expulsions, after which one client waited 700 ms, of which
/// one connection was lost; the end of programs brought more of all.
fn of_service(expect: &str) -> ExpectationResult {
    use windtunnel_dataplane::{RedirectionTotals, ServiceRedirectionTotals};
    use windtunnel_engine::{ExpelledCounts, FailOverCounters, ReplicaCounters, ServiceCounters};
    use windtunnel_model::NodeId;

    let file = format!(
        "services: {{www: {{ports: 80/tcp, replicas: [s1, s2, s3], fail-over: transparent}}}}\n\
         routers: [r]\nnodes: {{s1: , s2: , s3: , c: }}\nlinks: [{{between: [s1, r]}}, \
         {{between: [s2, r]}}, {{between: [s3, r]}}, {{between: [c, r]}}]\nexpect: [{expect}]"
    );
    let replica =
        |connections, flows| ReplicaCounters { connections, flows, ..ReplicaCounters::default() };
    let redirected = |times: u64| RedirectionTotals {
        services: vec![ServiceRedirectionTotals {
            counters: ServiceCounters {
                unserved: 2 * times,
                lost_connections: times,
                ..ServiceCounters::default()
            },
            fail_over: Some(FailOverCounters {
                lost: times,
                resumed: times,
                silence_max_ns: 700_000_000 * times,
                expelled: ExpelledCounts { gone: times, silent: 2 * times, ..Default::default() },
                ..FailOverCounters::default()
            }),
            replicas: vec![(NodeId(0), replica(6, 2)), (NodeId(1), replica(2, 0))],
        }],
        ..RedirectionTotals::default()
    };
    let mut case = RunEvidenceFixture::of(&file);
    case.services.redirected = redirected(1);
    case.tally.services = redirected(9);
    first(&case)
}

#[test]
fn a_service_is_judged_by_what_redirectors_did_until_the_end_of_the_run() {
    let seen = |expect: &str| {
        let found = of_service(expect);
        (found.about, found.seen, found.met)
    };
    let is = |about: &str, seen: &str, met| (about.to_owned(), seen.to_owned(), met);
    let expelled = seen("{service: www, expelled: {max: 3}}");
    assert_eq!(expelled, is("service www expelled", "3 expulsions", true));
    assert!(!seen("{service: www, expelled: 2}").2);
    let lost = seen("{service: www, lost: 0}");
    assert_eq!(lost, is("service www lost", "2 connections", false));
    let unserved = seen("{service: www, unserved: {max: 2}}");
    assert_eq!(unserved, is("service www unserved", "2 packets", true));
    let gap = seen("{service: www, gap: {max: 700ms}}");
    assert_eq!(gap, is("service www gap", "700ms", true));
    assert!(!seen("{service: www, gap: {max: 699ms}}").2);
}

#[test]
fn the_share_of_a_replica_is_of_all_connections_and_flows_that_began() {
    let first = of_service("{service: www, share: {s1: {min: 80%, max: 80%}}}");
    assert!(first.met, "{first:?}");
    let said = ("service www share of s1", "80.000% (8 of 10 connections and flows)");
    assert_eq!((first.about.as_str(), first.seen.as_str()), said);
    let none = of_service("{service: www, share: {s3: {min: 1%}}}");
    assert_eq!((none.seen.as_str(), none.met), ("0.000% (0 of 10 connections and flows)", false));
}
