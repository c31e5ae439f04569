//! Reservations that nodes share, with real programs. They need control groups: without them a run is
//! refused.

use std::process::Output;

use serde_json::Value;

use super::support::{Lab, Live, Outcome, User, is_missing, users};

/// Computes in two processes for so many seconds, and prints the processor time of both.
const BURN: &str = "
import os, sys, time
until = time.monotonic() + float(sys.argv[1])
child = os.fork()
while time.monotonic() < until:
    pass
if child:
    os.wait()
    print(sum(os.times()[:4]))
";

/// Takes so many megabytes, uses them, and stays.
const EAT: &str = "
import sys, time
kept = bytearray(b'x') * (int(sys.argv[1]) << 20)
print('ate', flush=True)
time.sleep(float(sys.argv[2]))
";

const NETWORK: &str =
    "routers: [r]\nlinks: [{between: [a, r]}, {between: [b, r]}, {between: [c, r]}]\n";

fn lab(user: User) -> Lab {
    let lab = Lab::new(user);
    lab.write("burn.py", BURN);
    lab.write("eat.py", EAT);
    lab
}

/// Whether this user has control groups here; otherwise the run was refused as it must be.
fn has_groups(outcome: &Outcome) -> bool {
    if outcome.code != 4 {
        return true;
    }
    assert!(outcome.stderr.contains("needs a control group"), "{}", outcome.describe());
    assert!(!outcome.folder.join("events.jsonl").exists(), "nothing has begun");
    false
}

fn processor_time(outcome: &Outcome, node: &str) -> f64 {
    outcome.output(node).trim().parse().unwrap()
}

#[track_caller]
fn assert_ratio(a: f64, b: f64, expected: f64) {
    let ratio = a / b;
    assert!(ratio > expected * 0.75 && ratio < expected / 0.75, "{a} / {b} = {ratio}");
}

#[test]
fn processors_are_divided_between_reservations_and_then_within_them() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(&format!(
            "nodes: {{a: {{cpu: {{weight: 2}}, run: python3 burn.py 5}}, b: {{run: python3 burn.py 5}},\n\
             \x20 c: {{run: python3 burn.py 5}}}}\n\
             reserve: {{site: {{of: [a, b], cpu: {{weight: 3}}}}}}\n{NETWORK}"
        ));
        if !has_groups(&outcome) {
            continue;
        }
        let [a, b, c] = ["a", "b", "c"].map(|node| processor_time(&outcome, node));
        assert_ratio(a + b, c, 3.0);
        assert_ratio(a, b, 2.0);
        lab.assert_nothing_left();
    }
}

#[test]
fn what_a_reservation_may_use_its_nodes_use_together() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(&format!(
            "nodes: {{a: {{run: python3 burn.py 5}}, b: {{cpu: 50%, run: python3 burn.py 5}}, c: {{}}}}\n\
             reserve:\n\
             \x20 site: {{of: pair, cpu: {{limit: 30%}}, memory: {{limit: 1GB}}}}\n\
             \x20 pair: {{of: [a, b]}}\n{NETWORK}"
        ));
        assert_eq!(outcome.code, 3, "b reserves 50 %: {}", outcome.describe());
        let outcome = lab.run(&format!(
            "nodes: {{a: {{run: python3 burn.py 5}}, b: {{run: python3 burn.py 5}}, c: {{}}}}\n\
             reserve:\n\
             \x20 site: {{of: pair, cpu: {{limit: 30%}}, memory: {{limit: 1GB}}}}\n\
             \x20 pair: {{of: [a, b]}}\n{NETWORK}"
        ));
        if !has_groups(&outcome) {
            continue;
        }
        outcome.assert_code(0);
        let report = outcome.report();
        let limit = &report["limits"][0];
        assert_eq!((&limit["node"], &limit["reservation"]), (&Value::from("site"), &true.into()));
        let delivered = limit["delivered_median_cpus"].as_f64().unwrap();
        assert!(delivered < 0.315 && delivered > 0.02, "{limit}");
        let together = processor_time(&outcome, "a") + processor_time(&outcome, "b");
        // And what starting the interpreters took before.
        assert!(together < 0.3 * 5.0 + 0.4, "{together}");
        assert_eq!(report["bounds"][0]["node"], "site", "{report}");
        assert!(report["bounds"][0]["peak"].as_u64() > Some(1_000_000), "{report}");
    }
}

#[test]
fn a_tree_of_the_command_line_holds_as_one_of_the_file_does() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run_with(
            &format!(
                "nodes: {{a: {{run: python3 burn.py 4}}, b: {{run: python3 burn.py 4}}, c: {{}}}}\n\
                 reserve: {{pair: {{of: [a, b]}}}}\n{NETWORK}"
            ),
            &[
                "--reserve",
                "site={of: [pair, rest], cpu: {limit: 30%}}",
                "--reserve",
                "rest={of: c}",
            ],
        );
        if !has_groups(&outcome) {
            continue;
        }
        outcome.assert_code(0);
        let limit = &outcome.report()["limits"][0];
        assert_eq!((&limit["node"], &limit["reservation"]), (&Value::from("site"), &true.into()));
        let together = processor_time(&outcome, "a") + processor_time(&outcome, "b");
        // And what starting the interpreters took before.
        assert!(together < 0.3 * 4.0 + 0.4, "{together}");
    }
}

#[test]
fn memory_that_nodes_share_ends_the_largest_of_their_programs_and_nothing_else() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = lab(user);
        let outcome = lab.run(&format!(
            "duration: 6s\nnodes: {{a: {{run: python3 eat.py 40 600}},\n\
             \x20 b: {{start: 2s, run: python3 eat.py 400 600}}, c: {{run: python3 eat.py 100 600}}}}\n\
             reserve: {{site: {{of: [a, b], memory: 100MB}}}}\n{NETWORK}"
        ));
        if !has_groups(&outcome) {
            continue;
        }
        let reached = outcome.event(&[("event", "limit-reached")]);
        assert_eq!(reached["node"], "site", "{reached}");
        let ended: Vec<Value> = outcome.events(&[("event", "program-exited")]);
        let killed: Vec<&Value> = ended.iter().filter(|it| it["signal"] == 9).collect();
        assert!(killed.iter().any(|it| it["node"] == "b"), "{ended:?}");
        assert_eq!(outcome.output("a").trim(), "ate");
        assert_eq!(outcome.output("c").trim(), "ate");
    }
}

fn tree(lab: &Lab, live: &Live<'_>, options: &[&str]) -> Output {
    let run = live.folder().to_str().unwrap();
    lab.windtunnel(&[&["reserve", "tree", "--run", run], options].concat()).output().unwrap()
}

fn parts(lab: &Lab, live: &Live<'_>) -> Vec<Value> {
    let answer = tree(lab, live, &["--json"]);
    assert!(answer.status.success(), "{answer:?}");
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    answer["parts"].as_array().unwrap().clone()
}

#[test]
fn a_live_tree_can_be_read_and_changed_and_refuses_what_does_not_fit() {
    for user in users() {
        let lab = lab(user);
        let scenario = format!(
            "nodes: {{a: {{cpu: {{min: 20%}}, run: sleep 600}}, b: {{run: sleep 600}}, c: {{run: sleep 600}}}}\n\
             reserve: {{site: {{of: [a, b], cpu: {{min: 60%, weight: 3}}}}}}\n{NETWORK}"
        );
        if user == User::Ordinary {
            assert!(!has_groups(&lab.run(&scenario)));
            continue;
        }
        let mut live = lab.start(&scenario);
        live.wait_for(&[("event", "program-started")]);
        let share = |name: &str| {
            let parts = parts(&lab, &live);
            let part = parts.iter().find(|part| part["name"] == name).expect(name).clone();
            assert_eq!(part["node"], name != "site");
            part["cpu_share_millis"].as_u64().unwrap()
        };
        let processors = 1000 * u64::try_from(windtunnel_cpus()).unwrap();
        let site = 600 + (processors - 600) * 3 / 4;
        assert_eq!(share("site"), site);
        assert_eq!((share("a"), share("b")), (200 + (site - 200) / 2, (site - 200) / 2));
        let refused = live.ask("set", &["a.cpu={min: 70%}"]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(
            said.contains("0.7 of 0.6 cores of reservation 'site' asked: 0.1 missing"),
            "{said}"
        );
        assert!(live.ask("set", &["a.cpu={min: 50%, weight: 4}"]).status.success());
        assert_eq!(share("a"), 500 + (site - 500) * 4 / 5);
        assert!(live.ask("set", &["site.cpu={weight: 1}"]).status.success());
        let site = 600 + (processors - 600) / 2;
        assert_eq!((share("site"), share("a")), (site, 500 + (site - 500) * 4 / 5));
        let tree = tree(&lab, &live, &[]);
        assert!(String::from_utf8(tree.stdout).unwrap().contains("\n  a "), "a is within site");
        assert!(live.ask("stop", &[]).status.success());
        let outcome = live.finish();
        let set = outcome.events(&[("event", "share-set")]);
        assert_eq!(set.len(), 2, "{set:?}");
        lab.assert_nothing_left();
    }
}

/// Processors that a run may use.
fn windtunnel_cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}
