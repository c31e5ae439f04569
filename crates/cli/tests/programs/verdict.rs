//! The report of a run.

use serde_json::Value;

use super::support::{Lab, any_user, is_missing};

#[test]
fn a_run_that_is_not_on_time_says_so_and_names_the_links() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(PING, &["--max-lateness", "1ns"]);
        outcome.assert_code(1);
        let last = outcome.stdout.lines().last().unwrap();
        assert!(last.contains("NOT FAITHFUL"), "{last}");
        assert!(last.contains("wire") && last.contains("likely cause"), "{last}");
        assert!(!outcome.is_faithful());
    }
}

#[test]
fn a_failed_expectation_shows_the_asked_and_the_seen_value() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run(&format!(
            "{PING}expect:
  - {{node: a, exit: 3}}
  - {{path: [a, b], rtt: {{min: 20ms, max: 30ms}}}}
"
        ));
        outcome.assert_code(1);
        let report = outcome.report();
        let (exit, rtt) = (&report["expectations"][0], &report["expectations"][1]);
        assert_eq!((&exit["asked"], &exit["seen"]), (&"3".into(), &"exited with 0".into()));
        assert_eq!((&exit["met"], &rtt["met"]), (&false.into(), &false.into()));
        assert_eq!(rtt["asked"], "20ms to 30ms");
        assert!(outcome.stdout.lines().last().unwrap().contains("expected 3, saw exited with 0"));
    }
}

#[test]
fn expectations_that_hold_are_counted_in_the_verdict() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!(
            "{PING}expect:
  - {{node: a, exit: 0}}
  - {{path: [a, b], rtt: {{min: 4ms}}}}
"
        ));
        let last = outcome.stdout.lines().last().unwrap();
        assert!(last.contains("2 of 2 expectations met"), "{last}");
    }
}

#[test]
fn json_on_standard_output_is_the_report_of_the_run_folder() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(PING, &["--json"]);
        outcome.assert_code(0);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(report, outcome.report());
    }
}

#[test]
fn the_run_folder_has_the_scenario_and_the_events() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(PING);
        let plan: Value = serde_json::from_str(&outcome.file("plan.json")).unwrap();
        assert_eq!(plan["seed"], 1);
        let report = outcome.report();
        assert_eq!(report["plan_hash"].as_str().unwrap().len(), 64);
        let rows = outcome.file("links.csv");
        let delivered: u64 = rows
            .lines()
            .filter(|row| row.contains(",a-b,"))
            .map(|row| row.split(',').nth(5).unwrap().parse::<u64>().unwrap())
            .sum();
        // Packets before the clock of the run began are in no row.
        assert!(delivered <= outcome.link("a-b")["delivered_packets"].as_u64().unwrap(), "{rows}");
        assert!(delivered >= 4, "{rows}");
        assert_eq!(outcome.event(&[("event", "run-ended")])["reason"], report["ended"]);
    }
}

#[test]
fn a_link_that_was_changed_is_reported_by_phases_and_an_idle_one_achieves_no_rate() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "nodes: {a: {run: ping -c 10 -i 0.1 b}, b: {}}
links: [{between: [a, b], name: wire, latency: 2ms, rate: 1gbit}]
events: [{at: 500ms, link: wire, set: {latency: 30ms}}]
",
        );
        let link = outcome.link("a-b");
        assert_eq!(link["achieved"]["rate_busy_bit_per_s"], Value::Null, "{link}");
        let phases = link["phases"].as_array().unwrap();
        let asked: Vec<_> = phases.iter().map(|phase| &phase["asked"]["latency"]).collect();
        assert_eq!(asked, ["2ms", "30ms"], "{link}");
        let achieved = |phase: &Value| phase["achieved"]["latency_mean_ns"].as_u64().unwrap();
        assert!(achieved(&phases[0]) >= 2_000_000 && achieved(&phases[1]) >= 30_000_000, "{link}");
        let rows = outcome.stdout.lines().filter(|row| row.contains(" a-b ")).count();
        assert_eq!(rows, 2, "{}", outcome.stdout);
    }
}

#[test]
fn links_that_are_idle_have_rows_in_the_first_and_the_last_interval_only() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "ipv6: false
nodes: {a: {run: sleep 1}, b: {}, c: {}}
links: [{between: [b, c], name: idle}]
",
        );
        let rows = outcome.file("links.csv");
        assert_eq!(rows.lines().filter(|row| row.contains(",idle,b-c,")).count(), 2, "{rows}");
    }
}

const PING: &str = "nodes: {a: {run: ping -c 4 -i 0.1 b}, b: {}}
links: [{between: [a, b], name: wire, latency: 2ms}]
";
