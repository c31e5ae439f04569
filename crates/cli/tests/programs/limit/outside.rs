//! What leaves its control group and ends between two looks, and limits that several commands share.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::super::support::{Lab, is_missing, until, users};
use super::ended;
use super::resources::{ESCAPE, command, listed, said};
use super::running::{attach, python};

/// It ends before anything looks.
fn brief() -> String {
    ESCAPE.replace("1.5", "0.1")
}

fn is_grouped(ended: &Value, what: &str) -> bool {
    ended[what]["mechanism"].as_str().unwrap().starts_with("cgroup")
}

#[track_caller]
fn assert_not_limited(ended: &Value, what: &str, why: &str) {
    let failure = ended[what]["failure"].as_str().unwrap_or_else(|| panic!("{ended:#}"));
    assert!(failure.contains(why), "{failure}");
}

const OUTSIDE: &str = "ms of processor time were used outside its control group";

#[test]
fn what_left_its_group_and_ended_before_it_was_looked_for_is_not_limited() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for (option, most, what) in
        [("--cpu", "60%", "cpu"), ("--memory", "200MB", "memory"), ("--pids", "50", "pids")]
    {
        let output = command(&lab, &[option, most], &["python3", "-c", &brief(), "leave"]);
        assert!(output.status.success(), "{output:?}");
        let ended = ended(lab.path());
        if is_grouped(&ended, what) {
            assert_not_limited(&ended, what, OUTSIDE);
            let line = format!("NOT LIMITED: {what}: ");
            assert!(said(&output).contains(&line), "{}", said(&output));
        }
    }
}

#[test]
fn what_left_the_group_that_its_command_shares_is_not_limited_and_the_others_are() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let Some((group, first)) = shared(&lab, "leave") else { return };
    let options = ["--group", &group[..]];
    let output = command(&lab, &options, &["python3", "-c", &brief(), "leave"]);
    assert!(output.status.success(), "{output:?}");
    let (first, second) = both(&lab, first);
    assert_not_limited(&second, "cpu", OUTSIDE);
    assert_eq!(first["cpu"]["failure"], Value::Null, "{first:#}");
}

#[test]
fn a_limit_that_commands_share_is_set_again_and_all_of_them_report_it() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let Some((group, first)) = shared(&lab, "lift") else { return };
    // What `limit set` changes, and what one more command asks for, is asked for.
    for share in ["50%", "70%", "60%"] {
        let set = lab.windtunnel(&["limit", "set", &group, "--cpu", share]).output().unwrap();
        assert!(set.status.success(), "{set:?}");
    }
    let more = ["--group", &group, "--cpu", "55%"];
    let output = command(&lab, &more, &["sleep", "0.6"]);
    assert!(output.status.success(), "{output:?}");
    let second = ended(lab.path());
    assert_eq!(second["cpu"]["failure"], Value::Null, "{second:#}");
    let options = ["--group", &group[..]];
    let output = command(&lab, &options, &["python3", "-c", ESCAPE, "lift"]);
    let (first, second) = both(&lab, first);
    if output.stdout.starts_with(b"escaped") && second["cpu"]["mechanism"] == "cgroup v1" {
        for ended in [first, second] {
            assert_not_limited(&ended, "cpu", "changed to");
            assert_eq!(ended["cpu"]["asked_cpus"], 0.55, "{ended:#}");
        }
    }
}

#[test]
fn a_process_of_root_that_raises_its_own_limit_of_open_files_is_not_limited() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let raise = "import resource, sys, time\n\
                 try: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500)); print('raised')\n\
                 except ValueError: print('held')\n\
                 sys.stdout.flush(); time.sleep(0.6)\n";
    let output = command(&lab, &["--open-files", "20"], &["python3", "-c", raise]);
    if output.stdout == b"raised\n" {
        assert_not_limited(&ended(lab.path()), "open_files", "had raised its own limit to 500");
    }
    lab.write("raise.py", raise.replace("0.6", "1.5"));
    let outcome = lab.run(
        "nodes: {a: {open-files: 20, run: [sh, -c, 'python3 raise.py; sleep 1']}, b: {}}\n\
         links: [{between: [a, b]}]\n",
    );
    if outcome.output("a") == "raised\n" {
        let verdict = outcome.report()["verdict"]["unfaithful"].to_string();
        assert!(verdict.contains("had raised its own limit to 500"), "{}", outcome.describe());
    }
}

/// The first command of a group, which runs until its standard input is closed.
fn shared(lab: &Lab, name: &str) -> Option<(String, Child)> {
    let group = format!("{name}-{}", std::process::id());
    let words = ["limit", "--group", &group, "--cpu", "60%", "--out", "first.json", "--", "cat"];
    let mut first = lab.windtunnel(&words).stdin(Stdio::piped()).spawn().unwrap();
    let is_there =
        until("the first command runs, or is refused", || match first.try_wait().unwrap() {
            Some(_) => Some(false),
            None => listed(lab, &group).map(|_| true),
        });
    is_there.then_some((group, first))
}

/// What both commands say at their end.
fn both(lab: &Lab, mut first: Child) -> (Value, Value) {
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    let first = fs::read(lab.path().join("first.json")).unwrap();
    (serde_json::from_slice(&first).unwrap(), ended(lab.path()))
}

/// Has a child do something once there is a file, and lives on for some looks.
const PARENT: &str = "
import os, subprocess, sys, time
print(flush=True)
while not os.path.exists('go'): time.sleep(0.01)
subprocess.run([sys.executable, '-c', open('child.py').read(), sys.argv[1]])
time.sleep(0.8)
";

/// Computes as long, and stays where it is.
const BUSY: &str = "
import time
began = time.monotonic()
while time.monotonic() < began + 0.1: pass
";

#[test]
fn what_left_the_group_of_a_running_program_and_ended_is_not_limited() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for (child, failure) in [(brief(), Some(OUTSIDE)), (BUSY.to_owned(), None)] {
        lab.write("child.py", child);
        let mut program = python(&lab, PARENT, &["leave"]);
        let limiting = attach(&lab, &program, &["--cpu", "60%", "--memory", "1GB"]);
        lab.write("go", "");
        assert!(program.wait().unwrap().success());
        let (said, ended) = limiting.finish(&lab);
        fs::remove_file(lab.path().join("go")).unwrap();
        if !is_grouped(&ended, "cpu") {
            return;
        }
        match failure {
            Some(why) => assert_not_limited(&ended, "cpu", why),
            None => assert_eq!(ended["cpu"]["failure"], Value::Null, "{said}"),
        }
    }
}
