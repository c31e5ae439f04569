//! Routes that change while programs run, and flows that spread.

use super::support::{Lab, Outcome, any_user, is_missing};

/// The routers that a file of traceroute's output names after the first.
fn second_hop(outcome: &Outcome, program: usize) -> String {
    let text = outcome.file(&format!("nodes/a/stdout.{program}"));
    let line = text.lines().find(|line| line.trim_start().starts_with("2 ")).unwrap_or_default();
    line.split_whitespace().nth(1).unwrap_or_default().to_owned()
}

#[test]
fn an_event_changes_what_traceroute_shows_and_the_round_trip_at_its_time() {
    if is_missing(&["traceroute", "ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass_faithful(
            "duration: 4s
nodes:
  a:
    run:
      - {run: traceroute -q 1 b}
      - {run: traceroute -q 1 b, start: 1200ms}
      - {run: traceroute -q 1 b, start: 2700ms}
      - {run: ping -D -i 0.05 -c 50 b}
  b: {}
routers: [near, fast, slow, far]
links:
  - {between: [a, near], latency: 1ms}
  - {between: [near, fast], latency: 5ms}
  - {between: [fast, far], latency: 5ms}
  - {between: [near, slow], latency: 20ms}
  - {between: [slow, far], latency: 20ms}
  - {between: [far, b], latency: 1ms}
events:
  - {at: 1s, route: [a, near, slow, far, b]}
  - {at: 2s, route: {from: a, to: b, via: shortest}}
  - {at: 2300ms, link: near--fast, down: true}
  - {at: 2500ms, reroute: true}
",
        );
        let seen = [0, 1, 2].map(|program| second_hop(&outcome, program));
        assert_eq!(seen, ["fast", "slow", "slow"], "{}", outcome.describe());
        // 12 ms there and back by each of the two: 24 ms, then 84 ms, then 24 ms; by one there and
        // the other back: 54 ms.
        let text = outcome.file("nodes/a/stdout.3");
        let times: Vec<f64> = text
            .lines()
            .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok())
            .collect();
        let slow = times.iter().filter(|time| **time >= 84.0).count();
        // Nothing is early; on a busy machine some are late.
        let fast = times.iter().filter(|time| (24.0..84.0).contains(*time)).count();
        assert_eq!(slow + fast, times.len(), "{text}");
        assert!((10..=25).contains(&slow) && fast >= 15, "{slow} slow, {fast} fast: {text}");
        let fixed = outcome.events(&[("event", "route-fixed")]);
        assert_eq!(fixed[0]["intended_ns"], 1_000_000_000, "{fixed:?}");
        assert!(fixed[0]["at_ns"].as_u64() >= Some(1_000_000_000), "{fixed:?}");
        assert_eq!(outcome.events(&[("event", "rerouted"), ("why", "event")]).len(), 1);
        assert!(!outcome.events(&[("event", "routes-changed")]).is_empty());
        assert!(outcome.stderr.contains("may arrive out of order"), "{}", outcome.stderr);
    }
}

/// The kernel of a node with two links follows as well: its second link carries the traffic
/// of the first while that is down.
#[test]
fn routes_follow_a_dead_link_of_a_node_with_two() {
    if is_missing(&["ping", "ip"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "routing: {reroute: 200ms}
nodes:
  a:
    run:
      - {run: ping -4 -i 0.05 -c 50 -W 1 b}
      - {run: ip route get 10.0.0.2, start: 300ms}
      - {run: ip route get 10.0.0.2, start: 1500ms}
      - {run: ip route get 10.0.0.2, start: 2500ms}
  b: {}
routers: [left, right]
links:
  - {between: [a, left], latency: 1ms}
  - {between: [a, right], latency: 10ms}
  - {between: [left, b], latency: 1ms}
  - {between: [left, right], latency: 1ms}
events:
  - {at: 1s, link: a--left, down: true}
  - {at: 1800ms, link: a--left, up: true}
expect: [{node: a, exit: any}]
",
        );
        let addresses = outcome.file("plan.json");
        assert!(addresses.contains("\"10.0.0.2\""), "{addresses}");
        let devices = [1, 2, 3].map(|program| {
            let text = outcome.file(&format!("nodes/a/stdout.{program}"));
            let words: Vec<&str> = text.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "dev");
            at.and_then(|at| words.get(at + 1)).map_or(text.clone(), |word| (*word).to_owned())
        });
        let follows = outcome.events(&[("event", "rerouted"), ("why", "lanes")]);
        assert_eq!(follows.len(), 2, "{}", outcome.describe());
        assert_eq!(follows[0]["intended_ns"], 1_200_000_000);
        assert_eq!(devices, ["eth0", "eth1", "eth0"], "{}", outcome.describe());
        // Bound to the first address or not, packets of the 200 ms are lost, and no others.
        let text = outcome.file("nodes/a/stdout.0");
        let received = text.matches("time=").count();
        assert!((38..50).contains(&received), "{text}");
        assert!(outcome.link("a-right")["delivered_packets"].as_u64() > Some(3));
    }
}

#[test]
fn flows_spread_over_equal_ways_and_each_stays_on_one() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "routing: {metric: hops, ecmp: true}
nodes:
  a:
    run: [python3, -c, \"import socket; [s.sendto(bytes(10), ('b', 7000 + port))
      for port in range(200) for s in [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
      for n in range(5)]\"]
  b: {}
routers: [first, north, south, last]
links:
  - {between: [a, first]}
  - {between: [first, north]}
  - {between: [first, south]}
  - {between: [north, last]}
  - {between: [south, last]}
  - {between: [last, b]}
",
        );
        let count =
            |direction: &str| outcome.link(direction)["delivered_packets"].as_u64().unwrap_or(0);
        let (north, south) = (count("first-north"), count("first-south"));
        assert_eq!(north + south, 1000, "{}", outcome.describe());
        assert_eq!((north % 5, south % 5), (0, 0), "a flow was on two ways");
        assert!((300..=700).contains(&north), "{north} and {south}");
    }
}
