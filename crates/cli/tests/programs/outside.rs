//! Programs that are recorded outside any emulation, and static programs that others start.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;
use windtunnel_model::record::kind::{Call, RecordSource};
use windtunnel_model::record::{Kind, flag};

use super::record::{Read, read};
use super::support::{Lab, User, any_user, is_missing, is_root, missing, until};

/// What the server sends, headers included.
const ANSWER_BYTES: u64 = 100_000;

/// A server of one request on the machine's loopback: its port, and how many bytes it got.
fn server() -> (u16, JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            asked.extend(byte);
        }
        let mut answer = b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\n".to_vec();
        answer.resize(usize::try_from(ANSWER_BYTES).unwrap(), b'x');
        stream.write_all(&answer).unwrap();
        asked.len() as u64
    };
    (port, std::thread::spawn(serve))
}

fn summary(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("record.json")).unwrap()).unwrap()
}

/// Bytes that recorded calls have sent and received.
fn moved(read: &Read) -> (u64, u64) {
    let marks = [Call::Connect, Call::Accept, Call::Close, Call::Shutdown].map(|call| call as u16);
    let (mut sent, mut received) = (0, 0);
    for call in read.of(RecordSource::Calls, Kind::Call).filter(|call| !marks.contains(&call.extra))
    {
        let bytes = u64::try_from(call.args[2].cast_signed()).unwrap_or(0);
        if call.flags & flag::PEEK == 0 && call.flags & flag::REVERSE != 0 {
            received += bytes;
        } else if call.flags & flag::PEEK == 0 {
            sent += bytes;
        }
    }
    (sent, received)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Records a command that gets what the server has; its calls say how many bytes that were.
#[track_caller]
fn assert_recorded(lab: &Lab, command: &dyn Fn(u16) -> Vec<String>, code: i32) -> Read {
    let (port, served) = server();
    let words = command(port);
    let mut arguments = vec!["record", "-o", "out", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let output = lab.windtunnel(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    let asked = served.join().unwrap();
    let folder = lab.path().join("out");
    let (read, summary) = (read(&folder), summary(&folder));
    assert_eq!(moved(&read), (asked, ANSWER_BYTES), "{summary}");
    assert_eq!(summary["exit_code"], code);
    assert_eq!(summary["records"]["unseen"], Value::Null, "{summary}");
    assert!(stderr(&output).contains("; 0 lost; in out"), "{}", stderr(&output));
    // The server's sockets are not the command's.
    assert_eq!(read.of(RecordSource::Tcp, Kind::FlowSocket).count(), 1);
    assert!(read.of(RecordSource::Tcp, Kind::TcpProgress).count() > 0);
    read
}

fn curl(port: u16) -> Vec<String> {
    ["curl", "-s", "-o", "got", &format!("http://127.0.0.1:{port}/")].map(str::to_owned).into()
}

#[test]
fn the_calls_and_connections_of_a_command_are_recorded_on_the_machines_own_network() {
    if is_missing(&["curl"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let read = assert_recorded(&lab, &curl, 0);
        assert_eq!(read.headers[0].nodes, ["machine"]);
        let layers = &summary(&lab.path().join("out"))["records"];
        let has_kernel = layers["layers"]["kernel"]["records"].as_u64().unwrap_or(0) > 0;
        let reason = layers["unavailable"]["kernel"].as_str();
        assert_eq!(has_kernel, reason.is_none(), "{layers}");
        assert!(layers["unavailable"]["engine"].is_string(), "{layers}");
        for verb in [&["records", "stats", "out"][..], &["records", "show", "out"]] {
            assert!(lab.windtunnel(verb).output().unwrap().status.success(), "{verb:?}");
        }
        let explained = lab.windtunnel(&["explain", "out", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&explained.stdout).unwrap();
        for request in report["requests"].as_array().unwrap() {
            let parts = request["parts"].as_array().unwrap().iter();
            let sum: u64 = parts.map(|part| part["ns"].as_u64().unwrap()).sum();
            assert_eq!(request["duration_ns"], sum, "{request}");
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_static_program_is_recorded_by_itself_and_below_a_dynamic_one() {
    if is_missing(&["busybox"]) {
        return;
    }
    let wget = |port: u16| format!("busybox wget -q -O got http://127.0.0.1:{port}/");
    let alone = |port: u16| wget(port).split(' ').map(str::to_owned).collect();
    let below =
        |port: u16| ["sh", "-c", &format!("{}; exit 3", wget(port))].map(str::to_owned).into();
    for user in any_user() {
        assert_recorded(&Lab::new(user), &alone, 0);
        assert_recorded(&Lab::new(user), &below, 3);
    }
}

#[test]
fn a_static_program_below_a_shell_of_a_node_is_recorded() {
    if is_missing(&["busybox", "python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let outcome = lab.pass(
            "record: [calls, tcp]\n\
             nodes:\n\
             \x20 a: {run: \"sh -c 'until busybox wget -q -O /dev/null http://b:8000/; do sleep 0.05; done'\"}\n\
             \x20 b: {run: \"python3 -m http.server --bind ::\", daemon: true}\n\
             links: [{between: [a, b], latency: 1ms}]\n",
        );
        let read = read(&outcome.folder);
        let of_a = read.records.iter().filter(|(source, record)| {
            (source.layer, source.node) == (RecordSource::Calls as u8, 0)
                && record.kind == Kind::Call as u8
        });
        let sent = of_a.filter(|(_, call)| call.flags & flag::REVERSE == 0 && call.args[2] > 40);
        assert!(sent.count() > 0, "{}", outcome.report()["records"]);
        let unseen = outcome.report()["records"]["unseen"].to_string();
        assert!(!unseen.contains("static"), "{unseen}");
    }
}

#[test]
fn a_program_that_is_started_out_of_sight_is_named() {
    if is_missing(&["busybox", "python3"]) {
        return;
    }
    let lab = Lab::new(User::Invoker);
    let script = "import os; p = os.posix_spawnp('busybox', ['busybox', 'true'], os.environ); \
                  os.waitpid(p, 0)";
    let words = ["record", "-o", "out", "--", "python3", "-c", script];
    assert!(lab.windtunnel(&words).output().unwrap().status.success());
    let unseen = &summary(&lab.path().join("out"))["records"]["unseen"];
    assert_eq!(unseen[0], "python3: static_program");
}

#[test]
fn signals_reach_the_command_and_its_records_are_written() {
    for user in any_user() {
        let lab = Lab::new(user);
        let script = "trap 'exit 9' INT; echo ready; while :; do sleep 0.02; done";
        let mut command = lab.windtunnel(&["record", "-o", "out", "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(9));
        assert_eq!(summary(&lab.path().join("out"))["exit_code"], 9);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_command_that_is_not_there_leaves_no_folder() {
    let lab = Lab::new(User::Invoker);
    let output =
        lab.windtunnel(&["record", "-o", "out", "--", "no-such-program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
    assert!(!lab.path().join("out").exists());
}

#[test]
fn a_process_that_runs_is_recorded_by_root_and_refused_to_others_with_the_reason() {
    if is_missing(&["curl"]) {
        return;
    }
    if is_root() {
        let lab = Lab::new(User::Ordinary);
        let own = std::process::id().to_string();
        let output = lab.windtunnel(&["record", "--pid", &own]).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains("CAP_BPF") && text.contains("hint: run it as root"), "{text}");
    }
    let lab = Lab::new(User::Invoker);
    let (port, served) = server();
    let script = format!("read line; exec {}", curl(port).join(" "));
    let mut program = lab.command(&["sh", "-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let pid = program.id().to_string();
    let mut recorder = lab.windtunnel(&["record", "-o", "out", "--pid", &pid]).spawn().unwrap();
    let file = lab.path().join("out/records/0001.wtr");
    let ended = until("the recording", || match recorder.try_wait().unwrap() {
        Some(status) => Some(Some(status)),
        None => file.exists().then_some(None),
    });
    program.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(program.wait().unwrap().success());
    let asked = served.join().unwrap();
    if let Some(status) = ended {
        assert_eq!(status.code(), Some(4));
        return missing("CAP_BPF");
    }
    assert!(recorder.wait().unwrap().success());
    let read = read(&lab.path().join("out"));
    let sent = read
        .of(RecordSource::Kernel, Kind::KernelSend)
        .map(|it| u64::from(it.args[2]))
        .sum::<u64>();
    assert_eq!(sent, asked);
    assert_eq!(read.of(RecordSource::Tcp, Kind::FlowSocket).count(), 1);
}
