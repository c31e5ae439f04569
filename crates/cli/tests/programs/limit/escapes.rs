//! Ordinary programs that the library did not reach: started with another environment, writing by
//! streams of the C library, or making system calls by their number.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::support::{Lab, is_missing, is_root, users};
use super::notified::sink;
use super::{STREAM, assert_held, limited};

/// Starts the program that follows with an environment of its own, in one of several ways.
const START: &str = r#"
import ctypes, os, subprocess, sys
way, words = sys.argv[1], [sys.executable, *sys.argv[2:]]
if way == "none":
    subprocess.run(words, env={}, check=True)
elif way == "another":
    subprocess.run(words, env={"LD_PRELOAD": "libm.so.6", "PATH": os.environ["PATH"]}, check=True)
elif way == "empty list":
    subprocess.run(words, env={**os.environ, "LD_PRELOAD": ""}, check=True)
elif way == "spawned":
    child = os.posix_spawn(words[0], words, {"A": "b"})
    assert os.waitpid(child, 0)[1] == 0
elif way == "listed":
    given = (ctypes.c_char_p * 1)(None)
    list = [word.encode() for word in words]
    ctypes.CDLL(None).execle(list[0], *list, None, given)
elif way == "unset":
    os.unsetenv("LD_PRELOAD")
    os.environ.pop("LD_PRELOAD")
    os.execv(words[0], words)
"#;

/// Sends for longer than its deadline allows; then by many threads at once, none of which may block.
const HURRIED: &str = r#"
import socket, struct, sys, threading
stream = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200_000))
print(stream.send(b"x" * 50_000), flush=True)
refused, gate = [], threading.Barrier(30)
def send():
    gate.wait()
    try:
        stream.send(b"x" * 1000, socket.MSG_DONTWAIT)
    except BlockingIOError:
        refused.append(1)
threads = [threading.Thread(target=send) for _ in range(30)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(refused))
"#;

#[test]
fn a_deadline_bounds_a_call_and_not_its_pieces_and_a_call_that_must_not_block_is_refused() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let (address, taken) = sink();
    let port = address.port().to_string();
    let options = ["limit", "--send", "10KB/s", "--", "python3", "-c", HURRIED, &port];
    let output = lab.windtunnel(&options).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let [sent, refused] = printed.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{printed}")
    };
    // All would take five seconds.
    assert!((1..50_000).contains(&sent.parse::<u64>().unwrap()), "{printed}");
    // All would take three, 30 times as long as one waits.
    assert!(refused.parse::<u64>().unwrap() > 0, "{printed}");
    taken.join().unwrap();
}

/// Connects to a port, and sends by what the C library does itself, or by a system call.
const SEND: &str = r#"
import ctypes, socket, subprocess, sys
way, stream = sys.argv[1], socket.create_connection(("127.0.0.1", int(sys.argv[2])))
library, bytes = ctypes.CDLL(None), b"x" * 1000
if way == "stream":
    subprocess.run(["seq", "1", "20000"], stdout=stream, check=True)
elif way == "print":
    for _ in range(100):
        assert library.dprintf(stream.fileno(), b"%s", bytes) == 1000
elif way == "file":
    library.fdopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(library.fdopen(stream.fileno(), b"w"))
    for _ in range(100):
        assert library.fputs(bytes, file) > 0
    assert library.fflush(file) == 0
elif way == "call":
    assert library.syscall(1, stream.fileno(), bytes, 1000) == 1000
"#;

#[test]
fn a_program_with_another_environment_sends_no_faster_than_its_limit() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        for way in ["none", "another", "empty list", "spawned", "listed", "unset"] {
            let words = ["python3", "-c", START, way, "-c", STREAM, "1000", "100"];
            let ended = limited(&lab, &["--send", "300KB/s"], &words);
            assert_held(&ended, "send", 100_000, 1_000);
        }
    }
}

#[test]
fn what_the_c_library_writes_to_a_socket_by_itself_is_held_by_notification() {
    if is_missing(&["python3", "seq"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        for (way, bytes, call) in
            [("stream", 108_894, 65_536), ("print", 100_000, 1_000), ("file", 100_000, 65_536)]
        {
            let (address, taken) = sink();
            let port = address.port().to_string();
            let words = ["python3", "-c", SEND, way, &port];
            let ended = limited(&lab, &["--send", "300KB/s"], &words);
            assert_eq!(taken.join().unwrap() as u64, bytes);
            assert_held(&ended, "send", bytes, call);
            assert!(ended["held"]["by_notification"].as_u64() >= Some(1), "{way}: {ended}");
        }
    }
}

#[test]
fn a_system_call_by_its_number_on_a_socket_is_reported() {
    if is_missing(&["python3"]) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let lab = Lab::new(users()[0]);
    let (address, taken) = sink();
    let words = ["python3", "-c", SEND, "call", &address.port().to_string()];
    let ended = limited(&lab, &["--send", "300KB/s"], &words);
    assert_eq!(taken.join().unwrap(), 1000);
    let found = &ended["not_limited"][0];
    assert_eq!(found["count"], 1, "{ended}");
    assert!(found["what"].as_str().unwrap().ends_with("by syscall(2)"), "{ended}");
}

#[test]
fn a_program_of_32_bits_and_one_of_another_user_are_reported() {
    if is_missing(&["sh", "setpriv"]) || !is_root() {
        return;
    }
    let lab = Lab::new(users()[0]);
    // An ELF header of that class; whether the machine could execute the rest does not matter.
    let mut beginning = [0; 64];
    beginning[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    let small = lab.path().join("small");
    fs::write(&small, beginning).unwrap();
    fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
    for command in ["./small; true", "setpriv --reuid 65534 --clear-groups true"] {
        let ended = limited(&lab, &["--send", "300KB/s"], &["sh", "-c", command]);
        let found = &ended["not_limited"][0];
        assert_eq!(found["count"], 1, "{command}: {ended}");
        let what = found["what"].as_str().unwrap();
        assert!(what.starts_with("programs of 32 bits, or of another user"), "{ended}");
    }
}
