//! Programs that the library cannot enter: static ones, those of Go, and those that are started
//! without the library. Their calls are held one by one before the kernel does them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::clients::{build_go, go};
use super::super::support::{Lab, find_program, is_missing, until, users};
use super::{DATAGRAMS, STREAM, assert_held, ended, limited};

/// A program of Python that is held by notification, as its standard input is a socket.
const BARE: &str = "import os, socket, sys\nstream = socket.socket()\nos.dup2(stream.fileno(), 0)\n\
     os.execv(sys.executable, [sys.executable, '-c'] + sys.argv[1:])\n";

/// So many processes were held by notification, and all that was seen is held.
#[track_caller]
fn assert_notified(ended: &Value, processes: u64) {
    assert_eq!(ended["held"]["by_notification"], processes, "{ended}");
    assert!(ended["held"]["notified_calls"].as_u64() > Some(0), "{ended}");
    assert_eq!(ended["escapes"], 0, "{ended}");
}

/// The lab with the program in Go; `None` where there is no compiler.
fn lab_with_go() -> Option<Lab> {
    let go = go()?;
    let lab = Lab::new(users()[0]);
    build_go(&lab, &go, "move");
    Some(lab)
}

/// Answers one request of HTTP with so many bytes, in one write.
fn serve(bytes: usize) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b'x'; bytes]).unwrap();
    });
    (address, server)
}

/// Takes all that comes on one connection.
pub(super) fn sink() -> (SocketAddr, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap()
    });
    (address, server)
}

fn received(ended: &Value) -> u64 {
    ended["receive"]["bytes"].as_u64().unwrap()
}

#[test]
fn a_static_client_receives_no_faster_than_its_limit() {
    if is_missing(&["busybox"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let (address, server) = serve(400_000);
        let url = format!("http://{address}/");
        let words = ["busybox", "wget", "-q", "-O", "file", &url];
        let ended = limited(&lab, &["--receive", "400KB/s"], &words);
        server.join().unwrap();
        assert!((400_000..401_000).contains(&received(&ended)), "{ended}");
        assert_held(&ended, "receive", received(&ended), 16_000);
        assert_notified(&ended, 1);
        lab.assert_nothing_left();
    }
}

#[test]
fn a_static_client_sends_no_faster_than_its_limit() {
    if is_missing(&["busybox"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("data", vec![b'x'; 400_000]);
    let (address, server) = sink();
    let script = format!("exec busybox nc {} {} < data", address.ip(), address.port());
    let ended = limited(&lab, &["--send", "400KB/s"], &["sh", "-c", &script]);
    assert_eq!(server.join().unwrap(), 400_000);
    assert_held(&ended, "send", 400_000, 70_000);
    assert_notified(&ended, 1);
}

#[test]
fn a_static_program_below_a_dynamic_one_shares_its_budget() {
    if is_missing(&["busybox", "python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("stream.py", STREAM);
    let (address, server) = serve(150_000);
    let program = find_program("busybox").unwrap();
    let both = format!(
        "import subprocess, sys\n\
         child = subprocess.Popen([{program:?}, 'wget', '-q', '-O', 'file', 'http://{address}/'])\n\
         sys.argv[1:] = ['1000', '150']\n\
         exec(open('stream.py').read())\n\
         assert child.wait() == 0\n"
    );
    let ended = limited(&lab, &["--receive", "300KB/s"], &["python3", "-c", &both]);
    server.join().unwrap();
    assert!((300_000..301_000).contains(&received(&ended)), "{ended}");
    assert_held(&ended, "receive", received(&ended), 20_000);
    assert_notified(&ended, 1);
    assert!(ended["held"]["by_library"].as_u64() >= Some(1), "{ended}");
}

#[test]
fn a_program_of_go_is_held_in_both_directions() {
    let Some(lab) = lab_with_go() else { return };
    for (kind, size, count) in [("stream", 10_000, 60), ("datagrams", 1_000, 300)] {
        for direction in ["send", "receive"] {
            let option = format!("--{direction}");
            let words = ["./move", kind, &size.to_string(), &count.to_string()];
            let ended = limited(&lab, &[&option, "400KB/s"], &words);
            assert_held(&ended, direction, size * count, 70_000);
            assert_notified(&ended, 1);
        }
    }
}

#[test]
fn sockets_of_a_static_program_may_have_budgets_of_their_own() {
    let Some(lab) = lab_with_go() else { return };
    for per in ["socket", "process", "peer"] {
        let options = ["--send", "400KB/s", "--per", per];
        let ended = limited(&lab, &options, &["./move", "stream", "10000", "30"]);
        assert_eq!(ended["per"], per);
        assert_held(&ended, "send", 300_000, 10_000);
    }
}

#[test]
fn a_wait_of_one_thread_delays_no_other_of_the_program() {
    let Some(lab) = lab_with_go() else { return };
    let ended = limited(&lab, &["--send", "1B/s"], &["./move", "others", "3600", "0"]);
    // The second message would have gone after an hour.
    assert_eq!(ended["send"]["bytes"], 3_600, "{ended}");
}

#[test]
fn what_a_program_of_go_moves_ends_at_its_deadline() {
    let Some(lab) = lab_with_go() else { return };
    for direction in ["send", "receive"] {
        let (option, way) = (format!("--{direction}"), format!("{direction}-until"));
        let ended = limited(&lab, &[&option, "1B/s"], &["./move", &way, "3600", "100"]);
        // The second call would have moved its bytes after an hour.
        assert_eq!(ended[direction]["bytes"], 3_600, "{ended}");
    }
}

#[test]
fn a_program_without_the_library_is_held_on_sockets_that_block() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        // A call is not cut: what one takes is the burst.
        let stream = STREAM.replace("1 << 20", "4096");
        for program in [stream.as_str(), DATAGRAMS] {
            for direction in ["send", "receive"] {
                let option = format!("--{direction}");
                let words = ["python3", "-c", BARE, program, "1000", "300"];
                let ended = limited(&lab, &[&option, "1MB/s"], &words);
                assert_held(&ended, direction, 300_000, 5_000);
                assert_notified(&ended, 1);
            }
        }
    }
}

/// A datagram that comes while a call waits for it, longer than from one look to the next; a timeout,
/// and a signal whose handler ends it.
const WAITS: &str = r#"
import signal, socket, struct, threading
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
b.bind(("127.0.0.1", 0))
threading.Timer(0.25, lambda: a.sendto(b"x" * 1000, b.getsockname())).start()
assert len(b.recv(2000)) == 1000
b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50_000))
try:
    b.recv(2000)
    raise AssertionError("nothing was sent")
except BlockingIOError:
    pass
b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
class Alarm(Exception):
    pass
def alarm(*_):
    raise Alarm
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    b.recv(2000)
    raise AssertionError("nothing was sent")
except Alarm:
    pass
"#;

#[test]
fn a_call_that_waits_for_a_message_ends_by_it_by_its_timeout_or_by_a_signal() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let ended = limited(&lab, &["--receive", "1MB/s"], &["python3", "-c", BARE, WAITS]);
    assert_eq!(received(&ended), 1_000, "{ended}");
    assert_notified(&ended, 1);
}

#[test]
fn a_file_that_a_static_server_sends_by_one_call_leaves_at_the_rate() {
    if is_missing(&["busybox"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    lab.write("file", vec![b'x'; 1_500_000]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = format!("127.0.0.1:{port}");
    let arguments = ["limit", "--out", "limit.json", "--send", "750KB/s", "--"];
    let words = ["busybox", "httpd", "-f", "-p", &place, "-h", "."];
    let mut server = lab.windtunnel(&[&arguments[..], &words].concat()).spawn().unwrap();
    let mut stream = until("the server listens", || TcpStream::connect(&place).ok());
    stream.write_all(b"GET /file HTTP/1.0\r\n\r\n").unwrap();
    let (mut all, mut beginning) = (Vec::new(), [0; 1]);
    stream.read_exact(&mut beginning).unwrap();
    let began = Instant::now();
    stream.read_to_end(&mut all).unwrap();
    assert!(all.len() > 1_500_000);
    // The kernel sends the first ten segments at once, of 64 KB here.
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    let ends = Command::new("kill").arg(server.id().to_string()).status();
    assert!(ends.unwrap().success());
    server.wait().unwrap();
    let ended = ended(lab.path());
    assert!((1_500_000..1_501_000).contains(&ended["send"]["bytes"].as_u64().unwrap()), "{ended}");
}

#[test]
fn a_program_of_go_that_waits_for_its_limit_ends_by_a_signal() {
    let Some(lab) = lab_with_go() else { return };
    let arguments = ["limit", "--out", "limit.json", "--send", "1B/s", "--"];
    let words = ["./move", "datagrams", "3600", "2"];
    let mut waits = lab.windtunnel(&[&arguments[..], &words].concat()).spawn().unwrap();
    let id = waits.id().to_string();
    until("the first message is sent", || {
        let output = lab.windtunnel(&["limit", "list", "--json"]).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let limits = list["limits"].as_array().unwrap().clone();
        limits.into_iter().find(|it| it["id"] == id.as_str() && it["receive"]["bytes"] == 3_600)
    });
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    // The second one would have gone after an hour.
    assert_eq!(waits.wait().unwrap().code(), Some(143));
    assert_eq!(ended(lab.path())["send"]["bytes"], 3_600);
}

#[test]
fn a_program_that_asks_for_mptcp_gets_what_a_kernel_without_it_says() {
    if is_missing(&["python3"]) {
        return;
    }
    const ASK: &str = "import errno, socket\n\
                       try:\n\
                       \x20   socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n\
                       \x20   raise AssertionError('it is there')\n\
                       except OSError as error:\n\
                       \x20   assert error.errno == errno.EPROTONOSUPPORT, error\n";
    let lab = Lab::new(users()[0]);
    for words in [&["python3", "-c", ASK][..], &["python3", "-c", BARE, ASK]] {
        limited(&lab, &["--send", "1MB/s"], words);
    }
}

#[test]
fn io_uring_is_refused_to_static_programs_as_well() {
    if is_missing(&["python3"]) {
        return;
    }
    const SETUP: &str = "import ctypes\n\
                         libc = ctypes.CDLL(None, use_errno=True)\n\
                         assert libc.syscall(425, 1, None) == -1\n\
                         assert ctypes.get_errno() == 38, ctypes.get_errno()\n";
    let lab = Lab::new(users()[0]);
    limited(&lab, &["--send", "1MB/s"], &["python3", "-c", BARE, SETUP]);
}
