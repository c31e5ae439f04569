//! Limits of nodes with real programs. Shares are of whole seconds in which programs were kept from
//! running; how many of these there are depends on the machine.

use serde_json::Value;

use super::support::{Lab, Outcome, User, assert_limits_were_held, is_missing, users};

/// Computes in so many processes of two threads until so many seconds are over.
const BURN: &str = "
import os, sys, threading, time
until = time.monotonic() + float(sys.argv[1])
def burn():
    while time.monotonic() < until:
        pass
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
threading.Thread(target=burn).start()
burn()
";

/// Computes for a while of processor time and sleeps, by turns; prints how long all of it took.
const MIXTURE: &str = "
import sys, time
compute, sleep, rounds = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
began = time.monotonic()
for _ in range(rounds):
    until = time.process_time() + compute
    while time.process_time() < until:
        pass
    time.sleep(sleep)
print(time.monotonic() - began)
";

pub(super) fn limit(outcome: &Outcome, node: &str) -> Value {
    let report = outcome.report();
    let limits = report["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["node"] == node).expect(node).clone()
}

/// What was delivered in the seconds in which programs wanted more, as a part of what was asked.
#[track_caller]
fn delivered(limit: &Value) -> f64 {
    assert!(limit["bound_windows"].as_u64() >= Some(1), "{limit}");
    limit["delivered_median_cpus"].as_f64().unwrap() / limit["asked_cpus"].as_f64().unwrap()
}

/// Whether the programs had something and no more than was asked. How much less they had depends on
/// how busy the machine is with other things.
#[track_caller]
pub(super) fn assert_held(limit: &Value) {
    let delivered = delivered(limit);
    assert!(delivered < 1.05, "{limit}");
    assert!(delivered > 0.05, "{limit}");
    assert_eq!(limit["failure"], Value::Null, "{limit}");
}

/// Runs a scenario that must end well. Where the machine kept the duty cycle itself from running, it
/// may be that the limit was exceeded a little in one second and the report says so.
#[track_caller]
pub(super) fn pass(lab: &Lab, scenario: &str) -> Outcome {
    let outcome = lab.run(scenario);
    if outcome.code == 1 {
        let report = outcome.report();
        assert_limits_were_held(&report);
        for limit in report["limits"].as_array().unwrap() {
            let most = limit["delivered_max_cpus"].as_f64().unwrap();
            assert!(most < 1.2 * limit["asked_cpus"].as_f64().unwrap(), "{limit}");
        }
        return outcome;
    }
    outcome.assert_code(0);
    outcome
}

pub(super) fn assert_mechanism(limit: &Value, user: User) {
    let mechanism = limit["mechanism"].as_str().unwrap();
    if user == User::Ordinary {
        // This user has no part of the tree of groups.
        assert_eq!(mechanism, "duty cycle");
    }
    assert!(["cgroup v2", "cgroup v1", "duty cycle"].contains(&mechanism), "{mechanism}");
}

fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    lab.write("burn.py", BURN);
    lab.write("mixture.py", MIXTURE);
    lab
}

#[test]
fn a_busy_program_has_its_quarter_of_a_processor_and_its_neighbour_is_not_limited() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 25%, run: python3 burn.py 5 1}, b: {run: sleep 1}}\n\
             links: [{between: [a, b]}]\n",
        );
        let limit = limit(&outcome, "a");
        assert_held(&limit);
        assert_mechanism(&limit, user);
        assert_eq!(outcome.report()["limits"].as_array().unwrap().len(), 1);
        assert!(outcome.file("limits.csv").lines().count() >= 4, "{}", outcome.file("limits.csv"));
        assert!(outcome.stdout.contains(limit["mechanism"].as_str().unwrap()));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_leaves_the_group_of_its_node_makes_the_run_not_faithful() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = lab(users()[0]);
    lab.write("escape.py", super::limit::resources::ESCAPE);
    let outcome = lab.run(
        "nodes: {a: {cpu: 10%, memory: 200MB, run: python3 escape.py leave}, b: {}}\n\
         links: [{between: [a, b]}]\n",
    );
    if outcome.output("a") != "escaped\n" {
        // No group, or none that can be written to from a node.
        return;
    }
    assert!(!outcome.is_faithful(), "{}", outcome.describe());
    let verdict = outcome.report()["verdict"]["unfaithful"].to_string();
    for what in
        ["the processor limit of node a was not held: process", "the limit `memory` of node a"]
    {
        assert!(verdict.contains(what), "{verdict}");
    }
    assert!(
        verdict.contains("(python3) had left its control group, and was put back"),
        "{verdict}"
    );
}

#[test]
fn what_left_the_group_of_its_node_and_ended_between_two_looks_makes_the_run_not_faithful() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = lab(users()[0]);
    lab.write("escape.py", super::limit::resources::ESCAPE.replace("1.5", "0.15"));
    let reserved = "reserve: {site: {of: [a], cpu: 80%, memory: 1GB}}\n";
    for (limits, around, what) in [
        ("cpu: 80%, ", "", "the processor limit of node a was not held: "),
        ("memory: 200MB, ", "", "the limit `memory` of node a was not held: "),
        ("pids: 20, ", "", "the limit `pids` of node a was not held: "),
        ("", reserved, "the processor limit of reservation site was not held: "),
    ] {
        // It ends long before the next look; and in the last second, before the run does.
        for words in ["sleep 0.2; python3 escape.py leave; sleep 1.5", "python3 escape.py leave"] {
            let outcome = lab.run(&format!(
                "nodes: {{a: {{{limits}run: [sh, -c, '{words}']}}, b: {{}}}}\n\
                 {around}links: [{{between: [a, b]}}]\n"
            ));
            if outcome.output("a") != "escaped\n" {
                // No group, or none that can be written to from a node; or none can be reserved.
                continue;
            }
            let verdict = outcome.report()["verdict"]["unfaithful"].to_string();
            let said = verdict.contains(what) && verdict.contains("outside its control group");
            assert!(said || verdict.contains("had left its control group"), "{verdict}");
        }
    }
}

#[test]
fn a_program_without_limits_that_leaves_its_reservation_makes_the_run_not_faithful() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = lab(users()[0]);
    lab.write("escape.py", super::limit::resources::ESCAPE);
    let outcome = lab.run(
        "nodes: {a: {run: python3 escape.py leave}, b: {}}\n\
         reserve: {site: {of: [a], cpu: 30%}}\nlinks: [{between: [a, b]}]\n",
    );
    if outcome.code == 4 || outcome.output("a") != "escaped\n" {
        return;
    }
    let verdict = outcome.report()["verdict"]["unfaithful"].to_string();
    assert!(
        verdict.contains("the processor limit of reservation site was not held: "),
        "{verdict}"
    );
    assert!(verdict.contains("had left its control group"), "{verdict}");
}

#[test]
fn programs_that_end_at_once_and_that_are_not_waited_for_are_in_their_group() {
    if is_missing(&["sh", "timeout"]) {
        return;
    }
    let lab = lab(users()[0]);
    let busy = "while :; do /bin/true; /bin/true & done";
    for limits in ["memory: 300MB", "pids: 60", "cpu: 30%, memory: 300MB, pids: 60"] {
        let outcome = pass(
            &lab,
            &format!(
                "nodes: {{a: {{{limits}, run: [timeout, 3, sh, -c, '{busy}']}}, b: {{}}}}\n\
                 links: [{{between: [a, b]}}]\nexpect: [{{node: a, exit: 124}}]\n"
            ),
        );
        let bounds = outcome.report()["bounds"].as_array().unwrap().clone();
        assert!(bounds.iter().all(|bound| bound["failure"].is_null()), "{bounds:?}");
    }
}

#[test]
fn all_threads_and_children_together_have_the_share() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 0.3, run: [{run: python3 burn.py 5 3}, {run: python3 burn.py 5 2}]}, b: {}}\n\
             links: [{between: [a, b]}]\n",
        );
        assert_held(&limit(&outcome, "a"));
    }
}

#[test]
fn processes_that_end_at_once_are_counted() {
    if is_missing(&["sh", "timeout"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 20%, run: [timeout, 5, sh, -c, 'while :; do /bin/true; done']}, b: {}}\n\
             links: [{between: [a, b]}]\n\
             expect: [{node: a, exit: 124}]\n",
        );
        assert_held(&limit(&outcome, "a"));
    }
}

/// Children of 30 ms each, one after the other, whose parent has the kernel forget them.
const FORGOTTEN: &str = "
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass
        os._exit(0)
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass
    print('child', flush=True)
";

#[test]
fn children_that_the_kernel_forgets_are_counted() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        lab.write("forgotten.py", FORGOTTEN);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 20%, run: python3 forgotten.py 5}, b: {}}\n\
             links: [{between: [a, b]}]\n",
        );
        // By its own count: 30 ms each, of 1000 ms at most and what the interpreter needs.
        let children = outcome.output("a").lines().count();
        assert!((5..=37).contains(&children), "{children}");
        assert_held(&limit(&outcome, "a"));
    }
}

#[test]
fn computing_takes_longer_beside_sleeping() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 25%, run: python3 mixture.py 0.1 0.3 8}, b: {}}\n\
             links: [{between: [a, b]}]\n",
        );
        let took: f64 = outcome.output("a").trim().parse().unwrap();
        // 8 times 0.3 s of sleep and 0.1 s of computing, which is 0.4 s at a quarter: 5.6 s. How
        // much of a sleep was stretched cannot be seen on a busy machine; the controller's tests
        // in virtual time see it.
        assert!(took > 5.2, "{took}");
    }
}

#[test]
fn what_an_event_pauses_stays_paused_under_a_limit() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 30%, run: python3 burn.py 4 1}, b: {}}\n\
             links: [{between: [a, b]}]\n\
             events: [{at: 1s, node: a, do: pause}, {at: 3s, node: a, do: resume}]\n",
        );
        // Two seconds in which nothing ran: what is left is at most the share of the others.
        let limit = limit(&outcome, "a");
        let used_ns = limit["used_ns"].as_u64().unwrap();
        assert!(used_ns < 1_100_000_000, "{limit}");
        assert!(used_ns > 10_000_000, "{limit}");
    }
}

#[test]
fn a_share_can_be_changed_while_programs_run_and_given_to_a_node_that_had_none() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let mut live = lab.start(
            "nodes: {a: {cpu: 10%, run: python3 burn.py 8 1}, b: {run: python3 burn.py 8 1}}\n\
             links: [{between: [a, b]}]\n",
        );
        live.wait_for(&[("event", "program-started"), ("node", "a")]);
        for order in ["a.cpu=30%", "b.cpu=20%"] {
            let answer = live.ask("set", &[order]);
            assert!(answer.status.success(), "{answer:?}");
        }
        for nothing in ["c.cpu=30%", "a.cpu=0", "a"] {
            assert_eq!(live.ask("set", &[nothing]).status.code(), Some(2), "{nothing}");
        }
        live.wait_for(&[("event", "cpu-set"), ("node", "b")]);
        let outcome = live.finish();
        assert!(outcome.code < 2, "{}", outcome.describe());
        for (node, cpus) in [("a", 0.3), ("b", 0.2)] {
            let limit = limit(&outcome, node);
            assert_eq!(limit["asked_cpus"], cpus);
            assert_held(&limit);
        }
    }
}

#[test]
fn an_event_changes_the_limits_of_nodes_and_the_most_of_them_is_reserved() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = pass(
            &lab,
            "nodes: {a: {cpu: 10%, run: python3 burn.py 8 1}, b: {run: python3 burn.py 8 1}}\n\
             links: [{between: [a, b]}]\n\
             events:\n\
             - {at: 2s, node: [a, b], limit: {cpu: 30%}}\n\
             - {at: 2s, node: b, limit: {memory: 500MB, pids: 40}}\n",
        );
        for node in ["a", "b"] {
            let limit = limit(&outcome, node);
            assert_eq!(limit["asked_cpus"], 0.3, "{limit}");
            assert_held(&limit);
        }
        let log = outcome.file("events.jsonl");
        let set = log.lines().filter(|line| line.contains("cpu-set")).count();
        let bounds = log.lines().filter(|line| line.contains("limit-set")).count();
        assert_eq!((set, bounds), (2, 2), "{log}");
        // Seconds of both limits of node a were bound, each judged by its own.
        let shares = outcome.file("limits.csv");
        for share in ["a,,0.100", "a,,0.300"] {
            assert!(shares.contains(share), "{shares}");
        }
    }
}

#[test]
fn groups_are_removed_at_the_end_and_those_of_a_run_that_was_killed_by_the_next() {
    if is_missing(&["python3"]) {
        return;
    }
    const FILE: &str =
        "nodes: {a: {cpu: 50%, run: sleep 600}, b: {}}\nlinks: [{between: [a, b]}]\n";
    for user in users() {
        let lab = lab(user);
        let mut live = lab.start(FILE);
        live.wait_for(&[("event", "program-started")]);
        let groups = groups_of(live.id());
        assert_eq!(groups.is_empty(), user == User::Ordinary, "{groups:?}");
        live.signal("KILL");
        lab.assert_nothing_left();
        let short = FILE.replace("sleep 600", "sleep 0.1");
        let next = pass(&lab, &short);
        assert_eq!(limit(&next, "a")["bound_windows"], 0);
        for group in &groups {
            assert!(!std::path::Path::new(group).exists(), "{group}");
        }
    }
}

/// Folders of control groups of a process.
fn groups_of(process: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("windtunnel-") && name.contains(&format!("-{process}-")) {
                found.push(entry.path().display().to_string());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    found
}
