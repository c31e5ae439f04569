//! Services whose replicas and clients are on different machines.

use serde_json::Value;

use super::support::{Machines, Run, is_missing, until};

/// The client and the farther replica are on one machine, the nearer replica on the other.
const FILE: &str = "
ipv6: false
services: {www: {ports: 80/tcp, replicas: [s1, s2], address: 10.1.0.80, on-loss: reset}}
nodes:
  c:
    pin: one
    run: [sh, -c, 'while :; do curl -s -m 2 http://www/name || echo none; sleep 0.1; done']
    daemon: true
  s1: &server
    pin: two
    results: true
    run:
      - sh
      - -c
      - mkdir -p $WINDTUNNEL_RUN/nodes/$WINDTUNNEL_NODE/site && cd $WINDTUNNEL_RUN/nodes/$WINDTUNNEL_NODE/site &&
        echo $WINDTUNNEL_NODE >name && exec python3 -m http.server 80
    daemon: true
  s2: {<<: *server, pin: one}
routers: [r, q]
links:
  - {between: [c, r], latency: 1ms}
  - {between: [s1, r], latency: 2ms, name: edge}
  - {between: [s2, q], latency: 1ms}
  - {between: [r, q], latency: 20ms}
duration: 100s
";

#[track_caller]
fn ask(machines: &Machines, run: &Run, words: &[&str]) -> Vec<u8> {
    let output = machines.ask(0, &[words, &["--run", run.name()]].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
    output.stdout
}

#[test]
fn replicas_on_other_machines_register_die_and_come_back_as_on_one() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(FILE, &[]);
    run.wait_for("service www: s1 listens on 80/tcp");
    run.wait_for("service www: s2 listens on 80/tcp");
    run.wait_for_more("| s1\n");
    ask(&machines, &run, &["do", "{node: s1, do: kill}"]);
    run.wait_for("service www: s1 is lost");
    run.wait_for_more("| s2\n");
    ask(&machines, &run, &["do", "{node: s1, do: restart}"]);
    run.wait_for_more("| s1\n");
    ask(&machines, &run, &["set", "edge", "latency=50ms"]);
    run.wait_for_more("| s2\n");
    ask(&machines, &run, &["set", "edge", "latency=2ms"]);
    run.wait_for_more("| s1\n");
    ask(&machines, &run, &["service", "drain", "www", "s1"]);
    run.wait_for_more("| s2\n");
    let list: Value =
        serde_json::from_slice(&ask(&machines, &run, &["service", "list", "--json"])).unwrap();
    let replicas = list["services"][0]["replicas"].as_array().unwrap();
    let state = |at: usize| replicas[at]["state"].as_str().unwrap();
    assert_eq!((state(0), state(1)), ("draining", "registered"), "{list}");
    ask(&machines, &run, &["stop"]);
    let outcome = run.finish();
    outcome.assert_passed();
    // Each change is there once, though every machine has done it.
    assert_eq!(outcome.events("service-lost").len(), 1);
    assert_eq!(outcome.events("service-set").len(), 1, "{:?}", outcome.events("service-set"));
    assert_eq!(outcome.events("service-registered").len(), 3);
    let www = &outcome.report()["services"][0];
    let count = |at: usize, key: &str| www["replicas"][at][key].as_u64().unwrap();
    assert_eq!((count(0, "registrations"), count(1, "registrations")), (2, 1), "{www}");
    assert!(count(0, "connections") >= 9 && count(1, "connections") >= 9, "{www}");
    until("that nothing is left", || machines.folders(1).is_empty().then_some(()));
}

#[test]
fn replicas_on_a_machine_that_is_lost_are_lost_with_it() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    let Some(mut machines) = Machines::new(3) else { return };
    // The nearer replica, alone on the third machine.
    let file = FILE.replace("    pin: two\n", "    pin: three\n").replace("pin: one}", "pin: two}");
    let mut run = machines.start(&format!("on-host-loss: continue\nhost-timeout: 1s{file}"), &[]);
    run.wait_for("service www: s1 listens on 80/tcp");
    run.wait_for("service www: s2 listens on 80/tcp");
    run.wait_for_more("| s1\n");
    machines.agent_of(2).signal("KILL");
    run.wait_for("three is lost");
    run.wait_for_more("| s2\n");
    let list: Value =
        serde_json::from_slice(&ask(&machines, &run, &["service", "list", "--json"])).unwrap();
    let replicas = list["services"][0]["replicas"].as_array().unwrap();
    let state = |at: usize| replicas[at]["state"].as_str().unwrap();
    assert_eq!((state(0), state(1)), ("lost", "registered"), "{list}");
    ask(&machines, &run, &["stop"]);
    let outcome = run.finish();
    assert_eq!(outcome.events("host-lost")[0]["nodes"], serde_json::json!(["s1"]));
    let www = &outcome.report()["services"][0];
    assert_eq!(www["replicas"][0]["state"], "lost", "{www}");
    assert!(www["replicas"][1]["connections"].as_u64().unwrap() > 0, "{www}");
}
