//! Limits of memory, processes, descriptors and packets of nodes, with real programs that want more.

use serde_json::Value;

use super::support::{Lab, Outcome, User, is_missing, users};

/// Takes so many megabytes, in steps, and uses them.
const EAT: &str = "
import sys, time
step = 4 << 20
kept = []
for number in range(int(sys.argv[1]) // 4):
    kept.append(bytearray(b'x') * step)
    time.sleep(float(sys.argv[2]))
print('ate', flush=True)
";

/// Makes processes, each of which makes processes, until so many seconds are over.
const BOMB: &str = "
import os, sys, time
until = time.monotonic() + float(sys.argv[1])
first = os.getpid()
refused = 0
while time.monotonic() < until:
    try:
        os.fork()
    except OSError:
        refused += 1
        time.sleep(0.01)
if os.getpid() == first:
    print(refused, flush=True)
";

/// Opens files until it may not.
const FILES: &str = "
kept = []
try:
    while True:
        kept.append(open('/dev/null'))
except OSError:
    print(len(kept))
";

/// Sends so many bytes to a server that says how long they took to come.
const TRANSFER: &str = "
import socket, sys, time
if sys.argv[1] == 'serve':
    listener = socket.create_server(('', 5000))
    stream, _ = listener.accept()
    began, count = time.monotonic(), 0
    while chunk := stream.recv(65536):
        count += len(chunk)
    print(count / (time.monotonic() - began))
else:
    stream = socket.create_connection((sys.argv[1], 5000))
    stream.sendall(bytes(int(sys.argv[2])))
";

fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    for (name, text) in
        [("eat.py", EAT), ("bomb.py", BOMB), ("files.py", FILES), ("transfer.py", TRANSFER)]
    {
        lab.write(name, text);
    }
    lab
}

#[track_caller]
pub(super) fn bound(outcome: &Outcome, node: &str, limit: &str) -> Value {
    let report = outcome.report();
    let bounds = report["bounds"].as_array().unwrap();
    let found = bounds.iter().find(|it| it["node"] == node && it["limit"] == limit);
    found.unwrap_or_else(|| panic!("{report:#}")).clone()
}

pub(super) fn reached(outcome: &Outcome, node: &str, limit: &str) -> Vec<Value> {
    let text = outcome.file("events.jsonl");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_wanted = |event: &Value| {
        event["event"] == "limit-reached" && event["node"] == node && event["limit"] == limit
    };
    events.filter(is_wanted).collect()
}

pub(super) fn mechanism(bound: &Value) -> &str {
    bound["mechanism"].as_str().unwrap()
}

/// Node `a` took more than its 64 MB by this program, and node `b` less than it may; the bound of `a`.
#[track_caller]
pub(super) fn assert_eater_is_ended(outcome: &Outcome, program: &str) -> Value {
    let (eater, other) = (bound(outcome, "a", "memory"), bound(outcome, "b", "memory"));
    assert_eq!(eater["ended"], 1, "{eater}");
    assert_eq!(eater["failure"], Value::Null, "{eater}");
    assert_eq!((&other["ended"], &other["met"]), (&0.into(), &0.into()), "{other}");
    let peak = eater["peak"].as_u64().unwrap();
    match mechanism(&eater) {
        "watch" => assert!(peak < 500_000_000, "{eater}"),
        _ => assert!(peak <= 64_000_000, "{eater}"),
    }
    let events = reached(outcome, "a", "memory");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["ended"], 1);
    let is_named = events[0]["program"] == 0 || events[0]["names"][0] == program;
    assert!(is_named, "{events:?}");
    assert!(reached(outcome, "b", "memory").is_empty());
    eater
}

#[test]
fn a_program_that_eats_memory_is_ended_and_no_other() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.pass(
            "nodes:\n\
             \x20 a: {memory: 64MB, run: python3 eat.py 600 0.002}\n\
             \x20 b: {memory: 200MB, run: python3 eat.py 40 0.02}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 137}, {node: b, exit: 0}]\n",
        );
        let eater = assert_eater_is_ended(&outcome, "python3");
        assert!(outcome.stdout.contains(mechanism(&eater)), "{}", outcome.stdout);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_fork_bomb_stays_in_its_node() {
    if is_missing(&["python3", "sh"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.pass(
            "nodes:\n\
             \x20 a: {pids: 40, run: python3 bomb.py 3}\n\
             \x20 b: {run: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9; do /bin/true || exit 1; done']}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 0}, {node: b, exit: 0}]\n",
        );
        let pids = bound(&outcome, "a", "pids");
        let by_kernel = mechanism(&pids) != "watch";
        assert!(by_kernel, "{pids}");
        assert!(pids["peak"].as_u64() <= Some(40), "{pids}");
        assert!(pids["met"].as_u64() >= Some(1), "{pids}");
        assert!(outcome.output("a").trim().parse::<u64>().unwrap() > 0);
        assert!(!reached(&outcome, "a", "pids").is_empty());
        lab.assert_nothing_left();
    }
}

#[test]
fn the_processes_of_other_nodes_and_of_the_machine_do_not_count() {
    if is_missing(&["sh"]) {
        return;
    }
    for user in users() {
        // Each has four, and their sum is more than each may have.
        let four = "[sh, -c, 'sleep 1 & sleep 1 & sleep 1 & wait']";
        let lab = lab(user);
        let outcome = lab.pass(&format!(
            "nodes: {{a: {{count: 3, pids: 5, run: {four}}}}}\n\
             routers: [r]\nlinks: [{{between: [a, r]}}]\n"
        ));
        for node in ["a-1", "a-2", "a-3"] {
            let pids = bound(&outcome, node, "pids");
            assert_eq!((&pids["met"], &pids["failure"]), (&0.into(), &Value::Null), "{pids}");
        }
    }
}

#[test]
fn no_process_opens_more_files_than_it_may() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.pass(
            "nodes:\n\
             \x20 a: {open-files: 64, run: [{run: python3 files.py}, {run: python3 files.py, open-files: 32}]}\n\
             \x20 b: {}\n\
             links: [{between: [a, b]}]\n",
        );
        for (program, most) in [(0, 64), (1, 32)] {
            let path = outcome.folder.join(format!("nodes/a/stdout.{program}"));
            let opened = std::fs::read_to_string(path).unwrap();
            let opened: u64 = opened.trim().parse().unwrap();
            // Three are its standard streams.
            assert!(opened < most && opened + 8 > most, "{opened} of {most}");
        }
        assert_eq!(mechanism(&bound(&outcome, "a", "open-files")), "rlimit");
    }
}

#[test]
fn a_node_sends_and_receives_no_faster_than_it_may() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        for keys in ["a: {send: 1MB/s", "b: {receive: 1MB/s"] {
            let server = "b: {run: python3 transfer.py serve, ready: tcp:5000}";
            let client = "a: {run: python3 transfer.py b 3000000, after: b}";
            let nodes = [server, client].map(|node| {
                let (name, rest) = node.split_once('{').unwrap();
                match keys.strip_prefix(name) {
                    Some(limit) => format!("{name}{limit}, {rest}"),
                    None => node.to_owned(),
                }
            });
            let lab = lab(user);
            let outcome = lab.pass(&format!(
                "nodes: {{{}}}\nlinks: [{{between: [a, b], latency: 5ms}}]\n",
                nodes.join(", ")
            ));
            let rate: f64 = outcome.output("b").trim().parse().unwrap();
            // Headers and framing count, too: 1448 of 1538 bytes of each packet arrive at programs.
            assert!(rate < 1_000_000.0 * 1448.0 / 1538.0 * 1.02, "{rate}");
            assert!(rate > 100_000.0, "{rate}");
        }
    }
}

#[test]
fn limits_change_while_programs_run() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let mut live = lab.start(
            "nodes:\n\
             \x20 a: {memory: 400MB, pids: 100, run: python3 eat.py 200 0.2}\n\
             \x20 b: {run: python3 eat.py 200 0.2}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 137}, {node: b, exit: 137}]\n",
        );
        live.wait_for(&[("event", "program-started"), ("node", "b")]);
        for order in ["a.pids=50", "a.memory=60MB", "b.memory=60MB"] {
            let answer = live.ask("set", &[order]);
            assert!(answer.status.success(), "{order}: {answer:?}");
        }
        for nothing in ["c.memory=60MB", "a.memory=1KB", "a.pids=0", "a.open-files=9"] {
            assert_eq!(live.ask("set", &[nothing]).status.code(), Some(2), "{nothing}");
        }
        live.wait_for(&[("event", "limit-set"), ("node", "b"), ("limit", "memory")]);
        let outcome = live.finish();
        outcome.assert_code(0);
        for node in ["a", "b"] {
            let memory = bound(&outcome, node, "memory");
            assert_eq!((&memory["asked"], &memory["ended"]), (&60_000_000.into(), &1.into()));
        }
        assert_eq!(bound(&outcome, "a", "pids")["asked"], 50);
    }
}

#[test]
fn a_program_has_limits_of_its_own_within_its_node_or_the_run_is_refused() {
    if is_missing(&["python3"]) {
        return;
    }
    const FILE: &str = "nodes:\n\
        \x20 a:\n\
        \x20   memory: 300MB\n\
        \x20   run:\n\
        \x20     - {run: python3 eat.py 200 0.002, memory: 64MB}\n\
        \x20     - {run: python3 eat.py 100 0.002}\n\
        \x20     - {run: python3 bomb.py 2, pids: 20}\n\
        \x20 b: {}\n\
        links: [{between: [a, b]}]\n";
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(FILE);
        if user == User::Ordinary {
            outcome.assert_code(4);
            let expected = "program 0 of node a: `memory` needs a control group";
            assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
            continue;
        }
        let report = outcome.report();
        let exits = report["programs"].as_array().unwrap().iter();
        let exits: Vec<Value> = exits.map(|program| program["exit"].clone()).collect();
        assert_eq!(exits, [137, 0, 0], "{report:#}");
        let bounds = report["bounds"].as_array().unwrap();
        let of = |program: u64| bounds.iter().find(|bound| bound["program"] == program).unwrap();
        assert_eq!(of(0)["ended"], 1, "{bounds:?}");
        assert!(of(2)["met"].as_u64() >= Some(1) && of(2)["peak"].as_u64() <= Some(20));
        lab.assert_nothing_left();
    }
}

#[test]
fn processors_are_divided_by_weight_or_the_run_is_refused() {
    if is_missing(&["python3"]) {
        return;
    }
    // Eight processes burn; the first one says what all had.
    const BURN: &str = "
import os, time
until = time.monotonic() + 4
children = []
for _ in range(7):
    child = os.fork()
    if child == 0:
        while time.monotonic() < until:
            pass
        os._exit(0)
    children.append(child)
while time.monotonic() < until:
    pass
for child in children:
    os.waitpid(child, 0)
print(sum(os.times()[:4]))
";
    for user in users() {
        let lab = lab(user);
        lab.write("burn.py", BURN);
        let outcome = lab.run(
            "nodes:\n\
             \x20 a: {cpu: {weight: 6}, run: python3 burn.py}\n\
             \x20 b: {cpu: {weight: 1}, run: python3 burn.py}\n\
             links: [{between: [a, b]}]\n",
        );
        if user == User::Ordinary {
            outcome.assert_code(4);
            let expected = "node a: `cpu: weight` needs a control group";
            assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
            continue;
        }
        let used = |node: &str| outcome.output(node).trim().parse::<f64>().unwrap();
        // Six times as much while both want all; one may begin and end before the other.
        let (more, less) = (used("a"), used("b"));
        assert!(more > 2.0 * less, "{more} {less}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_limit_that_an_event_cannot_set_is_a_doubt() {
    for user in users() {
        let lab = Lab::new(user);
        // Of what no group holds, `pids` of a user namespace can only become less.
        let outcome = lab.run(
            "nodes: {a: {pids: 20, run: sleep 2}, b: {}}\n\
             links: [{between: [a, b]}]\n\
             events: [{at: 1s, node: a, limit: {pids: 30}}]\n",
        );
        let report = outcome.report();
        let bound = report["bounds"][0].clone();
        if bound["mechanism"] != "user namespace" {
            outcome.assert_code(0);
            continue;
        }
        outcome.assert_code(1);
        let doubts = report["verdict"]["unfaithful"].to_string();
        assert!(doubts.contains("an event could not change it"), "{doubts}");
    }
}
