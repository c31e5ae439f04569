//! The model of paths under real programs.

use super::support::{Lab, any_user, is_missing};

#[test]
fn greedy_flows_share_a_link_by_their_round_trips_and_have_it_all_when_alone() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        // Round trips of 20 and 60 ms: 8.78 and 2.93 Mbit/s of IP packets, and 11.7 alone. Both
        // send more than that; TCP would use less than its share while it recovers from a
        // loss.
        let outcome = lab.pass(
            "model: paths
nodes:
  near-server: {run: iperf3 -s -1, ready: tcp:5201}
  far-server: {run: iperf3 -s -1, ready: tcp:5201}
  near: {run: iperf3 -c near-server -4 -t 7 -u -b 15m -l 1472, after: near-server}
  far: {run: iperf3 -c far-server -4 -t 3 -u -b 15m -l 1472, after: [near-server, far-server], start: 3s}
routers: [a, b]
links:
  - {between: [near, a], name: near-line, latency: 5ms}
  - {between: [far, a], name: far-line, latency: 25ms}
  - {between: [a, b], name: shared, rate: 12mbit, latency: 5ms}
  - {between: [b, near-server], name: near-end}
  - {between: [b, far-server], name: far-end}
expect:
  - {link: near-end, direction: b-near-server, between: [1s, 3s], rate: {mean: {min: 11mbit, max: 12mbit}}}
  - {link: near-end, direction: b-near-server, between: [4s, 6s], rate: {mean: {min: 8.4mbit, max: 9.1mbit}}}
  - {link: far-end, direction: b-far-server, between: [4s, 6s], rate: {mean: {min: 2.7mbit, max: 3.2mbit}}}
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
    for user in any_user() {
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
