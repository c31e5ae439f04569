//! Round trips: ping over both protocols, names, several ways to a node.

use std::fmt::Write as _;

use super::support::{Lab, any_user, is_missing};

#[test]
fn a_round_trip_is_never_shorter_than_the_links_latencies() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a: {run: [{run: ping -4 -c 5 -i 0.1 b}, {run: ping -6 -c 5 -i 0.1 b}]}
  b: {}
routers: [r]
links:
  - {between: [a, r], latency: 10ms}
  - {between: [r, b], latency: 5ms, jitter: 2ms}
",
        );
        for stream in ["stdout.0", "stdout.1"] {
            let text = outcome.file(&format!("nodes/a/{stream}"));
            let rtts = round_trips(&text);
            assert_eq!(rtts.len(), 5, "{text}");
            // 2 * (10 ms + 5 ms), and jitter only adds.
            assert!(rtts.iter().all(|rtt| *rtt >= 30.0), "{text}");
        }
        outcome.assert_conserved();
    }
}

#[test]
fn two_nodes_need_no_router_between_them() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -c 3 -i 0.1 b}, b: {run: ping -6 -c 3 -i 0.1 a}}
links: [{between: [a, b], latency: 3ms}]
",
        );
        for node in ["a", "b"] {
            assert!(round_trips(&outcome.output(node)).iter().all(|rtt| *rtt >= 6.0));
        }
    }
}

#[test]
fn a_node_with_two_links_answers_from_the_address_that_was_asked() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  a: {run: ping -c 2 -i 0.1 10.7.0.1}
  b: {address: 10.7.0.1}
  c: {run: ping -c 2 -i 0.1 10.7.0.1}
links:
  - {between: [a, b], latency: 2ms}
  - {between: [b, c], latency: 4ms}
allow-unreachable: true
",
        );
        for node in ["a", "c"] {
            let text = outcome.output(node);
            assert_eq!(text.matches("from 10.7.0.1").count(), 2, "{text}");
        }
    }
}

#[test]
fn a_node_passes_packets_on_only_where_the_file_says_so() {
    if is_missing(&["ping"]) {
        return;
    }
    let scenario = |forward: bool| {
        format!(
            "allow-unreachable: true
nodes:
  a: {{run: ping -c 3 -i 0.1 -W 1 c}}
  b: {{forward: {forward}}}
  c: {{}}
links: [{{between: [a, b], latency: 2ms}}, {{between: [b, c], latency: 2ms}}]
expect: [{{node: a, exit: any}}]
"
        )
    };
    for user in any_user() {
        let lab = Lab::new(user);
        let rtts = round_trips(&lab.pass(&scenario(true)).output("a"));
        assert_eq!(rtts.len(), 3);
        assert!(rtts.iter().all(|rtt| *rtt >= 8.0), "{rtts:?}");
        assert_eq!(round_trips(&lab.pass(&scenario(false)).output("a")), [0.0; 0]);
    }
}

#[test]
fn a_hundred_nodes_reach_the_one_in_the_middle() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes:
  center: {}
  leaf: {count: 100, run: ping -c 2 -i 0.2 center}
routers: [star]
links:
  - {between: [center, star], latency: 1ms}
  - {between: [leaf, star], latency: 2ms}
",
        );
        let mut short = String::new();
        for leaf in 1..=100 {
            let rtts = round_trips(&outcome.output(&format!("leaf-{leaf}")));
            if rtts.len() != 2 || rtts.iter().any(|rtt| *rtt < 6.0) {
                write!(short, "leaf-{leaf}: {rtts:?} ").unwrap();
            }
        }
        assert_eq!(short, "");
        outcome.assert_conserved();
    }
}

/// The round-trip times that ping prints, in milliseconds.
fn round_trips(text: &str) -> Vec<f64> {
    let times = text.lines().filter_map(|line| line.split("time=").nth(1));
    times.filter_map(|time| time.split(' ').next()?.parse().ok()).collect()
}
