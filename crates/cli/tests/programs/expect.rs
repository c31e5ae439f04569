//! Expectations of real programs on a real network, each kind met and not met.

use serde_json::Value;

use super::support::{Lab, Outcome, any_user, is_missing};

#[test]
fn every_kind_of_expectation_can_be_met() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&scenario(MET));
        let unmet: Vec<Value> = expectations(&outcome, false);
        assert!(unmet.is_empty(), "{unmet:?}");
        // The files that judge are there to look at: 10 requests a second, and the payload that
        // arrived.
        let echoes = outcome.file("echoes.csv");
        assert!(
            echoes.lines().count() >= 6 && echoes.starts_with("from,to,sent_s,rtt_s\n"),
            "{echoes}"
        );
        let paths = outcome.file("paths.csv");
        let bytes: u64 = paths.lines().skip(1).map(|row| column(row, 3)).sum();
        assert_eq!(bytes, 300 * 1000, "{paths}");
        let junit = outcome.file("junit.xml");
        let count = MET.lines().filter(|line| line.contains("- {")).count();
        assert!(count > 10 && junit.matches("expectations\" name=").count() >= count, "{junit}");
        assert!(junit.contains("failures=\"0\" errors=\"0\""), "{junit}");
    }
}

#[test]
fn every_kind_of_failed_expectation_shows_the_seen_value_and_where_to_look() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run_with(&scenario(UNMET), &["--junit", "results.xml"]);
        outcome.assert_code(1);
        let met = expectations(&outcome, true);
        assert!(met.is_empty(), "{met:?}");
        let unmet = expectations(&outcome, false);
        for (index, expectation) in unmet.iter().enumerate() {
            let text = |key: &str| expectation[key].as_str().unwrap().to_owned();
            assert!(expectation["line"].as_u64().unwrap() > 10, "{expectation}");
            assert!(!text("seen").is_empty() && !text("look").is_empty(), "{expectation}");
            // The summary shows the first 20 in full, and how many more there are.
            let shown = outcome.stdout.contains(&format!("  look:  {}\n", text("look")));
            assert!(shown || index >= 20, "{expectation}");
            look(&outcome, &text("look"));
        }
        let more = format!("… and {} more not met: see run.json", unmet.len() - 20);
        assert!(outcome.stdout.contains(&more), "{more}: {}", outcome.stdout);
        let junit = std::fs::read_to_string(lab.path().join("results.xml")).unwrap();
        assert_eq!(junit, outcome.file("junit.xml"));
        assert_eq!(junit.matches("type=\"expectation\"").count(), unmet.len(), "{junit}");
    }
}

#[test]
fn the_line_that_is_named_is_the_line_that_matched() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: [sh, -c, \"seq 5; echo oops >&2; seq 9\"]}}\n\
             expect: [{node: a, log: {match: oops, count: 0}}, {node: a, log: {match: '^7$', count: 0}}]\n",
        );
        outcome.assert_code(1);
        let found = outcome.report()["expectations"].clone();
        assert_eq!(found[0]["look"], "nodes/a/stderr:1");
        assert_eq!(found[1]["look"], "nodes/a/stdout:12");
        assert!(
            found[1]["seen"].as_str().unwrap().starts_with("1 lines, the first at 0."),
            "{found}"
        );
    }
}

#[test]
fn a_run_that_ends_before_a_window_does_not_meet_the_expectations_of_it() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.run(
            "nodes: {a: {run: sleep 0.2}, b: }\nlinks: [{between: [a, b], name: wire}]\n\
             expect: [{link: wire, direction: up, between: [5s, 6s], drops: 0}]\n",
        );
        outcome.assert_code(1);
        let found = outcome.report()["expectations"][0].clone();
        assert!(found["seen"].as_str().unwrap().contains("before that"), "{found}");
    }
}

#[test]
fn a_results_file_that_cannot_be_written_is_reported_before_the_run() {
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome =
            lab.run_with("nodes: {a: {run: 'true'}}\n", &["--junit", "no/such/folder.xml"]);
        outcome.assert_code(4);
        assert!(outcome.stderr.contains("cannot write no/such/folder.xml"), "{}", outcome.stderr);
    }
}

/// The file that `look` names exists; a line that it names has the expected text.
#[track_caller]
fn look(outcome: &Outcome, look: &str) {
    let file = look.split([':', ',', ' ']).next().unwrap();
    let text = outcome.file(file);
    let line = look.strip_prefix(file).and_then(|rest| rest.strip_prefix(':'));
    let line = line.map(|rest| rest.split(' ').next().unwrap().trim_end_matches(','));
    if let Some((_, begin)) = look.split_once("begins with `") {
        let begin = begin.trim_end_matches('`');
        assert!(text.lines().any(|row| row.starts_with(begin)), "{look}: {text}");
    }
    if let Some(number) = line.and_then(|number| number.parse::<usize>().ok()) {
        let row = text.lines().nth(number - 1).unwrap_or_default();
        assert!(row.contains("sent"), "{look}: {row}");
    }
}

fn expectations(outcome: &Outcome, met: bool) -> Vec<Value> {
    let all = outcome.report()["expectations"].as_array().unwrap().clone();
    all.into_iter().filter(|expectation| expectation["met"] == met).collect()
}

fn column(row: &str, index: usize) -> u64 {
    row.split(',').nth(index).unwrap().parse().unwrap()
}

/// 300 datagrams of 1000 bytes in three seconds: 1066 bytes each on the wire.
fn scenario(expect: &str) -> String {
    format!(
        "nodes:
  a: {{run: [python3, -u, -c, {SEND:?}], after: b}}
  b:
    run: [python3, -u, -c, {RECEIVE:?}]
    daemon: true
    ready: log:bound
links:
  - {{between: [a, b], name: wire, latency: 5ms, rate: 10mbit}}

ipv6: false
expect:
{expect}"
    )
}

const RECEIVE: &str = "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 9))
print('bound')
while True: s.recv(2000)
";

const SEND: &str = "import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin = time.monotonic()
for n in range(300):
    s.sendto(bytes(1000), ('b', 9))
    time.sleep(max(0, begin + (n + 1) / 100 - time.monotonic()))
print('sent')
";

const MET: &str = "  - {node: a, exit: 0, exited: {min: 3s, max: 60s}, runtime: {min: 2.9s}}
  - {node: a, log: sent}
  - {node: a, log: {match: Traceback, count: 0}}
  - {node: b, ready: {max: 60s}}
  - {path: [a, b], rtt: {min: 10ms, p99: {max: 3s}, p0: {min: 10ms}, mean: {min: 10ms}}}
  - {path: [a, b], between: [500ms, 1s], rtt: {p50: {min: 10ms, max: 3s}}, loss: {max: 0%}}
  - {path: [a, b], throughput: {peak: {min: 400kbit, max: 1.6mbit}, mean: {max: 800kbit}}}
  - {path: [b, a], throughput: {max: 1bit}}
  - {link: wire, direction: up, rate: {min: 426kbit, max: 1.7mbit, deviation: {max: 100%}}}
  - {link: wire, direction: up, rate: {mean: {max: 900kbit}}}
  - {link: wire, direction: up, loss: {max: 0%}, drops: {max: 0, share: {max: 0%}, aqm: 0}}
  - {link: wire, direction: up, offered: {min: 300}, delivered: {min: 300}, marked: 0}
  - {link: wire, direction: up, queue: {max: 100p, p50: {max: 50p}}}
  - {link: wire, direction: up, queue: {max: 200KB}}
  - {link: wire, direction: up, queue: {max: 500ms}}
  - {link: wire, direction: up, lateness: {max: 5s, p50: {max: 1s}}}
";

const UNMET: &str = "  - {node: a, exit: 1}
  - {node: a, exit: SIGTERM}
  - {node: a, exited: {max: 1s}}
  - {node: a, runtime: {max: 1s}}
  - {node: a, log: {match: sent, count: 0}}
  - {node: a, log: never}
  - {node: a, log: sent, between: [0s, 1s]}
  - {node: b, exit: any}
  - {node: b, ready: {max: 1us}}
  - {path: [a, b], rtt: {max: 9ms, p50: {max: 9ms}}}
  - {path: [a, b], between: [500ms, 1s], rtt: {p100: {max: 9ms}}}
  - {path: [a, b], loss: {min: 1%}}
  - {path: [a, b], throughput: {lowest: {min: 5mbit}, deviation: {min: 100%}}}
  - {link: wire, direction: up, rate: {min: 5mbit, lowest: {min: 5mbit}, deviation: {min: 100%}}}
  - {link: wire, direction: up, between: [1s, 2s], rate: {mean: {min: 5mbit}}}
  - {link: wire, direction: up, loss: {min: 1%}, drops: {min: 1, share: {min: 1%}, queue-full: {min: 1}}}
  - {link: wire, direction: up, offered: {max: 299}, delivered: {max: 299}, marked: {min: 1}}
  - {link: wire, direction: up, queue: {min: 101p, p100: {min: 101p}}}
  - {link: wire, direction: up, lateness: {max: 1ns, p99: {max: 1ns}}}
";
