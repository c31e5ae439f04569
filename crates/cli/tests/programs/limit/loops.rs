//! Programs with an event loop: calls that must not block fail at once, and descriptors become ready when
//! the limit lets bytes move, as on a slow link.

use super::super::support::{Lab, is_missing, users};
use super::{assert_held, limited};

/// Sends to itself by one thread that waits for both ends in one way. Prints how often it waited, and how
/// many of its calls were refused.
const LOOP: &str = r#"
import select, socket, sys
way, total = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(listener.getsockname())
b, _ = listener.accept()
for end in (a, b):
    end.setblocking(False)
waits = refused = got = 0
left = total
def ready():
    if way == "select":
        reads, writes, _ = select.select([b], [a] if left else [], [])
        return bool(reads), bool(writes)
    found = dict(poll.poll())
    return bool(found.get(b.fileno(), 0) & select.POLLIN), bool(found.get(a.fileno(), 0) & select.POLLOUT)
if way != "select":
    poll = select.poll() if way == "poll" else select.epoll()
    edges = select.EPOLLET if way == "edges" else 0
    poll.register(a, select.POLLOUT | edges)
    poll.register(b, select.POLLIN | edges)
while got < total:
    reads, writes = ready()
    waits += 1
    try:
        while writes and left:
            left -= a.send(bytes(min(left, 65536)))
    except BlockingIOError:
        refused += 1
    if not left and way in ("poll", "epoll"):
        poll.modify(a, 0)
    try:
        while reads and (part := b.recv(65536)):
            got += len(part)
    except BlockingIOError:
        refused += 1
print(waits, refused)
"#;

#[test]
fn no_call_of_an_event_loop_waits_and_its_descriptors_are_ready_in_their_turn() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for way in ["poll", "select", "epoll", "edges"] {
        for direction in ["send", "receive"] {
            let output = lab
                .windtunnel(&["limit", "--out", "limit.json", &format!("--{direction}"), "1MB/s"])
                .args(["--", "python3", "-c", LOOP, way, "300000"])
                .output()
                .unwrap();
            assert!(output.status.success(), "{way}: {output:?}");
            let ended = super::ended(lab.path());
            assert_held(&ended, direction, 300_000, 5_000);
            assert_eq!(ended[direction]["waited_ns"], 0, "{way}: {ended}");
            // 60 pieces, each with a wait, and one for the other end; a loop that asks again and again
            // what is not ready would wait for nothing thousands of times.
            let text = String::from_utf8(output.stdout).unwrap();
            let counts: Vec<u32> = text.split_whitespace().map(|it| it.parse().unwrap()).collect();
            assert!(counts.iter().all(|count| *count < 600), "{way} {direction}: {text}");
        }
    }
}

/// Sends by many threads at once, none of which may block; then a datagram at a time.
const HURRIED: &str = r#"
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
stream = socket.create_connection(listener.getsockname())
refused = []
def send():
    for _ in range(100):
        try:
            stream.send(b"x" * 1000, socket.MSG_DONTWAIT)
        except BlockingIOError:
            refused.append(1)
threads = [threading.Thread(target=send) for _ in range(30)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(refused) > 2000, len(refused)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.connect(("127.0.0.1", 9))
datagrams.setblocking(False)
try:
    for _ in range(1000):
        try:
            datagrams.send(b"x" * 1000)
        except ConnectionRefusedError:
            pass
    raise AssertionError("a megabyte at 10 B/s")
except BlockingIOError:
    pass
"#;

#[test]
fn calls_that_must_not_block_are_refused_at_once_however_many_there_are() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    // A byte takes a tenth of a second: 3000 calls that wait for one each would take five minutes.
    let ended = limited(&lab, &["--send", "10B/s"], &["python3", "-c", HURRIED]);
    assert_eq!(ended["send"]["waited_ns"], 0, "{ended}");
}

/// A set that is watched by another one, events that come once, and a descriptor in two sets: no program
/// stays without an event.
const NESTED: &str = r#"
import select, socket, sys
way = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(listener.getsockname())
b, _ = listener.accept()
a.setblocking(False)
inner, outer = select.epoll(), select.epoll()
once = select.EPOLLONESHOT if way == "once" else 0
inner.register(a, select.EPOLLOUT | select.EPOLLET | once)
if way == "nested":
    outer.register(inner, select.EPOLLIN)
elif way == "twice":
    outer.register(a, select.EPOLLOUT | select.EPOLLET)
left = 100_000
while left:
    if way == "nested":
        outer.poll()
    elif way == "polled":
        ready = select.poll()
        ready.register(inner, select.POLLIN)
        ready.poll()
    for _ in (outer if way == "twice" else inner).poll():
        try:
            while left:
                left -= a.send(bytes(min(left, 65536)))
        except BlockingIOError:
            pass
        if once:
            inner.modify(a, select.EPOLLOUT | select.EPOLLET | once)
"#;

#[test]
fn a_program_that_watches_in_an_unusual_way_gets_on() {
    if is_missing(&["python3"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    for way in ["nested", "polled", "twice", "once"] {
        let ended = limited(&lab, &["--send", "1MB/s"], &["python3", "-c", NESTED, way]);
        assert_held(&ended, "send", 100_000, 5_000);
    }
}
