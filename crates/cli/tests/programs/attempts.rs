//! `run --attempts`: repeated runs, and the results that are kept.

use std::fs;

use serde_json::Value;

use super::support::{Lab, any_user};

/// A program that sends some packets and ends well.
const MEASURED: &str = "nodes: {a: {run: ping -c 3 -i 0.02 b}, b: {}}
links: [{between: [a, b], name: wire, latency: 2ms}]
expect: [{path: [a, b], rtt: {min: 4ms}}]
";

/// A program that lives until it is ended.
const WAITING: &str = "nodes: {a: {run: [sh, -c, 'echo here; exec sleep 600']}, b: {}}
links: [{between: [a, b]}]
";

#[test]
fn a_run_with_late_packets_is_repeated_and_each_attempt_is_kept_and_named() {
    for user in any_user() {
        let lab = Lab::new(user);
        // No packet leaves within a nanosecond, on no machine.
        let options = ["--max-lateness", "1ns", "--attempts", "3", "--junit", "results.xml"];
        let outcome = lab.run_with(MEASURED, &options);
        outcome.assert_code(1);
        let report = outcome.report();
        assert_eq!(report["verdict"]["disturbed"], true, "{report}");
        assert_eq!(report["verdict"]["passed"], true, "{report}");
        let attempts = report["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2, "{report}");
        for (number, attempt) in (1..).zip(attempts) {
            let folder = outcome.folder.file_name().unwrap().to_str().unwrap();
            let name = format!("{folder}-attempt-{number}");
            assert_eq!(attempt["folder"], name.as_str());
            let kept = fs::read(outcome.folder.with_file_name(name).join("run.json")).unwrap();
            let kept: Value = serde_json::from_slice(&kept).unwrap();
            assert_eq!(kept["verdict"]["text"], attempt["verdict"]);
            assert_eq!(kept["attempts"].as_array().map_or(0, Vec::len), number - 1);
            assert!(outcome.stderr.contains(&format!("attempt {number} of 3: NOT FAITHFUL")));
        }
        assert_eq!(outcome.stdout.matches("NOT FAITHFUL").count(), 1, "{}", outcome.stdout);
        let junit = fs::read_to_string(lab.path().join("results.xml")).unwrap();
        assert_eq!(junit.matches("<testsuite ").count(), 1, "{junit}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_run_that_failed_and_was_in_time_is_not_repeated() {
    for user in any_user() {
        let lab = Lab::new(user);
        let scenario = WAITING.replace("exec sleep 600", "exit 3");
        let outcome = lab.run_with(&scenario, &["--attempts", "3"]);
        outcome.assert_code(1);
        assert_eq!(outcome.report()["attempts"], Value::Null);
        assert!(!outcome.stderr.contains("attempt 1"), "{}", outcome.stderr);
        assert_eq!(outcome.stdout.matches("a | here").count(), 1, "{}", outcome.stdout);
    }
}

#[test]
fn a_signal_ends_the_attempt_and_all_others() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start_with(WAITING, &["--attempts", "3", "--max-lateness", "1ns"]);
        live.wait_for_output("a", "here");
        live.signal("TERM");
        let outcome = live.finish();
        outcome.assert_code(143);
        assert_eq!(outcome.report()["attempts"], Value::Null);
        lab.assert_nothing_left();
    }
}

#[test]
fn nothing_is_left_of_an_attempt_when_windtunnel_is_killed() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start_with(WAITING, &["--attempts", "3"]);
        live.wait_for_output("a", "here");
        live.signal("KILL");
        live.finish().assert_code(137);
        lab.assert_nothing_left();
    }
}
