//! `limit`: programs on the machine's own loopback that move no more bytes than they may.
//!
//! What is asserted of a rate is its upper bound, which a busy machine cannot break: over the time
//! from the first byte to the last no more than the rate's bytes, those of the credit for idle time,
//! and one call. That programs wait for nothing else shows in the time that they waited: it is most
//! of the time that the rate asks for.

#[path = "limit/connect.rs"]
mod connect;
#[path = "limit/escapes.rs"]
mod escapes;
#[path = "limit/jobs.rs"]
mod jobs;
#[path = "limit/loops.rs"]
mod loops;
#[path = "limit/notified.rs"]
mod notified;
#[path = "limit/outside.rs"]
mod outside;
#[path = "limit/paths.rs"]
mod paths;
#[path = "limit/resources.rs"]
pub(crate) mod resources;
#[path = "limit/running.rs"]
mod running;
#[path = "limit/running_calls.rs"]
mod running_calls;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::free_port::free_port;
use super::support::{Lab, find_program, is_missing, until, users};

/// Bytes that idle time may lend: see `CREDIT_NS` of the budget.
const CREDIT_MS: u64 = 5;

/// A program in Python that sends messages to a thread of its own, by TCP or UDP, with a deadline
/// for nothing.
const STREAM: &str = r#"
import socket, sys, threading
size, count = int(sys.argv[1]), int(sys.argv[2])
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
got = []
def serve():
    stream, _ = listener.accept()
    total = 0
    while data := stream.recv(1 << 20):
        total += len(data)
    got.append(total)
server = threading.Thread(target=serve)
server.start()
stream = socket.create_connection(listener.getsockname())
for _ in range(count):
    stream.sendall(b"x" * size)
stream.close()
server.join()
assert got == [size * count], got
"#;

const DATAGRAMS: &str = r#"
import socket, sys
size, count = int(sys.argv[1]), int(sys.argv[2])
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
b.bind(("127.0.0.1", 0))
for _ in range(count):
    a.sendto(b"x" * size, b.getsockname())
    assert len(b.recv(65536)) == size
"#;

/// What a command under a limit says at its end.
#[track_caller]
fn limited(lab: &Lab, options: &[&str], words: &[&str]) -> Value {
    let arguments = [&["limit", "--out", "limit.json"], options, &["--"], words].concat();
    let output = lab.windtunnel(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ended(lab.path())
}

fn ended(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("limit.json")).unwrap()).unwrap()
}

/// A direction moved so many bytes, no faster than its limit, one call of so many apart; and waited
/// for the limit, not for something else.
#[track_caller]
fn assert_held(ended: &Value, direction: &str, bytes: u64, call: u64) {
    let moved = &ended[direction];
    let word = |name: &str| moved[name].as_u64().unwrap_or_else(|| panic!("{name}: {ended}"));
    assert_eq!(word("bytes"), bytes, "{ended}");
    assert_eq!(ended["escapes"], 0, "{ended}");
    let rate = word("limit_bps") / 8;
    let slack = rate * CREDIT_MS / 1000 + call;
    let allowed = u128::from(rate) * u128::from(word("duration_ns")) / 1_000_000_000;
    assert!(u128::from(bytes) <= allowed + u128::from(slack), "{ended}");
    assert!(word("waits") > 0, "{ended}");
}

fn python<'a>(program: &'a str, size: &'a str, count: &'a str) -> [&'a str; 5] {
    ["python3", "-c", program, size, count]
}

#[test]
fn a_program_in_python_sends_and_receives_no_faster_than_its_limit() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let words = python(STREAM, "1000", "300");
        let ended = limited(&lab, &["--send", "1MB/s"], &words);
        assert_held(&ended, "send", 300_000, 1_000);
        let ended = limited(&lab, &["--receive", "1MB/s"], &words);
        assert_held(&ended, "receive", 300_000, 5_000);
        lab.assert_nothing_left();
    }
}

#[test]
fn messages_of_128_kb_get_100_mb_a_second_and_not_more() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let ended = limited(&lab, &["--send", "100MB/s"], &python(STREAM, "131072", "400"));
    assert_held(&ended, "send", 131_072 * 400, 500_000);
}

#[test]
fn messages_of_any_size_are_held_to_any_rate() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for (rate, size, count) in
        [("1KB/s", "100", "5"), ("100KB/s", "1024", "40"), ("8800KB/s", "10240", "200")]
    {
        let ended = limited(&lab, &["--send", rate], &python(STREAM, size, count));
        let (size, count): (u64, u64) = (size.parse().unwrap(), count.parse().unwrap());
        assert_held(&ended, "send", size * count, size.max(44_000));
    }
}

#[test]
fn datagrams_are_limited_in_both_directions() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for direction in ["send", "receive"] {
        let option = format!("--{direction}");
        let ended = limited(&lab, &[&option, "1MB/s"], &python(DATAGRAMS, "1000", "200"));
        assert_held(&ended, direction, 200_000, 1_000);
    }
}

#[test]
fn children_share_the_budget_of_the_tree_and_processes_and_sockets_may_have_their_own() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("stream.py", STREAM);
    let two = "python3 stream.py 1000 150 & python3 stream.py 1000 150; wait";
    let words = ["sh", "-c", two];
    let ended = limited(&lab, &["--send", "1MB/s"], &words);
    assert_held(&ended, "send", 300_000, 2_000);
    for per in ["process", "socket"] {
        let ended = limited(&lab, &["--send", "1MB/s", "--per", per], &words);
        assert_eq!((&ended["per"], &ended["send"]["bytes"]), (&per.into(), &300_000.into()));
        // Each has half of the bytes at the whole rate: it waits for half of the time.
        let waited = ended["send"]["waited_ns"].as_u64().unwrap();
        assert!(waited > 0, "{ended}");
    }
}

#[test]
fn a_group_is_shared_by_commands_and_changed_while_they_run() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        lab.write("stream.py", STREAM);
        // Others may run this test at the same time.
        let group = format!("tests-{}", std::process::id());
        let group = group.as_str();
        let arguments = ["limit", "--group", group, "--send", "10KB/s", "--out", "limit.json"];
        let words = ["--", "python3", "stream.py", "1000", "2000"];
        let mut first = lab.windtunnel(&[&arguments[..], &words].concat()).spawn().unwrap();
        let listed = || {
            let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
            let list: Value = serde_json::from_slice(&output.stdout).unwrap();
            let mut limits = list["limits"].as_array().unwrap().clone().into_iter();
            limits.find(|limit| limit["id"] == group)
        };
        until("the group moves bytes", || {
            listed().filter(|limit| limit["send"]["waits"].as_u64() > Some(0))
        });
        let ended = limited(&lab, &["--group", group], &["python3", "stream.py", "1000", "3"]);
        assert_eq!((&ended["id"], &ended["send"]["limit_bps"]), (&group.into(), &80_000.into()));
        // At the rate that it began with the rest would take more than three minutes.
        let set = ["limit", "set", group, "--send", "100MB/s"];
        assert!(lab.windtunnel(&set).output().unwrap().status.success());
        assert!(first.wait().unwrap().success());
        assert!(ended_in(&lab)["send"]["bytes"].as_u64() >= Some(2_003_000));
        assert_eq!(listed(), None);
        let output = lab.windtunnel(&set).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}

fn ended_in(lab: &Lab) -> Value {
    ended(lab.path())
}

#[test]
fn the_code_of_the_command_is_kept_and_what_cannot_be_limited_is_said() {
    let lab = Lab::new(users()[0]);
    let run = |words: &[&str]| {
        let output = lab.windtunnel(&[&["limit", "--send", "1MB/s", "--"], words].concat());
        let output = { output }.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&["sh", "-c", "exit 7"]).0, Some(7));
    assert_eq!(run(&["sh", "-c", "kill -9 $$"]).0, Some(137));
    assert_eq!(run(&["no-such-program"]).0, Some(127));
    if is_missing(&["busybox"]) {
        return;
    }
    // A program that is given none of the variables has them.
    let (code, said) = run(&["env", "-i", "/bin/true"]);
    assert_eq!((code, said.contains("by notification")), (Some(0), false), "{said}");
    // Programs that the library cannot enter.
    for words in [&["busybox", "true"][..], &["sh", "-c", "busybox true"]] {
        let (code, said) = run(words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        assert!(said.contains("1 processes, static or without it, by notification"), "{said}");
        assert!(!said.contains("NOT LIMITED"), "{words:?}: {said}");
    }
    // One that another process is made for at once.
    if is_missing(&["python3"]) {
        return;
    }
    let program = find_program("busybox").unwrap();
    let spawn = format!("import os; os.posix_spawn({program:?}, ['busybox', 'true'], os.environ)");
    let (code, said) = run(&["python3", "-c", &spawn]);
    assert_eq!((code, said.contains("NOT LIMITED: 1 static programs")), (Some(0), true), "{said}");
}

#[test]
fn io_uring_is_refused_as_by_a_kernel_without_it() {
    if is_missing(&["python3"]) {
        return;
    }
    const SETUP: &str = "import ctypes\n\
                         libc = ctypes.CDLL(None, use_errno=True)\n\
                         assert libc.syscall(425, 1, None) == -1\n\
                         assert ctypes.get_errno() == 38, ctypes.get_errno()\n";
    for user in users() {
        limited(&Lab::new(user), &["--send", "1MB/s"], &["python3", "-c", SETUP]);
    }
}

/// A program that watches by edges, and takes a short call as the sign that no more is to be had.
const EDGES: &str = r#"
import select, socket
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
a = socket.create_connection(listener.getsockname())
b, _ = listener.accept()
TOTAL = 400_000
left, got = TOTAL, 0
poll = select.epoll()
for stream, events in ((a, select.EPOLLOUT), (b, select.EPOLLIN)):
    stream.setblocking(False)
    poll.register(stream, events | select.EPOLLET)
while got < TOTAL:
    events = poll.poll()
    for fd, _ in events:
        if fd == a.fileno():
            asked = min(left, 100_000)
            while asked:
                try:
                    sent = a.send(b"x" * asked)
                except BlockingIOError:
                    break
                left -= sent
                if sent < asked:
                    break
                asked = min(left, 100_000)
        else:
            while True:
                try:
                    data = b.recv(65536)
                except BlockingIOError:
                    break
                got += len(data)
                if len(data) < 65536:
                    break
"#;

#[test]
fn a_loop_that_watches_by_edges_gets_on() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for direction in ["send", "receive"] {
        let option = format!("--{direction}");
        let ended = limited(&lab, &[&option, "1MB/s"], &["python3", "-c", EDGES]);
        assert_held(&ended, direction, 400_000, 5_000);
    }
}

/// A handler without `SA_RESTART` ends a wait, one with it does not; and a timeout of the socket is
/// kept.
const SIGNALS: &str = r#"
import ctypes, errno, signal, socket, struct
signal.signal(signal.SIGINT, signal.SIG_DFL)
libc = ctypes.CDLL(None, use_errno=True)
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
b.bind(("127.0.0.1", 0))
a.connect(b.getsockname())
def send():
    ctypes.set_errno(0)
    return libc.send(a.fileno(), b"x" * 100, 100, 0), ctypes.get_errno()
assert send() == (100, 0)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.05)
assert send() == (100, 0)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.01)
assert send() == (-1, errno.EINTR)
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 1000))
assert send() == (-1, errno.EAGAIN)
"#;

#[test]
fn signals_and_timeouts_end_a_wait_as_they_end_one_of_the_kernel() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let ended = limited(&lab, &["--send", "300B/s"], &["python3", "-c", SIGNALS]);
    assert_eq!(ended["send"]["bytes"], 200, "{ended}");
}

#[test]
fn nginx_and_its_clients_are_held_to_their_limits() {
    if is_missing(&["nginx", "curl"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let port = free_port();
    lab.folder("www");
    lab.write("www/file", vec![b'x'; 1_000_000]);
    let folder = lab.path().display();
    let config = format!(
        "daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n\
         events {{}}\n\
         http {{ access_log off; sendfile on;\n\
         client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         server {{ listen unix:{folder}/socket; listen 127.0.0.1:{port}; root {folder}/www; }} }}\n"
    );
    lab.write("nginx.conf", config);
    let script = format!(
        "nginx -c $PWD/nginx.conf 2> /dev/null & server=$!\n\
                  until [ -S socket ]; do sleep 0.01; done\n\
                  curl -s -o 1 http://127.0.0.1:{port}/file & first=$!\n\
                  curl -s -o 2 http://127.0.0.1:{port}/file\n\
                  wait $first; kill $server; wait $server; wc -c < 1; wc -c < 2"
    );
    let arguments = ["limit", "--out", "limit.json", "--send", "2MB/s", "--", "sh", "-c", &script];
    let output = lab.windtunnel(&arguments).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1000000\n1000000\n", "{said}");
    let ended = ended(lab.path());
    let bytes = ended["send"]["bytes"].as_u64().unwrap();
    assert!(bytes > 2_000_000, "{ended}");
    assert_held(&ended, "send", bytes, 50_000);
}
