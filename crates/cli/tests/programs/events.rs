//! Changes while a run is under way.

use serde_json::Value;

use super::support::{Lab, Outcome, any_user, is_missing};

#[test]
fn changes_of_links_happen_when_the_file_says_and_are_printed() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -D -c 60 -i 0.05 -W 1 b}, b: {}}
routers: [r]
links: [{between: [a, r], latency: 1ms, name: near}, {between: [r, b], name: far}]
events:
  - {at: 500ms, link: near, set: {latency: 30ms}}
  - {at: 900ms, link: far, down: true}
  - {at: 1400ms, link: far, up: true}
  - {at: 1900ms, partition: [[a], [r, b]]}
  - {at: 2300ms, heal: true}
expect: [{node: a, exit: 0}]
",
        );
        for (fields, intended_ms) in [
            ([("event", "link-set"), ("direction", "a-r")], 500),
            ([("event", "link-state"), ("up", "false")], 900),
            ([("event", "link-state"), ("up", "true")], 1400),
        ] {
            assert_on_time(&outcome, &fields, intended_ms);
        }
        assert_on_time(&outcome, &[("event", "partitioned")], 1900);
        assert_on_time(&outcome, &[("event", "healed")], 2300);
        let dropped = |direction: &str, reason: &str| {
            outcome.link(direction)["dropped_packets"][reason].as_u64().unwrap_or(0)
        };
        // About 10 and 8 pings fall into the two windows; all others come back.
        let (down, partition) = (dropped("r-b", "down"), dropped("a-r", "partition"));
        assert!((1..=20).contains(&down) && (1..=20).contains(&partition), "{down} {partition}");
        let lost_back = dropped("b-r", "down") + dropped("r-a", "partition");
        let received = u64::try_from(outcome.output("a").matches("time=").count()).unwrap();
        assert_eq!(received, 60 - down - partition - lost_back, "{}", outcome.output("a"));
        assert_slower_after_the_change(&outcome);
    }
}

#[test]
fn programs_are_killed_paused_resumed_and_restarted_as_the_file_says() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "duration: 2s
nodes:
  killed: {run: sleep 1000}
  stopped: {run: sleep 1000}
  paused: {run: [sh, -c, 'while :; do echo x; sleep 0.02; done']}
  restarted: {run: [sh, -c, 'echo began; sleep 1000']}
routers: [r]
links: [{between: [killed, r]}, {between: [stopped, r]}, {between: [paused, r]}, {between: [restarted, r]}]
events:
  - {at: 200ms, node: killed, do: kill}
  - {at: 300ms, node: stopped, do: stop}
  - {at: 400ms, node: paused, do: pause}
  - {at: 1200ms, node: paused, do: resume}
  - {at: 600ms, node: restarted, do: restart}
",
        );
        for (node, verb, at) in [
            ("killed", "kill", 200),
            ("stopped", "stop", 300),
            ("paused", "pause", 400),
            ("paused", "resume", 1200),
            ("restarted", "restart", 600),
        ] {
            assert_on_time(&outcome, &[("event", "node"), ("node", node), ("verb", verb)], at);
        }
        let signal =
            |node| outcome.event(&[("event", "program-exited"), ("node", node)])["signal"].as_i64();
        assert_eq!((signal("killed"), signal("stopped")), (Some(9), Some(15)));
        assert_eq!(outcome.program("restarted")["starts"], 2);
        assert_eq!(outcome.output("restarted"), "began\nbegan\n");
        // At most 50 lines a second for the 1.2 s that it was not paused.
        let lines = outcome.output("paused").lines().count();
        assert!((1..=65).contains(&lines), "{lines}");
    }
}

#[test]
fn a_program_killed_in_the_middle_of_a_transfer_takes_nothing_with_it() {
    if is_missing(&["iperf3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes:
  server: {run: iperf3 -s -1, ready: tcp:5201}
  client: {run: iperf3 -c server -t 3, after: server}
links: [{between: [client, server], latency: 2ms, rate: 50mbit}]
events: [{at: 1s, node: server, do: kill}]
expect: [{node: client, exit: any}]
",
        );
        outcome.assert_code(0);
        outcome.assert_conserved();
        lab.assert_nothing_left();
    }
}

/// How late an event of a FAITHFUL run can be.
const LATE_NS: u64 = 10_000_000;

/// The event happened, not before its time and at most [`LATE_NS`] after it, plus the
/// time that a hypervisor took from the processors meanwhile.
#[track_caller]
fn assert_on_time(outcome: &Outcome, fields: &[(&str, &str)], intended_ms: u64) {
    let events = outcome.events(fields);
    let event = events.first().unwrap_or_else(|| panic!("no {fields:?}"));
    let (at, intended) = (event["at_ns"].as_u64().unwrap(), event["intended_ns"].as_u64().unwrap());
    assert_eq!(intended, intended_ms * 1_000_000, "{event}");
    let late = at.checked_sub(intended).unwrap_or_else(|| panic!("too early: {event}"));
    eprintln!("{fields:?}: {late} ns after its time");
    let stolen = outcome.report()["machine"]["stolen_ns"].as_u64().unwrap();
    assert!(late < LATE_NS + stolen, "{event}; the hypervisor took {stolen} ns");
}

/// Echo replies to requests after the change took twice 30 ms.
#[track_caller]
fn assert_slower_after_the_change(outcome: &Outcome) {
    let changed = outcome.events(&[("event", "link-set")]);
    let changed_ns = changed.iter().filter_map(|event| event["at_ns"].as_u64()).max().unwrap();
    let began = outcome.event(&[("event", "program-started"), ("node", "a")]);
    let began_ns = began["at_ns"].as_u64().unwrap();
    // ping sends one packet each 50 ms and never runs ahead of that.
    let first_after = (changed_ns - began_ns) / 50_000_000 + 12;
    for line in outcome.output("a").lines().filter(|line| line.contains("time=")) {
        let number = |key: &str| -> f64 {
            let rest = line.split(key).nth(1).unwrap();
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        let slow = number("icmp_seq=") >= Value::from(first_after).as_f64().unwrap();
        assert!(number("time=") >= if slow { 60.0 } else { 2.0 }, "{line}");
    }
}
