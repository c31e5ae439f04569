//! The model of paths under real programs.

use super::support::{Lab, is_missing, users};

#[test]
fn tcp_streams_share_a_link_by_their_round_trips_and_each_has_it_all_when_alone() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        // Round trips of 20 and 60 ms: 8.78 and 2.93 Mbit/s of IP packets, and 11.7 alone. While TCP recovers
        // from its slow start it uses less than its share, and the other takes the rest.
        let outcome = lab.pass(
            "model: paths
nodes:
  near-server: {run: iperf3 -s -1, ready: tcp:5201}
  far-server: {run: iperf3 -s -1, ready: tcp:5201}
  near: {run: iperf3 -c near-server -4 -t 9, after: near-server}
  far: {run: iperf3 -c far-server -4 -t 5, after: [near-server, far-server], start: 3s}
routers: [a, b]
links:
  - {between: [near, a], name: near-line, latency: 5ms}
  - {between: [far, a], name: far-line, latency: 25ms}
  - {between: [a, b], name: shared, rate: 12mbit, latency: 5ms}
  - {between: [b, near-server], name: near-end}
  - {between: [b, far-server], name: far-end}
expect:
  - {link: near-end, direction: b-near-server, between: [1s, 3s], rate: {mean: {min: 11mbit, max: 12mbit}}}
  - {link: near-end, direction: b-near-server, between: [5s, 8s], rate: {mean: {min: 8.2mbit, max: 9.7mbit}}}
  - {link: far-end, direction: b-far-server, between: [5s, 8s], rate: {mean: {min: 2.2mbit, max: 3.3mbit}}}
",
        );
        outcome.assert_conserved();
    }
}

#[test]
fn routers_on_a_path_answer_and_decrement_as_in_the_model_of_hops() {
    if is_missing(&["ping", "traceroute"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "model: paths
ipv6: false
nodes:
  a: {run: ping -c 5 -i 0.2 b}
  c: {run: traceroute -n -w 2 b}
  b: {}
routers: [r, s]
links:
  - {between: [a, r], latency: 5ms}
  - {between: [c, r], latency: 5ms}
  - {between: [r, s], latency: 10ms, rate: 10mbit}
  - {between: [s, b], latency: 15ms}
",
        );
        let pings = outcome.output("a");
        assert!(pings.contains("5 received"), "{pings}");
        // "rtt min/avg/max/mdev = 60.2/60.3/…"
        let least = pings.split(" = ").nth(1).and_then(|text| text.split('/').next()).unwrap();
        let least: f64 = least.parse().unwrap();
        assert!((60.0..70.0).contains(&least), "{pings}");
        let hops = outcome.output("c");
        assert_eq!(hops.lines().filter(|line| line.contains(" ms")).count(), 3, "{hops}");
    }
}
