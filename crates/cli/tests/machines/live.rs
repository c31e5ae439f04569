//! The verbs that work in the folder of a run while it lives.

use serde_json::Value;

use super::support::{Machines, Run, is_missing, until};

#[test]
fn a_run_over_machines_is_asked_changed_and_stopped_in_its_folder() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(3) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("icmp_seq=3");
    let all = states(&machines, &run);
    assert_eq!(all, ["a", "b", "c"].map(|node| owned(node, "running")), "{all:?}");

    let none = machines.ask(0, &["exec", "--run", run.name(), "b", "--", "no-such-program"]);
    let error = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(error.contains("no-such-program"), "{error}");

    // A change is asked of one machine and done on all: the way there and back is over three.
    ask(&machines, &run, "set", &["wire", "latency=100ms"]);
    until("round trips of 210 ms", || {
        let output = run.output();
        let mut times = output
            .lines()
            .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse::<f64>().ok());
        times.next_back().filter(|time| *time >= 210.0)
    });
    ask(&machines, &run, "do", &["{node: c, do: kill}"]);
    run.wait_for("c: ended by signal 9");
    until("c to have exited for ps", || {
        (states(&machines, &run)[2] == owned("c", "exited")).then_some(())
    });
    ask(&machines, &run, "do", &["{link: wire, down: true}"]);
    run.wait_for("wire");

    // Of a node on another machine than the one that is asked.
    ask(&machines, &run, "set", &["b.cpu=20%"]);
    run.wait_for("b: cpu 20.0%");
    ask(&machines, &run, "stop", &[]);
    let outcome = run.finish();
    outcome.assert_passed();
    let set = outcome.events("link-set");
    assert_eq!(set.len(), 2, "{set:?}");
    assert_eq!(outcome.events("link-state").len(), 2, "{}", outcome.file("events.jsonl"));
    let limits = outcome.report()["limits"].clone();
    assert_eq!((&limits[0]["node"], &limits[0]["asked_cpus"]), (&"b".into(), &0.2.into()));
    assert_eq!(outcome.events("run-ended")[0]["reason"], "stopped by command");
    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
}

/// Each node's name and the state of its program.
fn states(machines: &Machines, run: &Run) -> Vec<(String, String)> {
    let asked = ask(machines, run, "ps", &["--json"]);
    let status: Value = serde_json::from_slice(&asked).unwrap();
    let nodes = status["nodes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    nodes.iter().map(|node| (text(&node["node"]), text(&node["programs"][0]["state"]))).collect()
}

#[track_caller]
fn ask(machines: &Machines, run: &Run, verb: &str, words: &[&str]) -> Vec<u8> {
    let output = machines.ask(0, &[&[verb, "--run", run.name()], words].concat());
    assert!(output.status.success(), "{verb}: {output:?}");
    output.stdout
}

fn owned(node: &str, state: &str) -> (String, String) {
    (node.to_owned(), state.to_owned())
}

const FILE: &str = "
nodes:
  a: {run: ping -4 -i 0.1 b, pin: one}
  b: {run: sleep 600, daemon: true, pin: two}
  c: {run: sleep 600, daemon: true, pin: three}
routers: [r]
links:
  - {between: [a, r], latency: 5ms, name: wire}
  - {between: [b, r], latency: 5ms}
  - {between: [c, r], latency: 5ms}
";
