//! Listening sockets of real programs.

use std::sync::Arc;
use std::time::Duration;

use windtunnel_model::NodeId;
use windtunnel_record::listeners::{
    ListenerChange, ListenerMonitor, ListenerTarget, ListenerThread, ListenerThreadEvent,
};
use windtunnel_sys::poll::EventFd;
use windtunnel_sys::{clock, poll};

use crate::Case;
use crate::program::Program;
use crate::support::{World, star};

pub(crate) const CASES: &[Case] = &[
    ("a socket counts on the address or on all addresses, and on no other", addresses),
    ("a socket counts once it listens, and a datagram socket once it is bound", states),
    ("that a program closes its socket or is killed is seen by a message", closing),
    ("a thread finds a socket that comes and goes", thread),
    ("a hundred nodes are looked at in a small part of the interval", hundred),
];

/// Binds and listens as it is ordered, a line each: `family kind host port options`.
const SERVER: &str = r#"
import socket, sys
kept = {}
for line in sys.stdin:
    words = line.split()
    if words[0] == "close":
        kept.pop(words[1]).close()
    elif words[0] == "shut":
        kept[words[1]].shutdown(socket.SHUT_RDWR)
    elif words[0] == "listen":
        kept[words[1]].listen()
    elif words[0] == "connect":
        kept[words[1]].connect((words[2], int(words[3])))
    else:
        name, family, kind, host, port, *options = words
        family = {"4": socket.AF_INET, "6": socket.AF_INET6}[family]
        s = socket.socket(family, {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}[kind])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if "v6only" in options: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if "freebind" in options: s.setsockopt(socket.SOL_IP, 15, 1)
        if "device" in options: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0")
        s.bind((host, int(port)))
        if kind == "tcp" and "bound" not in options: s.listen()
        kept[name] = s
    print("done", flush=True)
"#;

struct Bench {
    world: World,
    listeners: ListenerMonitor,
    program: Program,
}

fn target(address: &str, port: &str) -> ListenerTarget {
    let device = windtunnel_node::FIRST_DEVICE;
    ListenerTarget { address: address.parse().unwrap(), port: port.parse().unwrap(), device }
}

impl Bench {
    fn new(targets: &[ListenerTarget]) -> Bench {
        let world = World::new(star(&["a", "b"]));
        let mut listeners = ListenerMonitor::new();
        let sockets = world.node_set.diagnosis_of(|node| node.0 == 0, Duration::from_secs(10));
        for (node, socket) in sockets {
            listeners.watch(node, socket.unwrap(), targets.to_vec()).unwrap();
        }
        let program = Program::start(world.node("a"), 1, &["python3", "-uc", SERVER]);
        Bench { world, listeners, program }
    }

    /// Has the program do something. Returns which targets have another state then.
    fn after(&mut self, order: &str) -> Vec<(String, bool)> {
        self.program.say(order);
        assert_eq!(self.program.line(), "done", "{order}");
        let mut seen = Vec::new();
        self.listeners.look_at_all(&mut |it| seen.push(it)).unwrap();
        let text = |it: ListenerChange| {
            (format!("{} {}", it.target.address, it.target.port), it.socket.is_some())
        };
        seen.into_iter().map(text).collect()
    }
}

fn on(target: &str) -> Vec<(String, bool)> {
    vec![(target.to_owned(), true)]
}

fn off(target: &str) -> Vec<(String, bool)> {
    vec![(target.to_owned(), false)]
}

const V4: &str = "10.1.0.80 80/tcp";
const V6: &str = "fd01::80 80/tcp";

fn addresses() {
    let mut bench = Bench::new(&[target("10.1.0.80", "80/tcp"), target("fd01::80", "80/tcp")]);
    let nothing: Vec<(String, bool)> = Vec::new();
    assert_eq!(bench.after("x 4 tcp 127.0.0.1 80"), nothing, "another address");
    assert_eq!(bench.after("y 4 tcp 0.0.0.0 81"), nothing, "another port");
    assert_eq!(bench.after("z 4 udp 0.0.0.0 80"), nothing, "another protocol");
    assert_eq!(bench.after("close x"), nothing);
    assert_eq!(bench.after("a 4 tcp 0.0.0.0 80"), on(V4));
    assert_eq!(bench.after("close a"), off(V4));
    assert_eq!(bench.after("b 6 tcp :: 80"), [on(V4), on(V6)].concat());
    assert_eq!(bench.after("close b"), [off(V4), off(V6)].concat());
    assert_eq!(bench.after("c 6 tcp :: 80 v6only"), on(V6));
    assert_eq!(bench.after("d 4 tcp 10.1.0.80 80 freebind"), on(V4));
    assert_eq!(bench.after("close d"), off(V4));
    assert_eq!(bench.after("e 4 tcp 0.0.0.0 80 device"), on(V4), "the device of the link");
    assert_eq!(bench.after("close e"), off(V4));
}

fn states() {
    let mut bench = Bench::new(&[target("10.1.0.80", "80/tcp"), target("10.1.0.80", "53/udp")]);
    let nothing: Vec<(String, bool)> = Vec::new();
    assert_eq!(bench.after("a 4 tcp 0.0.0.0 80 bound"), nothing);
    assert_eq!(bench.after("listen a"), on(V4));
    assert_eq!(bench.after("shut a"), off(V4), "closed, and open as a file");
    assert_eq!(bench.after("b 4 udp 0.0.0.0 53"), on("10.1.0.80 53/udp"));
    assert_eq!(bench.after("connect b 127.0.0.1 9"), off("10.1.0.80 53/udp"), "of one peer only");
    assert_eq!(bench.after("c 6 udp :: 53"), on("10.1.0.80 53/udp"), "of both versions");
}

/// The kernel's message is waited for without asking it anything.
fn closing() {
    let mut bench = Bench::new(&[target("10.1.0.80", "80/tcp"), target("10.1.0.80", "53/udp")]);
    bench.after("a 4 tcp 0.0.0.0 80");
    bench.after("b 4 udp 0.0.0.0 53");
    // Of connections that end there is no message.
    let connect = "import socket; s = socket.create_server(('127.0.0.1', 7)); \
                   c = socket.create_connection(('127.0.0.1', 7)); s.accept()[0].close(); \
                   c.recv(1); c.close(); print('over'); input()";
    let mut other = Program::start(bench.world.node("a"), 2, &["python3", "-uc", connect]);
    assert_eq!(other.line(), "over");
    assert!(!bench.has_message(Duration::ZERO));
    bench.program.say("close a");
    assert!(bench.has_message(PATIENCE));
    assert_eq!(bench.look(), [off(V4)].concat());
    bench
        .world
        .node("a")
        .send(
            &windtunnel_node::NodeInitRequest::Signal { id: Some(1), signal: 9, token: None },
            &[],
        )
        .unwrap();
    assert!(bench.has_message(PATIENCE));
    assert_eq!(bench.look(), off("10.1.0.80 53/udp"));
}

impl Bench {
    fn has_message(&self, patience: Duration) -> bool {
        let (_, socket) = self.listeners.descriptors().next().unwrap();
        let mut wanted = [poll::PollFd::from_borrowed_fd(socket, poll::PollFlags::IN)];
        poll::wait(&mut wanted, Some(patience)).unwrap() > 0
    }

    fn look(&mut self) -> Vec<(String, bool)> {
        let mut seen = Vec::new();
        self.listeners.look_at(NodeId(0), &mut |it| seen.push(it)).unwrap();
        let text = |it: ListenerChange| {
            (format!("{} {}", it.target.address, it.target.port), it.socket.is_some())
        };
        seen.into_iter().map(text).collect()
    }
}

fn thread() {
    let world = World::new(star(&["a", "b"]));
    let notify = Arc::new(EventFd::open().unwrap());
    let (thread, found) = ListenerThread::start(notify).unwrap();
    for (node, socket) in world.node_set.diagnosis(Duration::from_secs(10)) {
        thread.watch(node, move || socket, vec![target("10.1.0.80", "80/tcp")]);
    }
    let mut program = Program::start(world.node("b"), 1, &["python3", "-uc", SERVER]);
    program.say("a 4 tcp 0.0.0.0 80");
    let seen = || match found.recv_timeout(PATIENCE).unwrap() {
        ListenerThreadEvent::Seen(sighting) => sighting,
        other => panic!("{other:?}"),
    };
    let came = seen();
    assert_eq!((came.node, came.socket.is_some()), (NodeId(1), true));
    program.say("close a");
    let went = seen();
    assert_eq!((went.node, went.socket), (NodeId(1), None));
    assert!(went.seen_ns > came.seen_ns && went.seen_ns <= clock::monotonic_ns());
    thread.forget(NodeId(1));
    thread.watch(NodeId(0), || Err(std::io::ErrorKind::TimedOut.into()), Vec::new());
    let failed = found.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(failed, ListenerThreadEvent::Failed { node: NodeId(0), .. }), "{failed:?}");
}

/// A hundred replicas, as far as the kernel's work goes: the sockets of one node a hundred times.
fn hundred() {
    let world = World::new(star(&["a", "b"]));
    let mut listeners = ListenerMonitor::new();
    for number in 0..100 {
        let mut socket = world.node_set.diagnosis_of(|node| node.0 == 0, PATIENCE);
        let (_, socket) = socket.pop().unwrap();
        let targets = vec![target("10.1.0.80", "80/tcp"), target("10.1.0.80", "53/udp")];
        listeners.watch(NodeId(number), socket.unwrap(), targets).unwrap();
    }
    for _ in 0..100 {
        listeners.look_at_all(&mut |it| panic!("{it:?}")).unwrap();
    }
    let stats = listeners.stats();
    println!("{} ns for each look at a node, two targets", stats.spent_ns / stats.looks);
    assert_eq!((stats.looks, stats.overruns), (10_000, 0));
}

/// For what comes by itself.
const PATIENCE: Duration = Duration::from_secs(10);
