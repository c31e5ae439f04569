//! Processor time, memory, processes and descriptors of a command and all that it starts.
//!
//! Asserted of a share is its upper bound, which a busy machine cannot break, against the time that
//! the programs themselves have measured.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::super::support::{Lab, is_missing, missing, until, users};
use super::ended;

/// Computes in some processes, each in two threads, and prints the processor time of all and how long
/// that took.
const BURN: &str = r#"
import os, sys, threading, time
seconds, count = float(sys.argv[1]), int(sys.argv[2])
began = time.monotonic()
def burn():
    while time.monotonic() < began + seconds:
        pass
children = []
for _ in range(count):
    child = os.fork()
    if child == 0:
        other = threading.Thread(target=burn)
        other.start()
        burn()
        other.join()
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
times = os.times()
print(sum(times[:4]), time.monotonic() - began, flush=True)
"#;

pub(super) fn command(lab: &Lab, options: &[&str], words: &[&str]) -> Output {
    let arguments = [&["limit", "--out", "limit.json"], options, &["--"], words].concat();
    lab.windtunnel(&arguments).output().unwrap()
}

pub(super) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn all_processes_and_threads_of_a_command_share_its_processor_time() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let output = command(&lab, &["--cpu", "30%"], &["python3", "-c", BURN, "2", "3"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let measured: Vec<f64> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
        let (used, elapsed) = (measured[0], measured[1]);
        // A tick of the kernel's clock on each of two processors, and what stops come late.
        assert!(used <= 0.3 * elapsed * 1.05 + 0.05, "{used} s in {elapsed} s: {}", said(&output));
        let cpu = &ended(lab.path())["cpu"];
        assert_eq!(cpu["asked_cpus"], 0.3);
        assert!((number(&cpu["used_ns"]) / 1e9 - used).abs() < 0.2, "{cpu} {used}");
        assert!(number(&cpu["throttled_ns"]) > 0.0, "{cpu}");
        let mechanism = cpu["mechanism"].as_str().unwrap();
        assert!(["cgroup v1", "cgroup v2", "duty cycle"].contains(&mechanism), "{mechanism}");
        assert!(said(&output).contains(&format!("({mechanism})")), "{}", said(&output));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_takes_more_memory_ends_and_the_one_that_started_it_goes_on() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let eat =
            "python3 -c 'import time; x = bytearray(300 << 20); time.sleep(60)'; echo ended $?";
        let output = command(&lab, &["--memory", "100MB"], &["sh", "-c", eat]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ended 137\n", "{output:?}");
        let memory = &ended(lab.path())["memory"];
        assert_eq!((&memory["asked"], number(&memory["ended"])), (&100_000_000.into(), 1.0));
        assert!(said(&output).contains("a process was ended 1 time"), "{}", said(&output));
        // What was taken between two looks of a watch was not limited.
        let is_over = number(&memory["peak"]) > 1e8 && memory["mechanism"] == "watch";
        assert_eq!(memory["failure"].is_string(), is_over, "{memory}");
        assert_eq!(said(&output).contains("NOT LIMITED: memory"), is_over, "{}", said(&output));
    }
}

#[test]
fn a_fork_bomb_stays_at_its_number_of_processes() {
    for user in users() {
        let lab = Lab::new(user);
        // It ends itself: each process lives for a second at the most.
        let bomb = "for i in 1 2 3 4 5 6; do sh -c 'sleep 1' & done; \
                    for i in 1 2 3 4 5 6; do sleep 1 & done; wait; exit 0";
        let output = command(&lab, &["--pids", "6"], &["sh", "-c", bomb]);
        let pids = &ended(lab.path())["pids"];
        assert!(number(&pids["met"]) > 0.0, "{pids} {output:?}");
        // A watch sees a few more for a moment, and ends them.
        let is_watched = pids["mechanism"] == "watch";
        assert!(number(&pids["peak"]) <= 6.0 || is_watched, "{pids}");
        assert!(!is_watched || number(&pids["ended"]) > 0.0, "{pids}");
    }
}

#[test]
fn a_process_opens_no_more_files_than_it_may() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let open = "held = []\ntry:\n    while True: held.append(open('/dev/null'))\n\
                except OSError as error: print(max(it.fileno() for it in held), error.errno)";
    let output = command(&lab, &["--open-files", "20"], &["python3", "-c", open]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "19 24\n", "{output:?}");
    assert_eq!(ended(lab.path())["open_files"]["mechanism"], "rlimit");
}

/// What a program of root does to get around its control group: it leaves it, for that at the top, or
/// lifts its quota. It prints whether it could, and computes for a second.
pub(crate) const ESCAPE: &str = r#"
import os, sys, time
def groups():
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        if "/windtunnel-" in path:
            for mount in ["unified", ""] if not controllers else [controllers, controllers.split(",")[0]]:
                root = os.path.join("/sys/fs/cgroup", mount)
                if os.path.exists(root + path + "/cgroup.procs"):
                    yield root, path
                    break
def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
        return True
    except OSError:
        return False
if sys.argv[1] == "leave":
    done = [write(root + "/cgroup.procs", "0") for root, _ in list(groups())]
else:
    lifts = [("cpu.cfs_quota_us", "-1"), ("cpu.max", "max"), ("memory.max", "max"),
             ("memory.limit_in_bytes", "900000000"), ("pids.max", "max")]
    done = [write(root + path + "/" + name, text) for root, path in groups()
            for name, text in lifts if os.path.exists(root + path + "/" + name)]
print("escaped" if any(done) else "held", flush=True)
began = time.monotonic()
while time.monotonic() < began + 1.5:
    pass
"#;

#[test]
fn what_leaves_its_group_or_lifts_its_limits_is_held_again_and_named_not_limited() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let options = ["--cpu", "10%", "--memory", "200MB", "--pids", "50"];
    for (way, why) in [
        ("leave", "(python3) had left its control group, and was put back"),
        ("lift", "changed to"),
    ] {
        let output = command(&lab, &options, &["python3", "-c", ESCAPE, way]);
        assert!(output.status.success(), "{output:?}");
        let ended = ended(lab.path());
        let has_escaped = output.stdout.starts_with(b"escaped");
        // Version 1 allows no more memory than memory with swap: that cannot be lifted by itself.
        let limits = if way == "lift" { &["cpu", "pids"][..] } else { &["cpu", "memory", "pids"] };
        for what in limits.iter().copied() {
            if !ended[what]["mechanism"].as_str().unwrap().starts_with("cgroup") {
                continue;
            }
            assert!(has_escaped, "root may write to its groups");
            let failure = ended[what]["failure"].as_str().unwrap_or_else(|| panic!("{ended:#}"));
            assert!(failure.contains(why), "{failure}");
            let line = format!("NOT LIMITED: {what}: ");
            assert!(said(&output).contains(&line), "{}", said(&output));
        }
    }
    lab.assert_nothing_left();
}

/// A group of version 1 with a quota of 20 %, as a container has one, where that can be made.
struct Container(std::path::PathBuf);

impl Container {
    fn make(name: &str) -> Option<Container> {
        let root = std::path::Path::new("/sys/fs/cgroup/cpu");
        let folder = root.join(format!("{name}-{}", std::process::id()));
        if !root.join("cgroup.procs").exists() || std::fs::create_dir(&folder).is_err() {
            return None;
        }
        let container = Container(folder);
        std::fs::write(container.0.join("cpu.cfs_quota_us"), "20000").ok()?;
        Some(container)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_share_of_more_than_a_container_has_is_what_the_container_has_and_says_so() {
    let Some(container) = Container::make("a-test-of-windtunnel") else {
        missing("a control group of version 1 with a quota");
        return;
    };
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", container.0.display());
    let limit = ["limit", "--out", "limit.json", "--cpu", "60%", "--"];
    let words = [&limit[..], &["python3", "-c", BURN, "1", "1"]].concat();
    let output = lab.windtunnel_behind(&["sh", "-c", &enter, "sh"], &words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let cpu = &ended(lab.path())["cpu"];
    assert_eq!((&cpu["asked_cpus"], &cpu["around_cpus"]), (&0.6.into(), &0.2.into()), "{cpu}");
    let expected = "of 60%, 20% at most by the control groups around it, ";
    assert!(said(&output).contains(expected), "{}", said(&output));
}

/// A command under a share that computes until it is killed.
fn burner(lab: &Lab, options: &[&str]) -> Child {
    let words = ["--", "sh", "-c", "while :; do :; done"];
    let arguments = [&["limit", "--out", "limit.json"], options, &words].concat();
    lab.windtunnel(&arguments).stdout(Stdio::null()).spawn().unwrap()
}

pub(super) fn listed(lab: &Lab, id: &str) -> Option<Value> {
    let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    list["limits"].as_array().unwrap().iter().find(|limit| limit["id"] == id).cloned()
}

/// The number of the windtunnel that runs a command: a wrapper may have started it.
fn id_of(lab: &Lab) -> String {
    until("a limit is listed", || {
        let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).ok()?;
        let limits = list["limits"].as_array()?;
        // Tests beside this one have others.
        let own = limits.iter().find(|limit| limit["cpu"]["asked_cpus"] == OWN_SHARE);
        Some(own?["id"].as_str()?.to_owned())
    })
}

/// A share that no other test asks.
const OWN_SHARE: f64 = 0.117;

#[test]
fn a_share_is_changed_while_the_command_runs_and_what_is_not_limited_stays_so() {
    for user in users() {
        let lab = Lab::new(user);
        let mut child = burner(&lab, &["--cpu", "11.7%"]);
        let id = id_of(&lab);
        let set = |words: &[&str]| {
            let output =
                lab.windtunnel(&[&["limit", "set", &id], words].concat()).output().unwrap();
            (output.status.code(), said(&output))
        };
        assert_eq!(set(&["--cpu", "20%"]).0, Some(0));
        let cpu = listed(&lab, &id).unwrap()["cpu"].clone();
        assert_eq!(cpu["asked_cpus"], 0.2);
        for (words, missing) in [(["--memory", "1GB"], "--memory"), (["--send", "1MB/s"], "--send")]
        {
            let (code, why) = set(&words);
            assert_eq!((code, why.contains("was started without")), (Some(2), true), "{why}");
            assert!(why.contains(missing), "{why}");
        }
        signal("INT", &id);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(ended(lab.path())["cpu"]["asked_cpus"], 0.2);
        assert_eq!(listed(&lab, &id), None);
    }
}

#[test]
fn programs_go_on_when_the_process_that_holds_them_is_killed() {
    for user in users() {
        let lab = Lab::new(user);
        let mut child = burner(&lab, &["--cpu", "11.7%"]);
        let id = id_of(&lab);
        let program = until("the command runs", || {
            let list = format!("/proc/{id}/task/{id}/children");
            let children = std::fs::read_to_string(list).ok()?;
            let mut all = children.split_whitespace().map(str::to_owned);
            all.find(|child| comm(child).as_deref() == Some("sh"))
        });
        signal("KILL", &id);
        let _ = child.wait();
        // A quota stays that of the group; what was stopped goes on.
        until("the command goes on", || {
            let state = state(&program)?;
            (state != 'T').then_some(())
        });
        signal("KILL", &program);
        until("the command ends", || state(&program).is_none_or(|it| it == 'Z').then_some(()));
        assert_eq!(listed(&lab, &id), None);
    }
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args(["-s", name, process]).status().unwrap().success());
}

fn comm(process: &str) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim().to_owned())
}

fn state(process: &str) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn commands_of_a_group_share_its_processor_time_where_there_are_control_groups() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let group = format!("cpu-{}-{}", std::process::id(), user.number());
        let options = ["--group", &group, "--cpu", "40%"];
        let words = ["limit", "--group", &group, "--cpu", "40%", "--", "python3", "-c", BURN];
        let first = lab.windtunnel(&[&words[..], &["3", "1"]].concat());
        let first = { first }.stdout(Stdio::piped()).spawn().unwrap();
        let has_groups = until("the first command runs, or is refused", || {
            let output = command(&lab, &options, &["true"]);
            match output.status.code() {
                Some(4) => Some(false),
                _ => listed(&lab, &group).map(|_| true),
            }
        });
        if !has_groups {
            let output = command(&lab, &options, &["true"]);
            assert!(said(&output).contains("cpu of a group needs control groups"), "{output:?}");
            continue;
        }
        let second = command(&lab, &["--group", &group], &["python3", "-c", BURN, "1", "1"]);
        let first = first.wait_with_output().unwrap();
        let used = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().next().unwrap().parse::<f64>().unwrap()
        };
        let (one, two) = (used(&first), used(&second));
        // The first ran for three seconds and a moment.
        assert!(one + two < 0.4 * 3.3 * 1.05 + 0.1, "{one} s and {two} s");
        assert_eq!(ended(lab.path())["cpu"]["asked_cpus"], 0.4);
        let output = command(&lab, &["--group", &group, "--memory", "1GB"], &["true"]);
        assert!(output.status.success(), "a new group: {output:?}");
    }
}
