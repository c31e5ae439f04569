//! The main loop of a run under hard conditions: impatient users, dead nodes, short descriptors,
//! clients that ask without end. It always answers, and never spins.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::support::{Lab, Live, any_user, cpu_time_of, until};

#[test]
fn a_second_ctrl_c_ends_programs_at_once_that_do_not_listen() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(DEAF);
        live.wait_for_output("a", "began");
        live.signal("INT");
        live.wait_for(&[("event", "run-ended")]);
        live.signal("INT");
        let outcome = live.finish();
        outcome.assert_code(130);
        let line = "stopping at once: programs still run";
        assert!(outcome.stderr.contains(line), "{}", outcome.describe());
        lab.assert_nothing_left();
    }
}

#[test]
fn ctrl_c_ends_windtunnel_after_its_output_is_closed() {
    for user in any_user() {
        let lab = Lab::new(user);
        // More than a pipe holds, in few lines, and the end of the run right behind it.
        lab.write("net.yaml", "nodes: {a: {run: [sh, -c, 'yes $(printf %01000d 7) | head -c 200000']}, b: {}}\nlinks: [{between: [a, b]}]\n");
        let mut command = lab.windtunnel(&["run", "net.yaml", "--out", "run"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        until("the results", || lab.path().join("run/run.json").exists().then_some(()));
        let id = child.id().to_string();
        let status = until("the end", || {
            // A signal while results are still being written is not for the terminal's sake.
            let _ = std::process::Command::new("kill").args(["-s", "INT", &id]).output();
            child.try_wait().unwrap()
        });
        assert_eq!(status.signal(), Some(2), "{status:?}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_node_that_dies_ends_the_run_and_the_wait_for_others_costs_no_processor() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(DEAF);
        live.wait_for_output("a", "began");
        let status = live.ask("ps", &["--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        let init = status["nodes"][1]["init_pid"].as_u64().unwrap().to_string();
        std::process::Command::new("kill").args(["-s", "KILL", &init]).status().unwrap();
        live.wait_for(&[("event", "run-ended")]);
        // Two seconds are given to the other node's program, which does not listen.
        let (before, mut spent) = (cpu_time_of(live.id()).unwrap(), 0);
        until("the end", || match cpu_time_of(live.id()) {
            Some(now) => {
                spent = now - before;
                None
            }
            None => Some(()),
        });
        let outcome = live.finish();
        outcome.assert_code(1);
        assert!(outcome.stdout.contains("node b has failed"), "{}", outcome.describe());
        assert!(spent < 1_000_000_000, "the main loop took {spent} ns of a processor to wait");
    }
}

#[test]
fn clients_beyond_the_descriptors_are_refused_with_the_reason_and_nothing_spins() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = start_with_descriptors(&lab, 90);
        live.wait_for(&[("event", "run-began")]);
        let socket = live.folder().join("control.sock");
        let held: Vec<UnixStream> =
            (0..100).map(|_| UnixStream::connect(&socket).unwrap()).collect();
        let refused = until("a refusal", || {
            let seen = live.ask("ps", &[]);
            (!seen.status.success()).then_some(seen)
        });
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(stderr.contains("takes no more connections: "), "{stderr}");
        live.wait_for(&[("event", "warning")]);
        let before = cpu_time_of(live.id()).unwrap();
        // Each is a turn of the loop, and there is room for none.
        let asked = (0..20).filter(|_| !live.ask("ps", &[]).status.success()).count();
        let spent = cpu_time_of(live.id()).unwrap() - before;
        assert_eq!(asked, 20);
        assert!(spent < 200_000_000, "20 refusals took {spent} ns of a processor");
        drop(held);
        until("room again", || live.ask("ps", &[]).status.success().then_some(()));
        assert!(live.ask("stop", &[]).status.success());
        let outcome = live.finish();
        outcome.assert_code(0);
        let warnings = outcome.events(&[("event", "warning")]);
        assert_eq!(warnings.len(), 1, "once for a shortage, not once a client: {warnings:?}");
    }
}

#[test]
fn a_client_that_asks_without_end_and_never_reads_delays_no_other_client() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "nodes: {a: {count: 20, run: sleep 1000}}\nrouters: [r]\nlinks: [{between: [a, r]}]\n",
        );
        live.wait_for(&[("event", "run-began")]);
        let flood = UnixStream::connect(live.folder().join("control.sock")).unwrap();
        flood.set_nonblocking(true).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let requests = b"{\"request\":\"ps\"}\n".repeat(4000);
                while !over.load(Ordering::Relaxed) {
                    match (&flood).write(&requests) {
                        Err(error) if error.kind() != ErrorKind::WouldBlock => break,
                        _ => std::thread::yield_now(),
                    }
                }
            });
            for _ in 0..5 {
                assert!(live.ask("ps", &[]).status.success());
            }
            assert!(live.ask("stop", &[]).status.success());
            over.store(true, Ordering::Relaxed);
        });
        let mut greeting = [0; 16];
        assert!((&flood).read(&mut greeting).is_ok());
        live.finish().assert_code(0);
    }
}

/// windtunnel that may have only so many files open.
fn start_with_descriptors(lab: &Lab, most: usize) -> Live<'_> {
    lab.write("net.yaml", "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n");
    std::fs::create_dir(lab.path().join("out")).unwrap();
    lab.own(&lab.path().join("out"));
    let limit = format!("--nofile={most}:{most}");
    let words = ["run", "net.yaml", "--out", "out", "--max-lateness", "5s"];
    let command = lab.windtunnel_behind(&["prlimit", &limit], &words);
    Live::start(lab, command, lab.path().join("out"))
}

/// A program that only SIGKILL ends, and another node.
const DEAF: &str = "nodes:
  a: {run: [sh, -c, 'trap \"\" TERM INT HUP; echo began; while :; do sleep 1000; done']}
  b: {run: sleep 1000}
links: [{between: [a, b]}]
";
