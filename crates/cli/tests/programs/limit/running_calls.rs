//! `limit --pid`: the calls of programs that run already, which install a filter without noticing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::super::clients::{build_go, go};
use super::super::support::{Lab, User, any_user, is_missing, until, users};
use super::CREDIT_MS;
use super::running::{attach, python, refused, signal, status};

/// Sends to a port until there is a file `end`.
const SENDER: &str = r#"
import os, socket, sys
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
while not os.path.exists("end"): stream.sendall(b"x" * 10000)
stream.close()
"#;

/// Receives from a port until nothing comes any more.
const RECEIVER: &str = r#"
import socket, sys
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print(flush=True)
while stream.recv(4096): pass
"#;

/// Takes all that comes on one connection: how much so far.
fn sink() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        while let Ok(got @ 1..) = stream.read(&mut buffer) {
            count.fetch_add(got as u64, Ordering::Relaxed);
        }
    });
    (port, taken)
}

/// Sends on one connection, as fast as it can, until a number of bytes.
fn source(bytes: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let piece = vec![b'x'; 1 << 16];
        // The program may have been ended.
        let mut left = bytes;
        while left > 0 && stream.write_all(&piece[..piece.len().min(left)]).is_ok() {
            left = left.saturating_sub(piece.len());
        }
    });
    port
}

/// So many more bytes come.
fn more(taken: &AtomicU64, bytes: u64) {
    let before = taken.load(Ordering::Relaxed);
    let now = || taken.load(Ordering::Relaxed);
    until("more bytes come", || (now() >= before + bytes).then_some(()));
}

/// A direction moved no faster than its limit, one call of so many bytes apart.
#[track_caller]
fn assert_rate(ended: &Value, direction: &str, call: u64) {
    let moved = &ended[direction];
    let word = |name: &str| moved[name].as_u64().unwrap_or_else(|| panic!("{name}: {ended}"));
    let rate = word("limit_bps") / 8;
    let allowed = u128::from(rate) * u128::from(word("duration_ns")) / 1_000_000_000;
    let slack = u128::from(rate * CREDIT_MS / 1000 + call);
    assert!(u128::from(word("bytes")) <= allowed + slack, "{ended}");
    assert!(word("waits") > 0, "{ended}");
    assert_eq!((&ended["escapes"], &ended["held"]["by_notification"]), (&0.into(), &1.into()));
}

#[test]
fn a_sender_falls_to_its_rate_and_a_change_of_it_and_ends_without_an_error() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let (port, taken) = sink();
        let mut program = python(&lab, SENDER, &[&port]);
        more(&taken, 1_000_000);
        let limiting = attach(&lab, &program, &["--send", "400KB/s"]);
        more(&taken, 300_000);
        let id = limiting.child.id().to_string();
        let set = lab.windtunnel(&["limit", "set", &id, "--send", "800KB/s"]).output().unwrap();
        assert!(set.status.success(), "{set:?}");
        more(&taken, 600_000);
        lab.write("end", "");
        assert!(program.wait().unwrap().success());
        let (said, ended) = limiting.finish(&lab);
        assert!(said.contains("1 processes, static or without it, by notification"), "{said}");
        assert_rate(&ended, "send", 10_000);
        assert_eq!((&ended["attached"], &ended["detached"]), (&1.into(), &false.into()));
        lab.assert_nothing_left();
    }
}

#[test]
fn a_receiver_falls_to_its_rate() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let port = source(200_000_000);
        let mut program = python(&lab, RECEIVER, &[&port]);
        let limiting = attach(&lab, &program, &["--receive", "1MB/s"]);
        until("it has received at its rate", || {
            let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
            let list: Value = serde_json::from_slice(&output.stdout).unwrap();
            let id = limiting.child.id().to_string();
            let all = list["limits"].as_array().unwrap().clone();
            let own = all.into_iter().find(|limit| limit["id"] == id.as_str())?;
            (own["receive"]["bytes"].as_u64()? > 500_000).then_some(())
        });
        program.kill().unwrap();
        program.wait().unwrap();
        let (_, ended) = limiting.finish(&lab);
        assert_rate(&ended, "receive", 10_000);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_of_go_falls_to_its_rate() {
    let Some(go) = go() else { return };
    let lab = Lab::new(users()[0]);
    build_go(&lab, &go, "move");
    for kind in ["stream", "datagrams"] {
        let words = ["./move", kind, "10000", "100000000"];
        let mut program = lab.command(&words).stderr(Stdio::piped()).spawn().unwrap();
        until("it computes", || {
            super::super::support::cpu_time_of(program.id()).filter(|it| *it > 0)
        });
        let limiting = attach(&lab, &program, &["--send", "400KB/s"]);
        until("it has sent at its rate", || {
            let output = lab.windtunnel(&["limit", "list"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let id = limiting.child.id().to_string();
            let line = text.lines().find(|line| line.starts_with(&id))?.to_owned();
            line.split_whitespace().nth(3)?.ends_with("MB").then_some(())
        });
        program.kill().unwrap();
        let mut said = String::new();
        program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        program.wait().unwrap();
        assert_eq!(said, "");
        let (_, ended) = limiting.finish(&lab);
        assert_rate(&ended, "send", 70_000);
    }
}

/// The program that looks at what its calls return; `None` where it cannot be built.
fn watchful(lab: &Lab, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/running.c");
    let program = lab.path().join("running");
    let mut build = Command::new("gcc");
    build.args(["-O2", "-pthread", "-o"]).arg(&program).args(options).arg(source);
    let built = build.output().unwrap();
    if !built.status.success() {
        // Such as without the static library.
        eprintln!("gcc {options:?}: {}", String::from_utf8_lossy(&built.stderr));
        return None;
    }
    Some(program)
}

/// How the limit of a program ends.
const ENDS: [&str; 3] = ["with the program", "INT", "KILL"];

#[test]
fn calls_of_all_kinds_go_on_as_if_nothing_had_happened() {
    if is_missing(&["gcc"]) {
        return;
    }
    for user in any_user() {
        for (options, how) in
            [&["-static"][..], &[]].into_iter().flat_map(|it| ENDS.map(|how| (it, how)))
        {
            let lab = Lab::new(user);
            let Some(_) = watchful(&lab, options) else { continue };
            let mut command = lab.command(&["./running", "end"]);
            let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
            program.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
            let mut limiting = attach(&lab, &program, &["--send", "2MB/s", "--receive", "2MB/s"]);
            until("calls are shown", || {
                let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
                let list: Value = serde_json::from_slice(&output.stdout).unwrap();
                let id = limiting.child.id().to_string();
                let all = list["limits"].as_array().unwrap().clone();
                let own = all.into_iter().find(|limit| limit["id"] == id.as_str())?;
                (own["send"]["bytes"].as_u64()? > 600_000).then_some(())
            });
            if how != ENDS[0] {
                limiting.signal(how);
                limiting.child.wait().unwrap();
            }
            lab.write("end", "");
            let mut said = String::new();
            program.stdout.as_mut().unwrap().read_to_string(&mut said).unwrap();
            assert!(program.wait().unwrap().success(), "{options:?} {how}");
            assert_eq!(said, "fine\n", "{options:?} {how}");
            limiting.child.wait().unwrap();
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn a_call_that_waits_for_hours_goes_on_when_the_limit_ends_in_whatever_way() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        for how in ["INT", "TERM", "KILL"] {
            let lab = Lab::new(user);
            let (port, taken) = sink();
            let mut program = python(&lab, SENDER, &[&port]);
            let mut limiting = attach(&lab, &program, &["--send", "1B/s"]);
            limiting.signal(how);
            limiting.child.wait().unwrap();
            // At the former rate that would take a year.
            more(&taken, 30_000_000);
            assert_eq!(status(program.id(), "Seccomp:").as_deref(), Some("2"), "a filter stays");
            lab.write("end", "");
            assert!(program.wait().unwrap().success());
            lab.assert_nothing_left();
        }
    }
}

/// Names a destination whenever there is a file, and prints the errno.
const DIALER: &str = r#"
import os, socket, time
print(flush=True)
for name in ("before", "meanwhile", "after"):
    while not os.path.exists(name): time.sleep(0.01)
    out = []
    for address in (("192.0.2.1", 9), ("127.0.0.1", 9)):
        try:
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", address)
            out.append(0)
        except OSError as error:
            out.append(error.errno)
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
        out.append(0)
    except OSError as error:
        out.append(error.errno)
    open(name + ".out", "w").write(" ".join(map(str, out)) + "\n")
"#;

fn dialed(lab: &Lab, name: &str) -> Vec<i32> {
    lab.write(name, "");
    let text = until("it has dialed", || {
        let text = std::fs::read_to_string(lab.path().join(format!("{name}.out"))).ok()?;
        text.ends_with('\n').then_some(text)
    });
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn a_program_reaches_the_networks_that_are_named_until_the_limit_ends() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        for rate in [&[][..], &["--send", "1GB/s"]] {
            let lab = Lab::new(user);
            let mut program = python(&lab, DIALER, &[]);
            let before = dialed(&lab, "before");
            let options = [&["--connect", "127.0.0.0/8"], rate].concat();
            let limiting = attach(&lab, &program, &options);
            // EACCES.
            assert_eq!(dialed(&lab, "meanwhile"), [13, 0, 13]);
            limiting.signal("INT");
            let (said, ended) = limiting.finish(&lab);
            assert!(said.contains("refused 1 call to connect or send elsewhere"), "{said}");
            assert_eq!(ended["refused"]["first"][0], "192.0.2.1:9");
            assert_eq!(dialed(&lab, "after"), before, "all is as before");
            assert!(program.wait().unwrap().success());
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn all_processes_of_a_tree_install_a_filter_and_those_that_are_made_later_have_it() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let script =
        "sleep 100 & sleep 100 & echo; while [ ! -e more ]; do sleep 0.01; done; exec sleep 100";
    let mut shell = lab.command(&["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let limiting = attach(&lab, &shell, &["--send", "1MB/s"]);
    lab.write("more", "");
    until("it is another program", || status(shell.id(), "Name:").filter(|name| name == "sleep"));
    assert_eq!(status(shell.id(), "Seccomp:").as_deref(), Some("2"));
    let seen = |shell: &Child| lab.processes().into_iter().filter(|it| *it != shell.id()).collect();
    let all: Vec<u32> = seen(&shell);
    let sleepers = all.into_iter().filter(|it| status(*it, "Name:").as_deref() == Some("sleep"));
    for sleeper in sleepers.collect::<Vec<_>>() {
        assert_eq!(status(sleeper, "Seccomp:").as_deref(), Some("2"));
        signal("KILL", sleeper);
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    let (_, ended) = limiting.finish(&lab);
    assert!(ended["attached"].as_u64() >= Some(3), "{ended}");
    lab.assert_nothing_left();
}

#[test]
fn a_program_that_makes_threads_all_the_time_has_its_filter_in_all_of_them() {
    if is_missing(&["python3"]) {
        return;
    }
    let threads = "import os, threading, time\n\
                   print(flush=True)\n\
                   while not os.path.exists('end'):\n\
                   \x20   new = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(20)]\n\
                   \x20   for thread in new: thread.start()\n\
                   \x20   for thread in new: thread.join()\n";
    for user in any_user() {
        let lab = Lab::new(user);
        let mut program = python(&lab, threads, &[]);
        let limiting = attach(&lab, &program, &["--send", "1MB/s"]);
        let folder = format!("/proc/{}/task", program.id());
        for thread in std::fs::read_dir(folder).unwrap().flatten() {
            let thread = thread.file_name().to_str().unwrap().parse().unwrap();
            // It may have ended.
            assert!(status(thread, "Seccomp:").is_none_or(|mode| mode == "2"));
        }
        lab.write("end", "");
        assert!(program.wait().unwrap().success());
        limiting.finish(&lab);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_program_that_cannot_install_a_filter_is_refused_and_stays_as_it_is() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let rings = "import ctypes\n\
                 libc = ctypes.CDLL(None)\n\
                 made = libc.syscall(425, 1, ctypes.create_string_buffer(120))\n\
                 print('x' if made >= 0 else 'no', flush=True)\n\
                 import time; time.sleep(100)\n";
    let traced = "import ctypes, os, sys, time\n\
                  child = os.fork()\n\
                  if child == 0: time.sleep(100)\n\
                  assert ctypes.CDLL(None).ptrace(0x4206, child, None, None) == 0\n\
                  open('traced', 'w').write(str(child))\n\
                  print(flush=True)\n\
                  time.sleep(100)\n";
    let filtered = "import ctypes, time\n\
                    libc = ctypes.CDLL(None)\n\
                    libc.prctl(38, 1, 0, 0, 0)\n\
                    allow = ctypes.create_string_buffer(b'\\x06\\0\\0\\0\\0\\0\\xff\\x7f', 8)\n\
                    class Program(ctypes.Structure):\n\
                    \x20   _fields_ = [('count', ctypes.c_ushort), ('at', ctypes.c_void_p)]\n\
                    program = Program(1, ctypes.addressof(allow))\n\
                    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0\n\
                    print(flush=True)\n\
                    time.sleep(100)\n";
    for (program, why) in [
        (rings, "it uses io_uring"),
        (traced, "traces it already"),
        (filtered, "it is under a filter (seccomp) already"),
    ] {
        let mut child = python(&lab, program, &[]);
        let before = status(child.id(), "Seccomp:");
        let said = refused(&lab, child.id(), &["--send", "1MB/s"], 4);
        assert!(said.contains(why), "{said}");
        assert!(said.contains("hint: "), "{said}");
        assert_eq!(status(child.id(), "Seccomp:"), before);
        assert!(status(child.id(), "State:").unwrap().starts_with('S'));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let traced: u32 = std::fs::read_to_string(lab.path().join("traced")).unwrap().parse().unwrap();
    signal("KILL", traced);
    lab.assert_nothing_left();
}

#[test]
fn a_program_that_is_not_dumpable_is_refused_to_its_user() {
    if is_missing(&["python3"]) || !users().contains(&User::Ordinary) {
        return;
    }
    let lab = Lab::new(User::Ordinary);
    let hidden = "import ctypes, time\n\
                  ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
                  print(flush=True)\n\
                  time.sleep(100)\n";
    let mut child = python(&lab, hidden, &[]);
    let said = refused(&lab, child.id(), &["--send", "1MB/s"], 4);
    assert!(said.contains("it may not be looked into: it has made itself not dumpable"), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_program_that_a_signal_has_stopped_installs_a_filter_and_stays_stopped() {
    let lab = Lab::new(users()[0]);
    let mut sleeper = lab.command(&["sleep", "100"]).spawn().unwrap();
    signal("STOP", sleeper.id());
    let is = |letter| status(sleeper.id(), "State:").is_some_and(|state| state.starts_with(letter));
    until("it is stopped", || is('T').then_some(()));
    let limiting = attach(&lab, &sleeper, &["--send", "1MB/s"]);
    assert_eq!(status(sleeper.id(), "Seccomp:").as_deref(), Some("2"));
    until("it is stopped still", || is('T').then_some(()));
    signal("CONT", sleeper.id());
    until("it goes on", || is('S').then_some(()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    limiting.finish(&lab);
    lab.assert_nothing_left();
}
