//! What flows that begin on different machines get of a link.

use super::support::{Machines, is_missing};

#[test]
fn flows_of_two_machines_share_a_link_by_their_round_trips_and_have_it_all_when_alone() {
    if is_missing(&["iperf3"]) {
        return;
    }
    let Some(mut machines) = Machines::new(3) else { return };
    let outcome = machines.pass_within(PATHS, MAX_LATENESS);
    // Each of the two senders' machines has announced its flow to the other one.
    let report = outcome.report();
    for host in ["one", "two"] {
        let hosts = report["hosts"].as_array().unwrap();
        let host = hosts.iter().find(|one| one["host"] == host).unwrap();
        assert!(host["flow_starts"]["flows"].as_u64() > Some(0), "{host}");
    }
}

#[test]
fn flows_of_two_machines_with_equal_round_trips_get_half_of_a_link_each() {
    if is_missing(&["iperf3"]) {
        return;
    }
    let Some(mut machines) = Machines::new(3) else { return };
    machines.pass_within(EQUAL, MAX_LATENESS);
}

/// A share is a mean over two seconds: some packets that are so late leave it within the bounds that
/// the file sets for it.
const MAX_LATENESS: &str = "100ms";

/// Round trips of 20 and 60 ms: three to one of 11.7 Mbit/s of IP packets (1500 bytes of 1538 on
/// the wire of 12 Mbit/s), 8.78 and 2.93; and all of it when alone. Each sends more.
const PATHS: &str = "
model: paths
nodes:
  near-server: {run: iperf3 -s -1, daemon: true, ready: tcp:5201, pin: three}
  far-server: {run: iperf3 -s -1, daemon: true, ready: tcp:5201, pin: three}
  near: {run: iperf3 -c near-server -4 -t 7 -u -b 15m -l 1472, after: near-server, pin: one}
  far: {run: iperf3 -c far-server -4 -t 3 -u -b 15m -l 1472, after: [near-server, far-server], start: 3s, pin: two}
routers: [a, b]
links:
  - {between: [near, a], latency: 5ms}
  - {between: [far, a], latency: 25ms}
  - {between: [a, b], rate: 12mbit, latency: 5ms}
  - {between: [b, near-server], name: near-end}
  - {between: [b, far-server], name: far-end}
expect:
  - {link: near-end, direction: b-near-server, between: [1s, 3s], rate: {mean: {min: 11.4mbit, max: 11.8mbit}}}
  - {link: near-end, direction: b-near-server, between: [4s, 6s], rate: {mean: {min: 8.5mbit, max: 9mbit}}}
  - {link: far-end, direction: b-far-server, between: [4s, 6s], rate: {mean: {min: 2.8mbit, max: 3.1mbit}}}
  - {path: [near, near-server], rtt: {min: 19500us, max: 24ms}}
  - {path: [far, far-server], rtt: {min: 59500us, max: 64ms}}
";

/// 8 Mbit/s of payload each, 8.4 on the wire, into 12: half of 11.7 Mbit/s of IP packets each. An
/// echo request each 100 ms takes no share of that, and waits in no queue of theirs.
const EQUAL: &str = "
nodes:
  first-server: {run: iperf3 -s -1, daemon: true, ready: tcp:5201, pin: three}
  second-server: {run: iperf3 -s -1, daemon: true, ready: tcp:5201, pin: three}
  first: {run: iperf3 -c first-server -4 -t 4 -u -b 8m -l 1472, after: [first-server, second-server], pin: one}
  second: {run: iperf3 -c second-server -4 -t 4 -u -b 8m -l 1472, after: [first-server, second-server], pin: two}
routers: [a, b]
links:
  - {between: [first, a], latency: 5ms}
  - {between: [second, a], latency: 5ms}
  - {between: [a, b], name: shared, rate: 12mbit, latency: 5ms}
  - {between: [b, first-server], name: first-end}
  - {between: [b, second-server], name: second-end}
expect:
  - {link: shared, direction: a-b, between: [1s, 3s], rate: {mean: {min: 11.8mbit, max: 12.1mbit}}}
  - {link: first-end, direction: b-first-server, between: [1s, 3s], rate: {mean: {min: 5.7mbit, max: 6mbit}}}
  - {link: second-end, direction: b-second-server, between: [1s, 3s], rate: {mean: {min: 5.7mbit, max: 6mbit}}}
  - {path: [first, first-server], rtt: {min: 19500us, max: 24ms}}
  - {path: [first, second-server], between: [1s, 3s], rtt: {p50: {min: 19500us, max: 24ms}}}
";
