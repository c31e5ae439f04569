//! Commands and requests to a part's control socket, which the test serves.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use windtunnel_control::{
    ConnectionInput, ControlConnection, ControlListener, ControlReply, ControlRequest,
};
use windtunnel_sys::terminal::{self, TerminalSize};

use super::fake_part::FakePart;
use super::key;
use super::live::{Live, PATIENCE};
use super::runs::{RUN, setup};
use crate::parts::RemoteCommandRunner;
use crate::protocol::exec::{FromCommand, Octets, ToCommand};
use crate::{AgentClientError, ClusterKey, PartSessions};

/// An agent with a part that runs.
struct Running {
    parts: PartSessions,
    folder: PathBuf,
    _agent: Live,
    _part: FakePart,
}

fn running(key: &ClusterKey) -> Running {
    let part = FakePart::new();
    let agent = Live::start_with("a", key, &[], |agent| {
        agent.worker = Some(part.worker());
        agent.folder = part.parts_folder();
        agent.limits.deny_exec = ["nc*".to_owned()].into();
    });
    let parts = PartSessions::begin(&setup(&[&agent], key), key);
    let folder = part.setup().folder;
    fs::create_dir_all(&folder).unwrap();
    Running { parts, folder, _agent: agent, _part: part }
}

/// The next request on a connection, with its descriptors; `None` when it is closed.
fn next(connection: &mut ControlConnection) -> Option<(ControlRequest, Vec<OwnedFd>)> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match connection.receive() {
            Some(ConnectionInput::Request(request, ends)) => return Some((*request, ends)),
            Some(ConnectionInput::Unreadable(why)) => panic!("{why}"),
            Some(ConnectionInput::Closed) => return None,
            None => assert!(Instant::now() < patience, "no request comes in time"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Serves one connection of the control socket in `folder`.
fn serve(
    folder: &Path,
    serve: impl FnOnce(&mut ControlConnection) + Send + 'static,
) -> JoinHandle<()> {
    let listener = ControlListener::open(folder).unwrap();
    thread::spawn(move || {
        let patience = Instant::now() + PATIENCE;
        let mut connection = loop {
            assert!(Instant::now() < patience, "no client comes in time");
            match listener.accept("net").unwrap() {
                Some(connection) => break connection,
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        serve(&mut connection);
    })
}

fn exec(words: &[&str], cwd: Option<&str>) -> ControlRequest {
    ControlRequest::Exec {
        node: "a".to_owned(),
        argv: words.iter().map(|word| (*word).to_owned()).collect(),
        cwd: cwd.map(str::to_owned),
        env: BTreeMap::new(),
        terminal: false,
    }
}

/// Runs a command with these messages to it: all that it wrote, by stream, and its replies.
fn run(
    runner: &RemoteCommandRunner,
    request: ControlRequest,
    size: Option<(u16, u16)>,
    to_command: Vec<ToCommand>,
) -> (Result<(), AgentClientError>, [Vec<u8>; 2], Vec<ControlReply>) {
    let (sender, messages) = RemoteCommandRunner::channel();
    for message in to_command {
        assert!(sender.send(message));
    }
    let (mut outputs, mut replies) = ([Vec::new(), Vec::new()], Vec::new());
    let ran = runner.run(request, size, messages, |message| match message {
        FromCommand::Output { error, bytes } => {
            assert!(
                !matches!(replies.last(), Some(ControlReply::Exited { .. })),
                "output after the end"
            );
            outputs[usize::from(error)].extend(bytes.0);
        }
        FromCommand::Reply { reply } => replies.push(reply),
    });
    drop(sender);
    (ran, outputs, replies)
}

#[track_caller]
fn cause(error: &AgentClientError) -> String {
    assert!(matches!(error, AgentClientError::Broken { .. }), "{error:?}");
    std::error::Error::source(error).unwrap().to_string()
}

#[test]
fn a_request_to_a_part_is_answered_by_its_control_socket() {
    let key = key();
    let running = running(&key);
    let error = running.parts.agents().control(0, &ControlRequest::Stop).unwrap_err();
    assert!(cause(&error).starts_with("the part does not listen: "), "{}", cause(&error));
    let server = serve(&running.folder, |connection| {
        let (request, ends) = next(connection).unwrap();
        assert_eq!((request, ends.len()), (ControlRequest::Stop, 0));
        connection.reply(&ControlReply::Done).unwrap();
        assert!(next(connection).is_none());
    });
    assert_eq!(
        running.parts.agents().control(0, &ControlRequest::Stop).unwrap(),
        ControlReply::Done
    );
    server.join().unwrap();
}

#[test]
fn requests_to_a_run_that_is_not_there_are_refused_with_its_number() {
    let key = key();
    let agent = Live::start("a", &key, &[]);
    let client = agent.client(&key).unwrap();
    let text = "no run 0000000000000abc is here";
    assert_eq!(cause(&client.control(RUN, &ControlRequest::Stop).unwrap_err()), text);
    let home = tempfile::tempdir().unwrap();
    assert_eq!(cause(&client.fetch(RUN, home.path()).unwrap_err()), text);
}

#[test]
fn a_command_reads_its_input_and_all_that_it_wrote_comes_before_its_end() {
    let key = key();
    let running = running(&key);
    let server = serve(&running.folder, |connection| {
        let (request, ends) = next(connection).unwrap();
        assert_eq!(request, exec(&["rev"], None));
        connection.reply(&ControlReply::Started { pid: 7 }).unwrap();
        let [mut input, mut output, mut error] =
            <[OwnedFd; 3]>::try_from(ends).unwrap().map(File::from);
        let mut text = Vec::new();
        input.read_to_end(&mut text).unwrap();
        error.write_all(b"no\xff").unwrap();
        let many: Vec<u8> = text.iter().copied().cycle().take(300_000).collect();
        output.write_all(&many).unwrap();
        drop((output, error));
        connection.reply(&ControlReply::Exited { code: 3 }).unwrap();
        assert!(next(connection).is_none());
    });
    let input = |text: &str| ToCommand::Input { bytes: Octets(text.into()) };
    let to_command = vec![input("ab"), input("c"), ToCommand::InputEnds];
    let (ran, [output, error], replies) =
        run(&running.parts.agents().runner(0), exec(&["rev"], None), None, to_command);
    ran.unwrap();
    let expected: Vec<u8> = b"abc".iter().copied().cycle().take(300_000).collect();
    assert!(output == expected, "{} bytes", output.len());
    assert_eq!(error, b"no\xff");
    assert_eq!(replies, [ControlReply::Started { pid: 7 }, ControlReply::Exited { code: 3 }]);
    server.join().unwrap();
}

#[test]
fn a_command_that_cannot_be_started_ends_with_the_reason_and_no_error() {
    let key = key();
    let running = running(&key);
    let not_run = ControlReply::NotRun { message: "no such program".to_owned(), exit: Some(127) };
    let reply = not_run.clone();
    let server = serve(&running.folder, move |connection| {
        drop(next(connection).unwrap());
        connection.reply(&reply).unwrap();
        assert!(next(connection).is_none());
    });
    let (ran, outputs, replies) =
        run(&running.parts.agents().runner(0), exec(&["nothing"], None), None, Vec::new());
    ran.unwrap();
    assert_eq!((outputs, replies), ([Vec::new(), Vec::new()], vec![not_run]));
    server.join().unwrap();
}

#[test]
fn a_command_whose_folder_is_missing_there_runs_in_the_parts_and_says_so() {
    let key = key();
    let running = running(&key);
    let folder = running.folder.to_str().unwrap().to_owned();
    let expected = exec(&["ls"], Some(&folder));
    let server = serve(&running.folder, move |connection| {
        let (request, ends) = next(connection).unwrap();
        assert_eq!(request, expected);
        drop(ends);
        connection.reply(&ControlReply::Exited { code: 0 }).unwrap();
        assert!(next(connection).is_none());
    });
    let missing = exec(&["ls"], Some("/no/such/folder"));
    let (ran, [_, error], _) = run(&running.parts.agents().runner(0), missing, None, Vec::new());
    ran.unwrap();
    let note =
        format!("windtunnel: there is no folder /no/such/folder there: in {folder} instead\n");
    assert_eq!(String::from_utf8(error).unwrap(), note);
    server.join().unwrap();
}

#[test]
fn a_program_that_the_owner_denies_is_not_run_whatever_its_folder() {
    let key = key();
    let running = running(&key);
    for word in ["nc", "/usr/bin/ncat"] {
        let (ran, ..) =
            run(&running.parts.agents().runner(0), exec(&[word], None), None, Vec::new());
        let text = format!("the machine's owner does not allow to run {word} (nc*)");
        assert_eq!(cause(&ran.unwrap_err()), text);
    }
}

#[test]
fn signals_go_to_the_command_and_the_size_of_a_terminal_follows() {
    let key = key();
    let running = running(&key);
    let (sizes, seen): (_, Receiver<TerminalSize>) = channel();
    let server = serve(&running.folder, move |connection| {
        let (_, ends) = next(connection).unwrap();
        let first = terminal::size(&ends[0]).unwrap();
        sizes.send(first).unwrap();
        let (signal, _) = next(connection).unwrap();
        assert_eq!(signal, ControlRequest::Signal { signal: 2 });
        // The size was sent before the signal.
        sizes.send(terminal::size(&ends[2]).unwrap()).unwrap();
        drop(ends);
        connection.reply(&ControlReply::Exited { code: 130 }).unwrap();
        assert!(next(connection).is_none());
    });
    let (sender, messages) = RemoteCommandRunner::channel();
    let runner = running.parts.agents().runner(0);
    let running_command = thread::spawn(move || {
        let mut replies = Vec::new();
        let ran = runner.run(exec(&["sh"], None), Some((24, 80)), messages, |message| {
            if let FromCommand::Reply { reply } = message {
                replies.push(reply);
            }
        });
        (ran, replies)
    });
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), TerminalSize { rows: 24, columns: 80 });
    assert!(sender.send(ToCommand::Size { rows: 50, columns: 132 }));
    assert!(sender.send(ToCommand::Signal { signal: 2 }));
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), TerminalSize { rows: 50, columns: 132 });
    let (ran, replies) = running_command.join().unwrap();
    ran.unwrap();
    assert_eq!(replies, [ControlReply::Exited { code: 130 }]);
    server.join().unwrap();
}

#[test]
fn a_command_whose_client_goes_is_ended() {
    let key = key();
    let running = running(&key);
    let (started, is_started) = channel();
    let server = serve(&running.folder, move |connection| {
        let (_, _ends) = next(connection).unwrap();
        started.send(()).unwrap();
        // The control socket's rule: the command ends when the connection does.
        assert!(next(connection).is_none());
    });
    let (sender, messages) = RemoteCommandRunner::channel();
    let runner = running.parts.agents().runner(0);
    let command = thread::spawn(move || runner.run(exec(&["cat"], None), None, messages, |_| {}));
    is_started.recv_timeout(PATIENCE).unwrap();
    drop(sender);
    command.join().unwrap().unwrap();
    server.join().unwrap();
}
