//! A command in a node on another machine, for a client of the run folder's control socket: its
//! input and output go between the descriptors that came with the request and the machine.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use windtunnel_cluster::parts::{CommandSender, RemoteCommandRunner};
use windtunnel_cluster::protocol::exec::{FromCommand, Octets, ToCommand};
use windtunnel_control::{ConnectionInput, ControlConnection, ControlReply, ControlRequest};
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::terminal::{self, RawMode, TerminalSize};

/// Runs the command of `request` on a thread of its own, until it ends or the client has gone.
pub(crate) fn start(
    runner: RemoteCommandRunner,
    connection: ControlConnection,
    request: ControlRequest,
    ends: Vec<OwnedFd>,
) {
    thread::spawn(move || {
        let Ok([input, output, error]) = <[OwnedFd; 3]>::try_from(ends) else {
            let message = "exec needs three descriptors".to_owned();
            return answer_one(&mut { connection }, &ControlReply::Error { message, hint: None });
        };
        let ends = [File::from(input), File::from(output), File::from(error)];
        live(&runner, connection, request, ends);
    });
}

fn live(
    runner: &RemoteCommandRunner,
    connection: ControlConnection,
    request: ControlRequest,
    ends: [File; 3],
) {
    let [input, output, error] = ends;
    let wants_terminal = matches!(request, ControlRequest::Exec { terminal: true, .. });
    let size = wants_terminal.then(|| terminal::size(&input).ok()).flatten();
    // The terminal there makes of what is typed what terminals do; this one must not do it, too.
    let raw = size.and_then(|_| RawMode::enter(&input).ok());
    let (sender, messages) = RemoteCommandRunner::channel();
    let (reply, replies) = channel();
    let typing = sender.clone();
    let resized = size.and_then(|_| input.try_clone().ok());
    thread::spawn(move || type_all(input, &typing));
    let talk = CommandClientSession { connection, sender, replies, resized, size };
    let listener = thread::spawn(move || talk.listen());
    let (mut output, mut error) = (output, error);
    let size = size.map(|size| (size.rows, size.columns));
    let ran = runner.run(request, size, messages, |message| match message {
        // A client that does not read any more goes without.
        FromCommand::Output { error: true, bytes } => drop(error.write_all(&bytes.0)),
        FromCommand::Output { bytes, .. } => drop(output.write_all(&bytes.0)),
        FromCommand::Reply { reply: said } => drop(reply.send(said)),
        _ => {}
    });
    if let Err(failure) = ran {
        let cause = std::error::Error::source(&failure);
        let message = cause.map_or_else(|| failure.to_string(), ToString::to_string);
        let _ = reply.send(ControlReply::Error { message, hint: failure.hint() });
    }
    drop((reply, raw, output, error));
    // It ends with the last reply.
    let _ = listener.join();
}

fn type_all(mut input: File, sender: &CommandSender) {
    let mut buffer = vec![0; PIECE];
    while wait_for(&input, sender) {
        let Ok(got @ 1..) = input.read(&mut buffer) else { break };
        let bytes = Octets(buffer[..got].to_vec());
        if !sender.send(ToCommand::Input { bytes }) {
            return;
        }
    }
    sender.send(ToCommand::InputEnds);
}

/// Waits for input; false when the command has ended: input after that is for another program.
fn wait_for(input: &File, sender: &CommandSender) -> bool {
    while !sender.is_closed() {
        let mut watched = [PollFd::new(input, PollFlags::IN)];
        match poll::wait(&mut watched, Some(STEP)) {
            Ok(0) => {}
            // What is wrong shows when it is read.
            _ => return true,
        }
    }
    false
}

/// The conversation with the client.
struct CommandClientSession {
    connection: ControlConnection,
    sender: CommandSender,
    replies: Receiver<ControlReply>,
    /// The terminal, for its size.
    resized: Option<File>,
    size: Option<TerminalSize>,
}

impl CommandClientSession {
    fn listen(mut self) {
        loop {
            match self.replies.recv_timeout(STEP) {
                Ok(reply) => {
                    let last = reply.ends_command();
                    answer_one(&mut self.connection, &reply);
                    if last {
                        return;
                    }
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            }
            self.follow_size();
            while let Some(incoming) = self.connection.receive() {
                match incoming {
                    ConnectionInput::Request(request, _) => {
                        if let ControlRequest::Signal { signal } = *request {
                            self.sender.send(ToCommand::Signal { signal });
                        }
                    }
                    ConnectionInput::Unreadable(_) => {}
                    // What a terminal does to its programs when it goes away.
                    ConnectionInput::Closed => {
                        self.sender.send(ToCommand::Signal { signal: SIGHUP });
                        return;
                    }
                }
            }
        }
    }

    fn follow_size(&mut self) {
        let now = self.resized.as_ref().and_then(|terminal| terminal::size(terminal).ok());
        if now.is_some() && now != self.size {
            self.size = now;
            if let Some(TerminalSize { rows, columns }) = now {
                self.sender.send(ToCommand::Size { rows, columns });
            }
        }
    }
}

fn answer_one(connection: &mut ControlConnection, reply: &ControlReply) {
    // If the client has gone, the next receive shows it.
    let _ = connection.reply(reply);
    let _ = connection.flush();
}

const PIECE: usize = 16 * 1024;
/// How soon signals and sizes are seen.
const STEP: Duration = Duration::from_millis(20);
const SIGHUP: i32 = 1;
