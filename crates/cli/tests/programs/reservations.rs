//! Reservations of real runs, beside each other.

use serde_json::Value;

use super::support::{Lab, Live, until, users};

/// What this machine has, by `reserve`.
fn reservations(lab: &Lab) -> Value {
    let answer = lab.windtunnel(&["reserve", "--json"]).output().unwrap();
    assert!(answer.status.success(), "{answer:?}");
    serde_json::from_slice(&answer.stdout).unwrap()
}

fn free_cpus(lab: &Lab) -> f64 {
    reservations(lab)["free_cpus"].as_f64().unwrap()
}

/// A run of this name that stays and reserves so many processors, as `cpu` has them.
fn file(name: &str, cpu: &str) -> String {
    format!(
        "name: {name}\nnodes: {{a: {{cpu: {cpu}, run: sleep 600}}, b: {{}}}}\n\
         links: [{{between: [a, b]}}]\n"
    )
}

/// Has it end, and waits for that.
fn end(live: Live<'_>) {
    assert!(live.ask("stop", &[]).status.success());
    live.finish();
}

fn begun<'a>(lab: &'a Lab, scenario: &str) -> Live<'a> {
    let mut live = lab.start(scenario);
    live.wait_for(&[("event", "program-started")]);
    live
}

#[test]
fn a_run_that_does_not_fit_beside_another_is_refused_with_what_is_missing() {
    for user in users() {
        let lab = Lab::new(user);
        let free = free_cpus(&lab);
        let first = begun(&lab, &file("quickstart", "0.5"));
        assert!((free - free_cpus(&lab) - 0.5).abs() < 1e-9);
        // As much as there was: without the first run it would fit.
        let refused = lab.run(&file("greedy", &free.to_string()));
        refused.assert_code(4);
        let error = &refused.stderr;
        assert!(
            error.contains("cores asked: 0.5 missing; held by run 'quickstart' 0.5"),
            "{error}"
        );
        assert!(error.contains("hint: "), "{error}");
        assert!(!refused.folder.join("events.jsonl").exists(), "nothing has begun");
        lab.write("check.yaml", file("greedy", &free.to_string()));
        let checked = lab.windtunnel(&["check", "check.yaml"]).output().unwrap();
        assert_eq!(checked.status.code(), Some(4), "{checked:?}");
        end(first);
        assert!((free - free_cpus(&lab)).abs() < 1e-9);
        let checked = lab.windtunnel(&["check", "check.yaml"]).output().unwrap();
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        lab.assert_nothing_left();
    }
}

#[test]
fn what_only_limits_is_not_reserved() {
    for user in users() {
        let lab = Lab::new(user);
        let free = free_cpus(&lab);
        let live = begun(&lab, &file("wide", &format!("{{limit: {}}}", free + 1.0)));
        assert!((free - free_cpus(&lab)).abs() < 1e-9);
        end(live);
    }
}

#[test]
fn a_limit_that_is_set_on_a_live_run_is_admitted_as_one_of_the_file_is() {
    for user in users() {
        let lab = Lab::new(user);
        let free = free_cpus(&lab);
        let live = begun(&lab, &file("growing", "0.25"));
        let too_much = format!("a.cpu={}", free + 0.5);
        let refused = live.ask("set", &[&too_much]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(error.contains("cores asked: 0.5 missing"), "{error}");
        assert!((free - free_cpus(&lab) - 0.25).abs() < 1e-9, "it keeps what it had");
        assert!(live.ask("set", &["a.cpu=0.75"]).status.success());
        assert!((free - free_cpus(&lab) - 0.75).abs() < 1e-9);
        end(live);
    }
}

#[test]
fn what_a_killed_run_held_is_free_when_its_last_process_is_gone() {
    for user in users() {
        let lab = Lab::new(user);
        let free = free_cpus(&lab);
        let live = begun(&lab, &file("doomed", "0.5"));
        live.signal("KILL");
        drop(live);
        until("all is free", || ((free - free_cpus(&lab)).abs() < 1e-9).then_some(()));
        lab.assert_nothing_left();
    }
}
