//! Requests of real programs: their parts add up, and are what the network does.

use std::fs;

use super::support::evidence::{explain, requests, sum};
use super::support::{Lab, any_user, is_missing, users};

/// A client that asks ten times over one connection and prints how long each took, in nanoseconds,
/// and a server that answers after 5 ms.
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
            begin = time.monotonic_ns()
            connection.sendall(b"q" * 100)
            answer = b""
            while len(answer) < 700:
                answer += connection.recv(4096)
            print(time.monotonic_ns() - begin, flush=True)

serve(int(sys.argv[2])) if sys.argv[1] == "serve" else ask(sys.argv[2], int(sys.argv[3]))
"#;

const SCENARIO: &str = "record: true\n\
    nodes:\n\
    \x20 server: {run: python3 ask.py serve 5000, daemon: true, ready: tcp:5000}\n\
    \x20 client: {run: python3 ask.py ask server 5000, after: server}\n\
    links: [{between: [client, server], name: wire, latency: 10ms, rate: 100mbit}]\n";

#[test]
fn requests_of_a_program_add_up_to_what_it_measured_itself() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        lab.write("ask.py", PROGRAMS);
        let outcome = lab.pass(SCENARIO);
        let report = explain(&lab, &outcome, &["--all"]);
        let mut requests = requests(&report, "request");
        requests.retain(|request| request["asked"] == 100 && request["answered"] == 700);
        requests.sort_by_key(|request| request["begin_ns"].as_u64());
        let measured = fs::read_to_string(outcome.folder.join("nodes/client/stdout")).unwrap();
        let measured: Vec<u64> = measured.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(requests.len(), measured.len(), "{report:#}");
        for (request, measured) in requests.iter().zip(measured) {
            // The program's clock is read before the first call begins and after the last ends.
            let duration = request["duration_ns"].as_u64().unwrap();
            assert!(duration <= measured, "{measured}: {request:#}");
            let propagation = sum(&request["parts"], |part| part["part"] == "propagation");
            assert_eq!(propagation, 20_000_000, "{request:#}");
            let thinking = sum(&request["parts"], |part| part["part"] == "server_thinking");
            assert!(thinking >= 5_000_000, "{request:#}");
        }
    }
}

#[test]
fn a_connection_whose_syn_was_dropped_waited_for_the_timeout() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("ask.py", PROGRAMS);
    let file = SCENARIO.replace("after: server}", "after: server, start: 1s}")
        + "events:\n\
           - {at: 500ms, link: wire, set: {loss: 100%}}\n\
           - {at: 1700ms, link: wire, set: {loss: 0%}}\n";
    let outcome = lab.pass(&file);
    let report = explain(&lab, &outcome, &["--all"]);
    let connects = requests(&report, "connect");
    let slowest = connects.first().expect("a connection");
    let recovery = sum(&slowest["parts"], |part| part["part"] == "recovery");
    assert!(recovery >= 1_000_000_000, "{slowest:#}");
    assert_eq!(slowest["losses"][0]["notice"], "retransmission timeout");
    assert_eq!(slowest["losses"][0]["dropped"]["lane"]["link"], "wire");
}

#[test]
fn a_workload_is_played_with_the_same_sizes() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("ask.py", PROGRAMS);
    let outcome = lab.pass(SCENARIO);
    let folder = outcome.folder.to_str().unwrap();
    let output = lab.windtunnel(&["records", "workload", folder]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    lab.write("workload.jsonl", String::from_utf8(output.stdout).unwrap());
    let again = lab.pass(
        "record: true\n\
         nodes: {server: {replay: workload.jsonl}, client: {replay: workload.jsonl}}\n\
         links: [{between: [client, server], name: wire, latency: 30ms, rate: 100mbit}]\n",
    );
    let played = requests(&explain(&lab, &again, &["--all"]), "request");
    assert_eq!(played.len(), 10);
    for request in played {
        assert_eq!((&request["asked"], &request["answered"]), (&100.into(), &700.into()));
        let propagation = sum(&request["parts"], |part| part["part"] == "propagation");
        assert_eq!(propagation, 60_000_000, "the new network's delay: {request:#}");
        let thinking = sum(&request["parts"], |part| part["part"] == "server_thinking");
        assert!(thinking >= 5_000_000, "{request:#}");
    }
}
