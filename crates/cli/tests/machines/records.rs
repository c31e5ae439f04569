//! Records of a run over several machines: one story, on one clock.

use serde_json::Value;

use super::support::{Machines, is_missing, until};

fn json(machines: &Machines, words: &[&str]) -> Value {
    let output = machines.windtunnel(0, words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sum(parts: &Value, wanted: impl Fn(&str) -> bool) -> u64 {
    let parts = parts.as_array().unwrap().iter();
    let wanted = parts.filter(|part| wanted(part["part"].as_str().unwrap()));
    wanted.map(|part| part["ns"].as_u64().unwrap()).sum()
}

#[test]
fn a_request_over_two_machines_is_explained_as_one() {
    if is_missing(&["python3"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    machines.write("ask.py", PROGRAMS);
    let outcome = machines.pass(FILE);
    let report = outcome.report();
    assert_eq!(report["verdict"]["incomplete"], Value::Null, "{}", report["verdict"]);
    let folder = outcome.folder.to_str().unwrap();
    let statistics = json(&machines, &["records", "stats", folder, "--json"]);
    let flows = statistics["flows"].as_array().unwrap().iter();
    let asked: Vec<_> = flows.filter(|flow| flow["forward"]["written_bytes"] == 1000).collect();
    let [flow] = asked.as_slice() else { panic!("one flow for both machines: {statistics:#}") };
    assert_eq!(flow["forward"]["read_bytes"], 1000, "{flow:#}");
    assert_eq!(flow["reverse"]["read_bytes"], 7000, "{flow:#}");
    assert_eq!(flow["forward"]["payload_bytes"], 1000, "{flow:#}");

    let explained = json(&machines, &["explain", folder, "--json", "--all"]);
    assert_eq!(explained["problems"], Value::Array(Vec::new()), "{explained:#}");
    let requests = explained["requests"].as_array().unwrap().iter();
    let requests: Vec<_> = requests.filter(|request| request["asked"] == 100).collect();
    assert_eq!(requests.len(), 10);
    for request in requests {
        assert_eq!(sum(&request["parts"], |_| true), request["duration_ns"], "{request:#}");
        // Two machines know each other's clock to some 0.1 ms.
        let on_the_way = sum(&request["parts"], |part| part == "propagation");
        assert!((19_000_000..=20_000_000).contains(&on_the_way), "{request:#}");
        assert!(sum(&request["parts"], |part| part == "server_thinking") >= 4_000_000);
    }
}

#[test]
fn recording_starts_and_stops_on_all_machines_of_a_live_run() {
    if is_missing(&["ping"]) {
        return;
    }
    let Some(mut machines) = Machines::new(2) else { return };
    let mut run = machines.start(STANDBY, &[]);
    run.wait_for("icmp_seq=3");
    let ask = |words: &[&str]| {
        let output = machines.ask(0, &[words, &["--run", run.name(), "--json"]].concat());
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(ask(&["record", "status"])["on"], false);
    let started = ask(&["record", "start", "--layers", "engine"]);
    assert_eq!(started["on"], true, "{started:#}");
    until("records of both machines", || {
        // A machine's file is in the folder when the run is over; each has two of four lanes.
        let seen = ask(&["record", "status"]);
        let layers = seen["layers"].as_array().unwrap().clone();
        let engine = layers.iter().find(|layer| layer["layer"] == "engine").unwrap().clone();
        (engine["records"].as_u64().unwrap() > 50).then_some(())
    });
    assert_eq!(ask(&["record", "stop"])["on"], false);
    ask(&["stop"]);
    let outcome = run.finish();
    outcome.assert_passed();
    let folder = outcome.folder.to_str().unwrap();
    let statistics = json(&machines, &["records", "stats", folder, "--json"]);
    let lanes = statistics["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 2, "{statistics:#}");
    assert!(lanes.iter().all(|lane| lane["offered_packets"].as_u64() > Some(5)), "{lanes:#?}");
}

/// A client that asks ten times over one connection, and a server that answers after 5 ms.
const PROGRAMS: &str = r#"
import socket, sys, time

def serve(port):
    with socket.create_server(("", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while connection.recv(4096):
                    time.sleep(0.005)
                    connection.sendall(b"a" * 700)

def ask(host, port):
    with socket.create_connection((host, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(10):
            connection.sendall(b"q" * 100)
            answer = b""
            while len(answer) < 700:
                answer += connection.recv(4096)

serve(int(sys.argv[2])) if sys.argv[1] == "serve" else ask(sys.argv[2], int(sys.argv[3]))
"#;

const FILE: &str = "
record: [engine, calls, tcp]
nodes:
  server: {run: python3 ask.py serve 5000, daemon: true, ready: tcp:5000, pin: one}
  client: {run: python3 ask.py ask server 5000, after: server, pin: two}
links: [{between: [client, server], name: wire, latency: 10ms, rate: 100mbit}]
";

const STANDBY: &str = "
record: standby
nodes:
  a: {run: ping -4 -i 0.02 b, pin: one}
  b: {run: sleep 600, daemon: true, pin: two}
links: [{between: [a, b], latency: 5ms}]
";
