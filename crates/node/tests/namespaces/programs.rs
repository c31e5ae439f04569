//! Programs: starting, signals, exits, terminals, watching for listeners.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use windtunnel_node::{ExitStatus, ListeningEndpoint, NodeInitReply, NodeInitRequest};
use windtunnel_sys::terminal;

use crate::Case;
use crate::support::{World, next, read_to_end, spawn, star, start};

pub(crate) const CASES: &[Case] = &[
    ("exits are reported by program", exits),
    ("a program that cannot start says why", failures),
    ("variables and the folder arrive", surroundings),
    ("a signal reaches a program's whole group", signals),
    ("a signal for all ends what programs have left behind", all_processes),
    ("two hundred programs that end at once are all reported", crowd),
    ("a listener is seen without connecting to it", listeners),
    ("a watch that is forgotten is not answered", unwatched),
    ("a program can own a terminal", terminals),
];

fn exits() {
    let world = World::new(star(&["a"]));
    assert_eq!(world.shell("a", "exit 7").1, ExitStatus::Code(7));
    assert_eq!(world.shell("a", "kill -TERM $$").1, ExitStatus::Signal(15));
}

fn failures() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    drop(start(node, 5, &["/no/such/program", "x"]));
    let message = "cannot run the program \"/no/such/program\"".to_string();
    assert_eq!(
        next(node),
        NodeInitReply::SpawnFailed { id: 5, message, errno: 2, by_program: true }
    );
    let mut request = spawn(6, &["true"]);
    request.cwd = Some("/no/such/folder".into());
    let null = File::open("/dev/null").unwrap();
    let stdio = [null.as_fd(), null.as_fd(), null.as_fd()];
    node.send(&NodeInitRequest::Spawn(request), &stdio).unwrap();
    let message = "cannot enter the working folder \"/no/such/folder\"".to_string();
    assert_eq!(
        next(node),
        NodeInitReply::SpawnFailed { id: 6, message, errno: 2, by_program: false }
    );
    node.send(&NodeInitRequest::Spawn(spawn(7, &["true"])), &stdio[..2]).unwrap();
    assert!(matches!(next(node), NodeInitReply::SpawnFailed { id: 7, errno: 0, .. }));
}

fn surroundings() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    let mut request = spawn(1, &["sh", "-c", "pwd; echo $COLOUR $WINDTUNNEL_NODE"]);
    request.cwd = Some("/usr".into());
    request.env.insert("COLOUR".into(), "blue".into());
    request.env.insert("WINDTUNNEL_NODE".into(), "another".into());
    let (reader, writer) = std::io::pipe().unwrap();
    let null = File::open("/dev/null").unwrap();
    node.send(&NodeInitRequest::Spawn(request), &[null.as_fd(), writer.as_fd(), writer.as_fd()])
        .unwrap();
    drop(writer);
    assert_eq!(read_to_end(reader.into()), "/usr\nblue a\n");
}

fn signals() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    // The output ends when the last of the group has gone.
    let output = start(node, 3, &["sh", "-c", "sleep 1000 | sleep 1000"]);
    assert!(matches!(next(node), NodeInitReply::Spawned { id: 3, .. }));
    node.send(&NodeInitRequest::Signal { id: Some(3), signal: 9, token: None }, &[]).unwrap();
    assert_eq!(next(node), NodeInitReply::Exited { id: 3, status: ExitStatus::Signal(9) });
    assert_eq!(read_to_end(output), "");
    // A process that is gone gets no signal, which is not a failure; an unknown signal is one.
    node.send(&NodeInitRequest::Signal { id: Some(3), signal: 15, token: None }, &[]).unwrap();
    node.send(&NodeInitRequest::Signal { id: None, signal: 99, token: None }, &[]).unwrap();
    assert!(matches!(next(node), NodeInitReply::SignalFailed { id: None, .. }));
}

fn all_processes() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    let output = start(node, 1, &["sh", "-c", "setsid sleep 1000 & echo started"]);
    assert!(matches!(next(node), NodeInitReply::Spawned { id: 1, .. }));
    assert_eq!(next(node), NodeInitReply::Exited { id: 1, status: ExitStatus::Code(0) });
    node.send(&NodeInitRequest::Signal { id: None, signal: 9, token: None }, &[]).unwrap();
    assert_eq!(read_to_end(output), "started\n");
}

fn crowd() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut request = spawn(0, &["sh", "-c", "read line; exit 3"]);
    for id in 0..200 {
        request.id = id;
        let fds = [reader.as_fd(), writer.as_fd(), writer.as_fd()];
        node.send(&NodeInitRequest::Spawn(request.clone()), &fds).unwrap();
        assert!(matches!(next(node), NodeInitReply::Spawned { .. }));
    }
    // The last writer goes with the signal's victims, so all of them end together.
    node.send(&NodeInitRequest::Signal { id: None, signal: 15, token: None }, &[]).unwrap();
    let mut ended: Vec<u64> = (0..200)
        .map(|_| match next(node) {
            NodeInitReply::Exited { id, status: ExitStatus::Signal(15) } => id,
            other => panic!("{other:?}"),
        })
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..200).collect::<Vec<_>>());
}

fn listeners() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    let path = std::env::temp_dir().join(format!("windtunnel-listener-{}", std::process::id()));
    let path = path.to_str().unwrap();
    node.send(&NodeInitRequest::Watch { token: 1, what: ListeningEndpoint::Tcp(80) }, &[]).unwrap();
    node.send(
        &NodeInitRequest::Watch { token: 2, what: ListeningEndpoint::Unix(path.into()) },
        &[],
    )
    .unwrap();
    // A connection would be accepted and reported.
    let server = format!(
        "import socket, select\n\
         t = socket.create_server(('', 80)); u = socket.socket(socket.AF_UNIX)\n\
         u.bind('{path}'); u.listen()\n\
         print(select.select([t, u], [], [], 0.3)[0])"
    );
    let output = start(node, 9, &["/usr/bin/env", "python3", "-c", &server]);
    let mut replies: Vec<NodeInitReply> = (0..3).map(|_| next(node)).collect();
    replies.sort_by_key(|reply| format!("{reply:?}"));
    let listening = [NodeInitReply::Listening { token: 1 }, NodeInitReply::Listening { token: 2 }];
    assert_eq!(replies[..2], listening);
    assert!(matches!(replies[2], NodeInitReply::Spawned { id: 9, .. }));
    assert_eq!(read_to_end(output), "[]\n");
    std::fs::remove_file(path).unwrap();
}

fn unwatched() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    node.send(&NodeInitRequest::Watch { token: 1, what: ListeningEndpoint::Tcp(81) }, &[]).unwrap();
    node.send(&NodeInitRequest::Unwatch { token: 1 }, &[]).unwrap();
    node.send(&NodeInitRequest::Watch { token: 2, what: ListeningEndpoint::Tcp(81) }, &[]).unwrap();
    let server = "import socket, sys; s = socket.create_server(('', 81)); sys.stdin.read(1)";
    let _output =
        start(node, 1, &["/usr/bin/env", "python3", "-c", &format!("{server}; s.accept()")]);
    assert!(matches!(next(node), NodeInitReply::Spawned { id: 1, .. }));
    assert_eq!(next(node), NodeInitReply::Listening { token: 2 });
}

fn terminals() {
    let world = World::new(star(&["a"]));
    let node = world.node("a");
    let pair = terminal::open_pair().unwrap();
    let mut request = spawn(4, &["sh", "-c", "read word </dev/tty; test -t 1 && echo got:$word"]);
    request.terminal = true;
    let end = pair.terminal.as_fd();
    node.send(&NodeInitRequest::Spawn(request), &[end, end, end]).unwrap();
    assert!(matches!(next(node), NodeInitReply::Spawned { id: 4, .. }));
    let mut controller = File::from(pair.controller);
    controller.write_all(b"hello\n").unwrap();
    let mut text = String::new();
    while !text.contains("got:hello") {
        let mut buffer = [0; 256];
        let bytes = controller.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..bytes]).unwrap());
    }
    assert_eq!(next(node), NodeInitReply::Exited { id: 4, status: ExitStatus::Code(0) });
}
