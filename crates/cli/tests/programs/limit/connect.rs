//! Where a command and all that it starts may connect and send to.

use std::process::Output;

use serde_json::Value;

use super::super::support::{Lab, any_user, find_program, is_missing, users};
use super::ended;

/// Names another end in all the ways that there are, and prints those that were refused.
const WAYS: &str = r#"
import ctypes, errno, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint), ("parts", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]
def sendmmsg(out, address, family=2):
    name = ctypes.create_string_buffer(
        family.to_bytes(2, "little") + address[1].to_bytes(2, "big") + socket.inet_aton(address[0]) + bytes(8), 16)
    part = Part(b"x", 1)
    message = Message(ctypes.addressof(name), 16, ctypes.addressof(part), 1)
    if libc.sendmmsg(out.fileno(), ctypes.byref(message), 1, 0) != 1:
        raise OSError(ctypes.get_errno(), "sendmmsg")
ways = {
    "tcp": lambda a: socket.create_connection(a, 0.2),
    "udp": lambda a: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(a),
    "sendto": lambda a: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", a),
    "sendmsg": lambda a: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, a),
    "sendmmsg": lambda a: sendmmsg(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), a),
    "no family": lambda a: sendmmsg(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), a, 0),
    "mapped": lambda a: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"x", ("::ffff:" + a[0], a[1])),
}
refused = []
for name, way in ways.items():
    try:
        way((sys.argv[1], int(sys.argv[2])))
    except OSError as error:
        if error.errno == errno.EACCES:
            refused.append(name)
print(", ".join(refused))
"#;

const ALL: &str = "tcp, udp, sendto, sendmsg, sendmmsg, no family, mapped\n";

fn confined(lab: &Lab, options: &[&str], words: &[&str]) -> Output {
    let arguments = [&["limit", "--out", "limit.json"], options, &["--"], words].concat();
    lab.windtunnel(&arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(lab: &Lab) -> Value {
    ended(lab.path())["refused"].clone()
}

#[test]
fn every_way_to_name_another_network_is_refused_and_counted_and_none_to_those_that_are_named() {
    if is_missing(&["python3"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        // With a rate all calls are shown, without one those that name an address.
        for rate in [&[][..], &["--send", "1GB/s"]] {
            let options = [&["--connect", "127.0.0.0/8"], rate].concat();
            // A network that leads nowhere (RFC 5737).
            let output = confined(&lab, &options, &["python3", "-c", WAYS, "192.0.2.1", "9"]);
            assert_eq!(printed(&output), ALL);
            let seen = refused(&lab);
            assert_eq!((&seen["count"], &seen["hidden"]), (&7.into(), &0.into()), "{seen}");
            assert_eq!(seen["first"][0], "192.0.2.1:9");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("refused 7 calls to connect or send elsewhere"), "{said}");
            let output = confined(&lab, &options, &["python3", "-c", WAYS, "127.0.0.1", "9"]);
            assert_eq!((printed(&output), &refused(&lab)["count"]), ("\n".into(), &0.into()));
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_port_of_a_network_is_no_other_port() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let options = ["--connect", "127.0.0.0/8:9,::1"];
    let output = confined(&lab, &options, &["python3", "-c", WAYS, "127.0.0.1", "9"]);
    assert_eq!(printed(&output), "\n");
    let output = confined(&lab, &options, &["python3", "-c", WAYS, "127.0.0.1", "10"]);
    assert_eq!(printed(&output), ALL);
}

#[test]
fn static_programs_and_what_they_start_are_refused_as_well() {
    if is_missing(&["busybox"]) {
        return;
    }
    let busybox = find_program("busybox").unwrap();
    let busybox = busybox.to_str().unwrap();
    for user in any_user() {
        let lab = Lab::new(user);
        let script = format!("{busybox} nc -w 1 192.0.2.1 9 < /dev/null");
        for words in [&[busybox, "nc", "-w", "1", "192.0.2.1", "9"][..], &["sh", "-c", &script]] {
            let output = confined(&lab, &["--connect", "127.0.0.0/8"], words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("Permission denied"), "{said}");
            assert_eq!(refused(&lab)["count"], 1);
        }
    }
}

#[test]
fn other_ways_to_send_are_refused() {
    if is_missing(&["python3"]) {
        return;
    }
    // SCTP's way to connect is an option of its sockets.
    let tries = "import socket\n\
                 def fails(way):\n\
                 \x20   try: way()\n\
                 \x20   except OSError as error: print(error.errno)\n\
                 fails(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))\n\
                 fails(lambda: socket.socket().setsockopt(132, 107, b''))\n";
    let lab = Lab::new(users()[0]);
    let output = confined(&lab, &["--connect", "127.0.0.0/8"], &["python3", "-c", tries]);
    assert_eq!(printed(&output), "13\n13\n");
}

#[test]
fn a_command_whose_calls_cannot_be_shown_does_not_start() {
    let lab = Lab::new(users()[0]);
    // A process has one filter that shows calls.
    let inner = lab.windtunnel(&["limit", "--connect", "10.0.0.0/8", "--", "touch", "started"]);
    let mut words = vec![inner.get_program().to_str().unwrap()];
    words.extend(inner.get_args().map(|word| word.to_str().unwrap()));
    let output = confined(&lab, &["--connect", "127.0.0.0/8"], &words);
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    assert!(!lab.path().join("started").exists());
}
