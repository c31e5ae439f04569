//! Nothing outlives a run, however it ends.

use super::support::{Lab, Outcome, until, users};

#[test]
fn ctrl_c_ends_the_run_with_partial_results_and_130() {
    for user in users() {
        let outcome = interrupt(&Lab::new(user), "INT");
        outcome.assert_code(130);
    }
}

#[test]
fn sigterm_ends_the_run_with_partial_results_and_143() {
    for user in users() {
        let outcome = interrupt(&Lab::new(user), "TERM");
        outcome.assert_code(143);
    }
}

#[test]
fn a_killed_windtunnel_leaves_no_process_and_no_mount() {
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(LASTING);
        live.wait_for_output("a", "began");
        assert!(lab.processes().len() >= 4, "windtunnel, its nodes and their programs");
        live.signal("KILL");
        live.finish().assert_code(137);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_killed_windtunnel_leaves_nothing_of_a_set_up_half_way() {
    for user in users() {
        let lab = Lab::new(user);
        for nodes_up in [1, 20, 45] {
            let live = lab.start(
                "nodes: {a: {count: 50, run: sleep 1000}}
routers: [r]
links: [{between: [a, r]}]
",
            );
            until("so many nodes", || (lab.processes().len() > nodes_up).then_some(()));
            live.signal("KILL");
            live.finish().assert_code(137);
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn ctrl_c_while_the_network_is_set_up_leaves_nothing() {
    for user in users() {
        let lab = Lab::new(user);
        let live = lab.start(
            "nodes: {a: {count: 200, run: sleep 1000}}
routers: [r]
links: [{between: [a, r]}]
",
        );
        until("the first nodes", || (lab.processes().len() > 2).then_some(()));
        live.signal("INT");
        let outcome = live.finish();
        outcome.assert_code(130);
        lab.assert_nothing_left();
    }
}

#[test]
fn programs_that_ignore_sigterm_end_all_the_same() {
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "nodes:
  a: {run: [sh, -c, 'trap \"\" TERM INT HUP; echo began; while :; do sleep 1000; done']}
  b: {}
links: [{between: [a, b]}]
",
        );
        live.wait_for_output("a", "began");
        live.signal("INT");
        live.finish().assert_code(130);
        lab.assert_nothing_left();
    }
}

fn interrupt(lab: &Lab, signal: &str) -> Outcome {
    let mut live = lab.start(LASTING);
    live.wait_for_output("a", "began");
    live.signal(signal);
    let outcome = live.finish();
    assert!(outcome.output("a").starts_with("began"), "{}", outcome.describe());
    assert!(outcome.report()["ended"].as_str().unwrap().contains("interrupted"));
    assert_eq!(outcome.events(&[("event", "run-ended")]).len(), 1);
    assert!(outcome.stdout.lines().last().unwrap().contains("INTERRUPTED"));
    assert!(!outcome.folder.join("control.sock").exists());
    lab.assert_nothing_left();
    outcome
}

const LASTING: &str = "nodes:
  a: {run: [sh, -c, 'echo began; sleep 1000']}
  b: {run: sleep 1000, daemon: true}
routers: [r]
links: [{between: [a, r], latency: 1ms}, {between: [b, r]}]
";
