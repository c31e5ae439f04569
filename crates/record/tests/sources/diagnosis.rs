//! The state of connections beside what the programs themselves are answered.

use std::os::fd::OwnedFd;
use std::time::Duration;

use windtunnel_model::record::{EventRecord, Kind, flag};
use windtunnel_notification::tcp_info::TcpInfo;
use windtunnel_record::diagnosis::{INTERVAL, TcpDiagnosis, TcpDiagnosisThread};
use windtunnel_sys::{clock, poll, sock_diag};

use crate::Case;
use crate::program::Program;
use crate::support::{World, star};

pub(crate) const CASES: &[Case] = &[
    ("samples are what the program's own socket says", samples),
    ("a connection between two looks has its sums and its end", short),
    ("a node's own table of connections changes none of its limits", limits),
    ("a connection that is aborted has its last sample and its end", aborted),
    ("a thread looks at nodes until it is finished", thread),
    ("each of eight thousand destroyed sockets is recorded or counted as lost", overrun),
];

/// Two sockets of one process, over IPv4 and then IPv6.
const TRANSFER: &str = r#"
import socket, sys
def say(*words):
    print(*words, flush=True); sys.stdin.readline()
def info(s): return s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 300).hex()
for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
    l = socket.create_server((host, 7000), family=family)
    c = socket.create_connection((host, 7000)); s, _ = l.accept()
    c.sendall(b"x" * 100000)
    got = 0
    while got < 60000: got += len(s.recv(60000 - got))
    s.sendall(b"y" * 7)
    c.recv(7)
    import time
    while s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 300)[24:28] != b"\0" * 4: time.sleep(0.001)
    say(c.getsockname()[1], info(c), info(s))
    s.close(); c.close(); l.close()
    say("closed")
"#;

struct Look {
    diagnosis: TcpDiagnosis,
    records: Vec<EventRecord>,
}

impl Look {
    fn at(world: &World) -> Look {
        Look::with(world, |_| ())
    }

    fn with(world: &World, change: impl Fn(&OwnedFd)) -> Look {
        let nodes = world.node_set.diagnosis(Duration::from_secs(10));
        let nodes: Vec<_> =
            nodes.into_iter().map(|(node, socket)| (node, socket.unwrap())).collect();
        nodes.iter().for_each(|(_, socket)| change(socket));
        Look { diagnosis: TcpDiagnosis::new(nodes, INTERVAL), records: Vec::new() }
    }

    /// Looks at all nodes, once it is due, as often as it takes for those without connections.
    fn look(&mut self) {
        for _ in 0..8 {
            let timer = poll::Timer::open().unwrap();
            timer.arm_at(self.diagnosis.due_ns().max(1)).unwrap();
            poll::wait(&mut [poll::PollFd::new(&timer, poll::PollFlags::IN)], None).unwrap();
            let records = &mut self.records;
            self.diagnosis.poll(&mut |_, record| records.push(*record)).unwrap();
        }
    }

    fn of(&self, kind: Kind) -> Vec<EventRecord> {
        self.records.iter().filter(|record| record.kind == kind as u8).copied().collect()
    }

    /// The last record of a kind for the socket with this port of its own.
    fn last(&self, kind: Kind, port: u16) -> EventRecord {
        let mut own = self.of(Kind::FlowFrom);
        own.retain(|record| record.extra == port);
        let flow = own.last().expect("the socket was seen").flow;
        *self.of(kind).iter().rfind(|record| record.flow == flow).expect("there is one")
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn diagnosed() -> World {
    World::with(star(&["a", "b"]), |options, _| options.diagnosed = true)
}

fn samples() {
    let world = diagnosed();
    let mut look = Look::at(&world);
    look.look();
    assert_eq!(look.records, [], "nothing is there yet");
    let mut program = Program::start(world.node("a"), 1, &["python3", "-c", TRANSFER]);
    for _ in 0..2 {
        let line = program.line();
        let words: Vec<&str> = line.split(' ').collect();
        let port: u16 = words[0].parse().unwrap_or_else(|_| panic!("{line}"));
        look.look();
        let client = TcpInfo::read(&bytes(words[1])).unwrap();
        let server = TcpInfo::read(&bytes(words[2])).unwrap();
        let windows = look.last(Kind::TcpWindows, port);
        assert_eq!(windows.args, [client.cwnd, client.ssthresh, client.srtt_us, client.rto_us]);
        assert_eq!(windows.extra, 1, "established, no congestion");
        let offsets = |port| look.last(Kind::TcpOffsets, port).args;
        assert_eq!(offsets(port), [100_000, 100_000, 7, 0]);
        assert_eq!(offsets(7000), [7, 7, 60_000, 0]);
        let progress = look.last(Kind::TcpProgress, port);
        assert_eq!((progress.flags, progress.args), (0, [100_000, 7, 0, 0]));
        assert_eq!(progress.extra, u16::try_from(client.snd_mss).unwrap());
        assert_eq!(look.last(Kind::TcpQueues, 7000).args, [40_000, 0, 0, server.rcv_wnd]);
        assert_eq!(client.acknowledged(true), 100_000, "the side that connects counts its SYN");
        assert_eq!(server.acknowledged(false), 7);
        program.go_on();
        assert_eq!(program.line(), "closed");
        let ends = look.of(Kind::TcpEnd).len();
        look.look();
        assert_eq!(look.of(Kind::TcpEnd).len(), ends + 2, "both were destroyed");
        program.go_on();
    }
    let defined = look.of(Kind::FlowFrom);
    assert_eq!(defined.len(), 4, "each of four sockets once");
    assert_eq!(defined[0].flags, 6);
    let six = words_of([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(look.of(Kind::FlowTo)[3].args, six, "the last are of IPv6");
}

fn words_of(bytes: [u8; 16]) -> [u32; 4] {
    windtunnel_model::record::words(bytes)
}

const SHORT: &str = r#"
import socket
l = socket.create_server(("", 7000))
c = socket.create_connection(("127.0.0.1", 7000)); s, _ = l.accept()
c.sendall(b"x" * 1234)
assert len(s.recv(5000)) == 1234
c.close()
assert s.recv(1) == b""
s.sendall(b"") ; s.close(); l.close()
print("done", c.fileno())
"#;

fn short() {
    let world = diagnosed();
    let mut look = Look::at(&world);
    look.look();
    assert_eq!(world.output("b", &format!("python3 -c '{SHORT}'")), "done -1\n");
    look.look();
    let ends = look.of(Kind::TcpEnd);
    assert_eq!(ends.len(), 2);
    let server = look.last(Kind::TcpOffsets, 7000);
    assert_ne!(server.flags & flag::OFFSET_UNKNOWN, 0, "a FIN may be among what was read");
    assert_eq!(server.args[2], 1234 + 1);
    let other = look.of(Kind::FlowTo);
    let client = other.iter().find(|record| record.extra == 7000).unwrap();
    let offsets = look.of(Kind::TcpOffsets);
    let offsets = offsets.iter().find(|record| record.flow == client.flow).unwrap();
    assert_eq!(offsets.args[..2], [1234, 1234], "written and sent by the client");
    let windows = look.last(Kind::TcpWindows, 7000);
    assert_eq!(windows.extra & 0xff, 7, "closed");
    let progress = look.last(Kind::TcpProgress, 7000);
    assert_ne!(progress.flags & flag::OFFSET_UNKNOWN, 0, "a FIN may be among the received");
}

const ABORTED: &str = r#"
import socket, sys
l = socket.create_server(("", 7000))
c = socket.create_connection(("127.0.0.1", 7000)); s, _ = l.accept()
c.sendall(b"x" * 1234)
print("open", flush=True); sys.stdin.readline()
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
c.close()
print("aborted", flush=True); sys.stdin.readline()
"#;

fn aborted() {
    let world = diagnosed();
    let mut look = Look::at(&world);
    let mut program = Program::start(world.node("b"), 1, &["python3", "-c", ABORTED]);
    assert_eq!(program.line(), "open");
    look.look();
    program.go_on();
    assert_eq!(program.line(), "aborted");
    look.look();
    let ends = look.of(Kind::TcpEnd);
    let to = look.of(Kind::FlowTo);
    let client = to.iter().find(|record| record.extra == 7000).unwrap().flow;
    assert_eq!(ends.iter().map(|end| end.flow).collect::<Vec<_>>(), [client]);
    let offsets = look.of(Kind::TcpOffsets);
    let last = offsets.iter().rfind(|record| record.flow == client).unwrap();
    assert_eq!(last.args[0], 1234, "the kernel forgets its counters, the record does not");
}

fn limits() {
    let names = ["tcp_max_tw_buckets", "tcp_max_syn_backlog"];
    let read = |world: &World| {
        names.map(|name| world.output("a", &format!("cat /proc/sys/net/ipv4/{name}")))
    };
    let without = crate::support::Folder::new("limits");
    let file = without.path().join("values");
    let written = crate::in_a_process(|| {
        let world = World::new(star(&["a"]));
        std::fs::write(&file, read(&world).concat()).unwrap();
    });
    assert_eq!(written, windtunnel_sys::process::ProcessExitStatus::Exited(0));
    let world = diagnosed();
    assert_eq!(read(&world).concat(), std::fs::read_to_string(&file).unwrap());
    let entries = world.output("a", "cat /proc/sys/net/ipv4/tcp_ehash_entries");
    assert_eq!(entries, "1024\n");
}

fn thread() {
    let world = diagnosed();
    let nodes = world.node_set.diagnosis(Duration::from_secs(10)).into_iter();
    let nodes = nodes.map(|(node, socket)| (node, socket.unwrap())).collect();
    let (thread, mut feeds) = TcpDiagnosisThread::start(nodes, INTERVAL, 1000).unwrap();
    assert_eq!(world.output("b", &format!("python3 -c '{SHORT}'")), "done -1\n");
    let findings = thread.finish();
    assert_eq!((findings.stats.destroyed, findings.stats.lost), (2, 0));
    assert!(findings.failure.is_none(), "{findings:?}");
    let mut records = Vec::new();
    feeds[0].take(1000, &mut records);
    assert_eq!(records, [], "nothing at node a");
    feeds[1].take(1000, &mut records);
    assert_eq!(feeds[1].source().node, 1);
    let ends = records.iter().filter(|record| record.kind == Kind::TcpEnd as u8);
    assert_eq!(ends.count(), 2);
}

const MANY: &str = r#"
import socket
l = socket.create_server(("", 7000), backlog=100)
for i in range(4000):
    c = socket.create_connection(("127.0.0.1", 7000)); s, _ = l.accept()
    c.close(); s.close()
print("done")
"#;

fn overrun() {
    let world = diagnosed();
    let mut look = Look::with(&world, |socket| sock_diag::set_room(socket, 4096).unwrap());
    look.look();
    assert_eq!(world.output("a", &format!("python3 -c '{MANY}'")), "done\n");
    let (mut recorded, mut count) = (0, 0);
    // The kernel sends them from a thread of its own, which may be late.
    while recorded + count < 8000 {
        look.look();
        recorded = u64::try_from(look.of(Kind::TcpEnd).len()).unwrap();
        count = look.of(Kind::Lost).iter().map(|record| record.wide(2)).sum();
    }
    let lost = look.of(Kind::Lost);
    assert!(count > 0, "the kernel had no room for all");
    assert!(lost.iter().all(|record| record.wide(0) > 0 && record.wide(0) < record.time));
    let stats = look.diagnosis.stats();
    assert_eq!((stats.destroyed, stats.lost), (recorded, count));
    // The socket that listened was destroyed, too, of which nothing is recorded.
    assert!((8000..=8001).contains(&(recorded + count)), "{recorded} + {count}");
    assert!(clock::monotonic_ns() > stats.spent_ns);
}
