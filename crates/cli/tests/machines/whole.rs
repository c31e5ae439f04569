//! A whole run over three machines, from the file to one run folder.

use std::collections::BTreeMap;

use super::support::{Machines, is_missing};

#[test]
fn one_file_over_three_machines_is_one_run_with_one_verdict_and_one_folder() {
    if is_missing(&["nginx", "curl", "redis-server", "redis-cli", "iperf3", "ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(3) else { return };
    machines.write("nginx.conf", include_str!("../scenarios/nginx.conf"));
    // Three agents and eight programs begin on the processors of one machine.
    let outcome = machines.pass_within(FILE, "50ms");
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.starts_with("FAITHFUL, PASSED: 9 of 9 expectations met"), "{last}");

    // Every node's output and exit code, wherever it ran.
    assert!(outcome.output("client").starts_with("from 10.0.0."), "{}", outcome.output("client"));
    assert_eq!(outcome.output("reader").trim(), "tunnel");
    assert!(outcome.output("source").contains("receiver"), "{}", outcome.output("source"));
    for node in ["client", "writer", "reader", "source", "pinger"] {
        assert_eq!(outcome.exit(node), "exited with 0", "{node}");
    }
    for node in ["web", "store", "sink"] {
        assert!(!outcome.exit(node).is_empty(), "{node}");
    }

    // What happens to the run happens once, by whichever machine reports it; what happens to a
    // program is reported by its machine.
    for kind in ["run-began", "run-ended"] {
        assert_eq!(outcome.events(kind).len(), 1, "{kind}: {}", outcome.file("events.jsonl"));
    }
    assert_eq!(outcome.events("link-set").len(), 2, "{}", outcome.file("events.jsonl"));
    let mut started = BTreeMap::<String, usize>::new();
    for event in outcome.events("program-started") {
        *started.entry(event["node"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(started.len() == 8 && started.values().all(|times| *times == 1), "{started:?}");

    let report = outcome.report();
    let hosts = report["hosts"].as_array().unwrap();
    let nodes: Vec<_> = hosts.iter().map(|host| (&host["host"], &host["nodes"])).collect();
    assert_eq!(
        nodes,
        [(&"one".into(), &3.into()), (&"three".into(), &2.into()), (&"two".into(), &3.into())]
    );
    assert!(hosts.iter().all(|host| host["sent_packets"].as_u64().unwrap() > 0), "{hosts:?}");
    // The source is on `two`, and nodes of the others can send over the link that it fills.
    let others = hosts.iter().filter(|host| host["host"] != "two");
    for host in others {
        let starts = &host["flow_starts"];
        assert!(starts["announced"].as_u64().unwrap() > 0, "{host}");
        assert!(starts["flows"].as_u64() <= starts["announced"].as_u64(), "{host}");
        assert!(starts["p50_ns"].as_u64() <= starts["max_ns"].as_u64(), "{host}");
    }

    for at in 0..3 {
        machines.assert_nothing_left(at);
    }
    // The parts' folders are put together, and no trace of them is left.
    assert!(
        !outcome.folder.join(".parts").exists() && !outcome.folder.join("control.sock").exists()
    );
}

/// Two servers of each other's kind, with clients on other machines, one of them behind a narrow
/// link. No latency is below 2 ms: the bounds of the round trips notice each link that is passed
/// once more or once less than on the way. Two machines know each other's clock to some 0.1 ms: a
/// round trip may be that much shorter than the latencies.
const FILE: &str = "
nodes:
  web: {run: [nginx, -p, ., -e, stderr, -c, nginx.conf], daemon: true, ready: tcp:80, pin: two}
  client: {run: curl -sS -4 http://web/, after: web, pin: one}
  store: {run: redis-server --bind 0.0.0.0 --protected-mode no --save '' --dir ., daemon: true, ready: tcp:6379, pin: three}
  writer: {run: redis-cli -h store set wind tunnel, after: store, ready: exit, pin: two}
  reader: {run: redis-cli -h store get wind, after: writer, pin: one}
  sink: {run: iperf3 -s -1, daemon: true, ready: tcp:5201, pin: one}
  source: {run: iperf3 -c sink -n 200K, after: sink, pin: two}
  pinger: {run: ping -c 5 -i 0.1 client, pin: three}
routers: [r]
links:
  - {between: [web, r], latency: 5ms}
  - {between: [client, r], latency: 10ms}
  - {between: [store, r], latency: 2ms}
  - {between: [writer, r], latency: 2ms}
  - {between: [reader, r], latency: 2ms}
  - {between: [sink, r], latency: 2ms, rate: 10mbit, name: narrow}
  - {between: [source, r], latency: 2ms}
  - {between: [pinger, r], latency: 5ms}
events:
  - {at: 200ms, link: narrow, set: {latency: 3ms}}
expect:
  - {node: client, exit: 0}
  - {node: writer, exit: 0}
  - {node: reader, exit: 0}
  - {node: source, exit: 0}
  - {node: pinger, exit: 0}
  - {node: reader, log: {match: tunnel, count: 1}}
  - {path: [pinger, client], rtt: {min: 29500us, max: 34ms}}
  - {path: [source, sink], rtt: {min: 7500us, max: 12ms}}
  - {link: narrow, direction: r-sink, rate: {max: 10.1mbit}}
";
