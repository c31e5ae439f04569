//! `limit --pid`: what a program that runs already may use of the machine, and which programs cannot
//! be limited.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::super::support::{Lab, User, cpu_time_of, is_missing, is_root, until, users};
use super::ended;

/// A windtunnel that limits a program which runs already.
pub(super) struct Limiting {
    pub(super) child: Child,
    said: BufReader<ChildStderr>,
}

/// Begins, and waits until all is limited.
#[track_caller]
pub(super) fn attach(lab: &Lab, program: &Child, options: &[&str]) -> Limiting {
    let pid = program.id().to_string();
    let arguments = [&["limit", "--pid", &pid, "--out", "limit.json"], options].concat();
    let mut command = lab.windtunnel(&arguments);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains(&format!("process {pid} is limited")), "{line}");
    Limiting { child, said }
}

impl Limiting {
    /// Waits for its end, which is good. What it has said, and written.
    #[track_caller]
    pub(super) fn finish(mut self, lab: &Lab) -> (String, Value) {
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{said}");
        (said, ended(lab.path()))
    }

    pub(super) fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }
}

pub(super) fn signal(name: &str, process: u32) {
    let process = process.to_string();
    assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
}

/// What windtunnel says to a program that cannot be limited.
#[track_caller]
pub(super) fn refused(lab: &Lab, pid: u32, options: &[&str], code: i32) -> String {
    let pid = pid.to_string();
    let arguments = [&["limit", "--pid", &pid], options].concat();
    let output = lab.windtunnel(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// A line of proc_pid_status(5).
pub(super) fn status(process: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

/// A program in Python, which has said that it is ready.
pub(super) fn python(lab: &Lab, program: &str, arguments: &[&str]) -> Child {
    let words = [&["python3", "-c", program], arguments].concat();
    let mut child = lab.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

const BURN: &str = "print(flush=True)\nwhile True: pass\n";

/// Computes in a child, and once there is a file `more` in another one.
const TREE: &str = r#"
import os, signal, sys, time
def burn():
    child = os.fork()
    if child == 0:
        while True: pass
    return child
children = [burn()]
print(flush=True)
while not os.path.exists("more"): time.sleep(0.01)
children.append(burn())
open("children", "w").write(" ".join(map(str, children)) + "\n")
while not os.path.exists("end"): time.sleep(0.01)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"#;

/// Processes together used no more than a share of a processor since they were looked at before.
#[track_caller]
fn assert_share(processes: &[u32], share: f64) {
    let used = || processes.iter().map(|it| cpu_time_of(*it).unwrap()).sum::<u64>() as f64 / 1e9;
    let (began, before) = (Instant::now(), used());
    until("some processor time is used", || (used() > before + 0.4).then_some(()));
    let (used, elapsed) = (used() - before, began.elapsed().as_secs_f64());
    // A tick of the kernel's clock on each of two processors, and what stops come late.
    assert!(used <= share * elapsed * 1.05 + 0.05, "{used} s in {elapsed} s");
}

/// Nothing limits a process any more.
#[track_caller]
fn assert_free(process: u32) {
    until("the process leaves its group and goes on", || {
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
        let runs = status(process, "State:").is_some_and(|state| !state.starts_with(['T', 't']));
        (!groups.contains("/windtunnel-") && runs).then_some(())
    });
}

fn open_files(process: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().to_owned()
}

#[test]
fn a_busy_program_is_held_to_its_share_and_is_as_before_after_ctrl_c() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let program = python(&lab, BURN, &[]);
        let before = open_files(program.id());
        let options = ["--cpu", "25%", "--memory", "500MB", "--pids", "50", "--open-files", "64"];
        let limiting = attach(&lab, &program, &options);
        assert_share(&[program.id()], 0.25);
        assert_eq!(open_files(program.id()), "64");
        limiting.signal("INT");
        let (said, ended) = limiting.finish(&lab);
        assert!(said.contains("run on without a limit"), "{said}");
        assert_eq!((&ended["pid"], &ended["detached"]), (&program.id().into(), &true.into()));
        let cpu = &ended["cpu"];
        let mechanism = cpu["mechanism"].as_str().unwrap();
        assert!(["cgroup v1", "cgroup v2", "duty cycle"].contains(&mechanism), "{mechanism}");
        assert!(cpu["delivered_cpus"].as_f64().unwrap() < 0.3, "{cpu}");
        assert_eq!(open_files(program.id()), before);
        assert_free(program.id());
        end(program);
        lab.assert_nothing_left();
    }
}

#[test]
fn children_that_a_program_has_and_those_that_it_makes_later_share_its_share() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let program = python(&lab, TREE, &[]);
        let limiting = attach(&lab, &program, &["--cpu", "30%", "--open-files", "64"]);
        lab.write("more", "");
        let children = until("there is another child", || {
            let text = fs::read_to_string(lab.path().join("children")).ok()?;
            text.ends_with('\n').then_some(text)
        });
        let children: Vec<u32> =
            children.split_whitespace().map(|it| it.parse().unwrap()).collect();
        assert_share(&children, 0.3);
        for child in children {
            assert_eq!(open_files(child), "64");
        }
        lab.write("end", "");
        // It ends with the last process.
        let (_, ended) = limiting.finish(&lab);
        assert_eq!(ended["detached"], false);
        assert!(ended["cpu"]["delivered_cpus"].as_f64().unwrap() < 0.35, "{ended}");
        assert!({ program }.wait().unwrap().success());
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_takes_more_memory_than_its_limit_is_ended() {
    if is_missing(&["python3"]) {
        return;
    }
    const EAT: &str = "import os, time\n\
                       had = b'x' * (60 << 20)\n\
                       print(flush=True)\n\
                       while not os.path.exists('more'): time.sleep(0.01)\n\
                       more = b'x' * (300 << 20)\n\
                       time.sleep(60)\n";
    for user in users() {
        let lab = Lab::new(user);
        let mut program = python(&lab, EAT, &[]);
        let said = refused(&lab, program.id(), &["--memory", "50MB"], 4);
        assert!(said.contains("bytes of memory already, more than 50000000"), "{said}");
        let limiting = attach(&lab, &program, &["--memory", "150MB"]);
        lab.write("more", "");
        program.wait().unwrap();
        let (said, ended) = limiting.finish(&lab);
        // Where it may map no more, Python says so and ends.
        let memory = &ended["memory"];
        assert!(memory["peak"].as_u64().unwrap() < 200_000_000, "{memory} {said}");
        assert!(memory["mechanism"].as_str().unwrap().contains("watch"), "{memory}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_makes_no_more_processes_than_it_may() {
    for user in users() {
        let lab = Lab::new(user);
        let bomb = "echo; while [ ! -e more ]; do sleep 0.01; done\n\
                    for i in 1 2 3 4 5 6 7 8; do sleep 1 & done 2>/dev/null; wait; exit 0";
        let mut shell = lab.command(&["sh", "-c", bomb]).stdout(Stdio::piped()).spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let limiting = attach(&lab, &shell, &["--pids", "5"]);
        lab.write("more", "");
        shell.wait().unwrap();
        let (_, ended) = limiting.finish(&lab);
        assert!(ended["pids"]["met"].as_u64() > Some(0), "{ended}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_is_as_before_when_the_windtunnel_that_limits_it_is_killed() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let program = python(&lab, BURN, &[]);
        let before = open_files(program.id());
        let mut limiting = attach(&lab, &program, &["--cpu", "10%", "--open-files", "64"]);
        limiting.signal("KILL");
        limiting.child.wait().unwrap();
        until("its limits are lifted", || (open_files(program.id()) == before).then_some(()));
        assert_free(program.id());
        end(program);
        lab.assert_nothing_left();
    }
}

#[test]
fn what_is_no_program_that_can_be_limited_is_refused_with_the_reason() {
    let lab = Lab::new(users()[0]);
    let mut gone = lab.command(&["true"]).spawn().unwrap();
    gone.wait().unwrap();
    for (pid, why) in [
        (gone.id(), "there is none"),
        (1, "it is the first of all"),
        (std::process::id(), "this windtunnel is below it"),
    ] {
        let said = refused(&lab, pid, &["--cpu", "50%"], 2);
        assert!(said.contains(why), "{said}");
    }
    if let Some(thread) = status(2, "Kthread:").filter(|it| it == "1").map(|_| 2) {
        let said = refused(&lab, thread, &["--cpu", "50%"], 2);
        assert!(said.contains("a part of the kernel"), "{said}");
    }
    let sleeper = lab.command(&["sleep", "100"]).spawn().unwrap();
    let said = refused(&lab, sleeper.id(), &["--deny-path", "/tmp"], 2);
    assert!(said.contains("cannot deny paths to a program that runs"), "{said}");
    assert!(refused(&lab, sleeper.id(), &["--cpu", "50%", "--", "true"], 2).contains("--pid"));
    assert!(refused(&lab, sleeper.id(), &[], 2).contains("nothing is limited"));
    let said = refused(&lab, sleeper.id(), &["--group", "x", "--cpu", "50%"], 2);
    assert!(said.contains("which a program that runs cannot enter"), "{said}");
    end(sleeper);
}

#[test]
fn a_program_of_another_user_is_refused_to_an_ordinary_one() {
    if !is_root() || !users().contains(&User::Ordinary) {
        return;
    }
    let lab = Lab::new(User::Ordinary);
    let sleeper = Command::new("sleep").arg("100").spawn().unwrap();
    for options in [["--send", "1MB/s"], ["--cpu", "50%"], ["--open-files", "64"]] {
        let said = refused(&lab, sleeper.id(), &options, 4);
        assert!(said.contains("it is another user's"), "{said}");
        assert_eq!(status(sleeper.id(), "Seccomp:").as_deref(), Some("0"));
    }
    end(sleeper);
}
