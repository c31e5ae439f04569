//! Static programs: what they do is as without a recorder, and every byte is in the records.

use std::collections::BTreeMap;
use std::time::Duration;

use windtunnel_model::record::kind::{Call, Kind};
use windtunnel_model::record::{EventRecord, flag};
use windtunnel_node::{ExitStatus, NodeInitReply};
use windtunnel_record::notification::{CallRecorder, CallRecordingReport, FLOW_FIRST};

use crate::Case;
use crate::program::Program;
use crate::support::{Folder, World, next, read_to_end, star, start};

pub(crate) const CASES: &[Case] = &[
    ("every byte of a static server and its client is in the records of calls", transfer),
    ("every byte of a program of Go is in the records of calls", go),
    ("a dynamic program is not supervised, and a failed start says why", others),
    ("a static program that is killed ends its connection at once", killed),
];

/// Supervises all nodes of a world while `body` runs; what was recorded at each node.
fn supervised(world: &World, body: impl FnOnce()) -> (CallRecordingReport, Vec<Vec<EventRecord>>) {
    let nodes = world.node_set.nodes().iter();
    let sockets = nodes.map(|node| (node.id(), node.supervise(None).unwrap())).collect();
    let (supervision, feeds) = CallRecorder::start(sockets, 100_000).unwrap();
    body();
    let findings = supervision.finish();
    let take = |mut feed: Box<dyn windtunnel_record::drain::RecordFeed>| {
        let mut records = Vec::new();
        feed.take(200_000, &mut records);
        records
    };
    (findings, feeds.into_iter().map(take).collect())
}

fn ended(world: &World, node: &str, id: u64) -> ExitStatus {
    loop {
        if let NodeInitReply::Exited { id: other, status } = next(world.node(node))
            && other == id
        {
            return status;
        }
    }
}

/// The calls of each flow and direction, in the order of their times; flows by their own port and
/// that of the other side.
fn streams(records: &[EventRecord]) -> BTreeMap<(u16, u16, bool), Vec<EventRecord>> {
    let side = |flow: u32, kind: Kind| {
        let mut sides = records.iter().filter(|record| record.kind == kind as u8);
        sides.find(|record| record.flow == flow).expect("the flow is defined").extra
    };
    let mut streams: BTreeMap<_, Vec<EventRecord>> = BTreeMap::new();
    let moves =
        [Call::Write, Call::Writev, Call::Sendto, Call::Sendmsg, Call::Sendfile, Call::Read];
    let moves =
        moves.into_iter().chain([Call::Readv, Call::Recvfrom, Call::SpliceTo, Call::SpliceFrom]);
    let moves: Vec<u16> = moves.map(|call| call as u16).collect();
    let calls = records.iter().filter(|record| record.kind == Kind::Call as u8);
    for call in calls.filter(|call| moves.contains(&call.extra)) {
        let reverse = call.flags & flag::REVERSE != 0;
        let flow = (side(call.flow, Kind::FlowFrom), side(call.flow, Kind::FlowTo), reverse);
        streams.entry(flow).or_default().push(*call);
    }
    streams.values_mut().for_each(|calls| calls.sort_by_key(|call| call.time));
    streams
}

/// The bytes of a stream, of which each call begins where the one before has ended.
fn total(calls: &[EventRecord]) -> u32 {
    calls.iter().fold(0, |at, call| {
        assert_eq!(call.args[0], at, "{calls:?}");
        assert_ne!(call.flags & flag::END_UNKNOWN, 0);
        at + call.args[2].cast_signed().max(0).cast_unsigned()
    })
}

fn transfer() {
    let folder = Folder::new("static");
    let body: Vec<u8> = (0..700_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    std::fs::write(folder.path().join("file"), &body).unwrap();
    let world = World::new(star(&["a"]));
    let served = folder.path().to_str().unwrap();
    let (findings, records) = supervised(&world, || {
        let node = world.node("a");
        let server = ["busybox", "httpd", "-f", "-p", "127.0.0.1:8000", "-h", served];
        drop(Program::start(node, 1, &server));
        let watch = windtunnel_node::NodeInitRequest::Watch {
            token: 1,
            what: windtunnel_node::ListeningEndpoint::Tcp(8000),
        };
        node.send(&watch, &[]).unwrap();
        while next(node) != (NodeInitReply::Listening { token: 1 }) {}
        let client = ["busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8000/file"];
        let output = start(node, 2, &client);
        assert_eq!(read_to_end(output).as_bytes(), body, "the output is as without a recorder");
        assert_eq!(ended(&world, "a", 2), ExitStatus::Code(0));
        node.send(
            &windtunnel_node::NodeInitRequest::Signal { id: None, signal: 9, token: None },
            &[],
        )
        .unwrap();
        ended(&world, "a", 1);
    });
    assert_eq!((findings.programs, findings.failed), (2, 0), "{findings:?}");
    assert_eq!(findings.unseen, []);
    let records = &records[0];
    assert!(
        records
            .iter()
            .all(|record| record.kind == Kind::Process as u8 || record.flow >= FLOW_FIRST)
    );
    let streams = streams(records);
    let port = streams.keys().find(|flow| flow.1 == 8000).expect("the client's flow").0;
    let sum = |own, other, reverse| total(&streams[&(own, other, reverse)]);
    let (asked, answered) = (sum(port, 8000, false), sum(port, 8000, true));
    assert_eq!(sum(8000, port, true), asked, "the server reads what the client asks");
    assert_eq!(sum(8000, port, false), answered, "the client reads what the server answers");
    assert!((20..2000).contains(&asked), "{asked}");
    assert!((700_000..702_000).contains(&answered), "{answered}: the file and a header");
    let calls = |call: Call| {
        records
            .iter()
            .filter(move |record| record.kind == Kind::Call as u8 && record.extra == call as u16)
    };
    assert_eq!(calls(Call::Connect).count(), 1);
    assert_eq!(calls(Call::Accept).count(), 1);
    assert!(calls(Call::Close).count() >= 1);
}

fn others() {
    let world = World::new(star(&["a"]));
    let (findings, records) = supervised(&world, || {
        assert_eq!(world.output("a", "echo hello"), "hello\n");
        drop(start(world.node("a"), 2, &["/no/such/program"]));
        let failed = next(world.node("a"));
        assert!(matches!(failed, NodeInitReply::SpawnFailed { id: 2, errno: 2, .. }), "{failed:?}");
    });
    assert_eq!((findings, records), (CallRecordingReport::default(), vec![vec![]]));
}

fn killed() {
    let world = World::new(star(&["a"]));
    let script = "import socket, sys\n\
        l = socket.create_server(('127.0.0.1', 9000)); print('ready', flush=True)\n\
        s, _ = l.accept(); print(s.recv(100).decode().strip(), flush=True)\n\
        print(s.recv(100), flush=True)";
    let (findings, _) = supervised(&world, || {
        let node = world.node("a");
        let mut server = Program::start(node, 1, &["python3", "-c", script]);
        assert_eq!(server.line(), "ready");
        let mut client = Program::start(node, 2, &["busybox", "nc", "127.0.0.1", "9000"]);
        client.go_on();
        assert_eq!(server.line(), "");
        node.send(
            &windtunnel_node::NodeInitRequest::Signal { id: Some(2), signal: 9, token: None },
            &[],
        )
        .unwrap();
        assert_eq!(server.line(), "b''", "the end of the connection");
        assert_eq!(ended(&world, "a", 1), ExitStatus::Code(0));
    });
    assert_eq!((findings.programs, findings.failed), (1, 0), "{findings:?}");
    assert!(Duration::from_nanos(findings.spent_ns) > Duration::ZERO);
}

const GO: &str = r#"package main

import (
	"fmt"
	"io"
	"net"
	"time"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:7100")
	if err != nil {
		panic(err)
	}
	go func() {
		s, _ := l.Accept()
		io.Copy(s, s)
		s.Close()
	}()
	c, err := net.Dial("tcp", "127.0.0.1:7100")
	if err != nil {
		panic(err)
	}
	b := make([]byte, 100)
	began := time.Now()
	for i := 0; i < 2000; i++ {
		c.Write(b)
		io.ReadFull(c, b)
	}
	took := time.Since(began)
	c.(*net.TCPConn).CloseWrite()
	n, _ := io.Copy(io.Discard, c)
	c.Close()
	fmt.Println("rest", n)
	fmt.Println(took.Nanoseconds() / 2000)
}
"#;

fn go() {
    let folder = Folder::new("go");
    let source = folder.path().join("main.go");
    std::fs::write(&source, GO).unwrap();
    let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| {
        std::process::Command::new(go).arg("version").output().is_ok_and(|out| out.status.success())
    });
    let Some(go) = go else { return println!("skipped: missing: go") };
    let program = folder.path().join("program");
    let program = program.to_str().unwrap();
    let cache = folder.path().join("cache");
    let built = std::process::Command::new(go)
        .args(["build", "-o", program, source.to_str().unwrap()])
        .envs([("CGO_ENABLED", "0"), ("GOFLAGS", "-mod=mod"), ("GO111MODULE", "off")])
        .envs([("GOCACHE", cache.to_str().unwrap()), ("HOME", folder.path().to_str().unwrap())])
        .status();
    assert!(built.unwrap().success(), "go builds");
    let world = World::new(star(&["a"]));
    let (findings, records) = supervised(&world, || {
        let mut program = Program::start(world.node("a"), 1, &[program]);
        assert_eq!(program.line(), "rest 0");
        println!("    {} ns a round trip, supervised", program.line());
        assert_eq!(ended(&world, "a", 1), ExitStatus::Code(0));
    });
    println!("    {} ns a call of {}", findings.spent_ns / findings.shown, findings.shown);
    assert_eq!((findings.programs, findings.failed), (1, 0), "{findings:?}");
    let streams = streams(&records[0]);
    let port = streams.keys().find(|flow| flow.1 == 7100).expect("the client's flow").0;
    let sums = [(port, 7100, false), (port, 7100, true), (7100, port, false), (7100, port, true)];
    for stream in sums {
        assert_eq!(total(&streams[&stream]), 200_000, "{stream:?}");
    }
    let mut alone = Program::start(world.node("a"), 2, &[program]);
    assert_eq!(alone.line(), "rest 0");
    println!("    {} ns a round trip, no supervisor", alone.line());
}
