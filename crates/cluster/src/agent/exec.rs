//! Commands in nodes of a part: between a stream and the part's control socket, which wants
//! descriptors.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use quinn::SendStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use windtunnel_control::{ControlClient, ControlRequest};
use windtunnel_sys::terminal::{self, PseudoterminalPair, TerminalSize};

use super::limits::AgentResourceLimits;
use crate::answer_stream::AgentCall;
use crate::protocol::exec::{FromCommand, Octets, ToCommand};
use crate::stream;
use crate::stream_limit::CountedStream;

/// Runs the command of `request` in a node of the part in `folder`, with a terminal if there is a
/// size of one.
pub(super) async fn exec(
    folder: Result<PathBuf, String>,
    limits: AgentResourceLimits,
    request: ControlRequest,
    size: Option<(u16, u16)>,
    call: AgentCall<()>,
) {
    let AgentCall { mut to, rest, .. } = call;
    let began = folder.and_then(|folder| {
        allowed(&limits, &request)?;
        AgentExecSession::begin(&folder, request, size)
            .map_err(|error| format!("cannot run it: {error}"))
    });
    let command = match began {
        Ok(command) => command,
        Err(message) => return to.finish(Err(message)).await,
    };
    if to.say(Ok(())).await.is_ok() {
        command.live(to.into_stream(), rest).await;
    }
}

fn allowed(limits: &AgentResourceLimits, request: &ControlRequest) -> Result<(), String> {
    let ControlRequest::Exec { argv, .. } = request else {
        return Err("that is not a command".to_owned());
    };
    let word = argv.first().map_or("", String::as_str);
    match limits.denied(word) {
        Some(pattern) => {
            Err(format!("the machine's owner does not allow to run {word} ({pattern})"))
        }
        None => Ok(()),
    }
}

/// A command that runs, or is about to.
struct AgentExecSession {
    client: ControlClient,
    /// What becomes its standard input, or plays the user at its terminal.
    input: File,
    /// What it writes: standard output or the terminal, and standard error.
    outputs: Vec<(bool, File)>,
    has_terminal: bool,
    note: Option<String>,
}

impl AgentExecSession {
    fn begin(folder: &Path, request: ControlRequest, size: Option<(u16, u16)>) -> io::Result<Self> {
        let (request, note) = at_home(folder, request);
        let mut client = ControlClient::connect(folder).map_err(io::Error::other)?;
        let Some((rows, columns)) = size else {
            let (stdin, input) = pipe()?;
            let (output, stdout) = pipe()?;
            let (error, stderr) = pipe()?;
            let ends = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
            client.send(&request, &ends).map_err(io::Error::other)?;
            let outputs = vec![(false, File::from(output)), (true, File::from(error))];
            let input = File::from(input);
            return Ok(AgentExecSession { client, input, outputs, has_terminal: false, note });
        };
        let PseudoterminalPair { controller, terminal } = terminal::open_pair()?;
        terminal::set_size(&controller, TerminalSize { rows, columns })?;
        let ends = [terminal.as_fd(), terminal.as_fd(), terminal.as_fd()];
        client.send(&request, &ends).map_err(io::Error::other)?;
        let input = File::from(controller);
        let outputs = vec![(false, input.try_clone()?)];
        Ok(AgentExecSession { client, input, outputs, has_terminal: true, note })
    }

    async fn live(self, to: SendStream, mut from: CountedStream) {
        let AgentExecSession { mut client, input, outputs, has_terminal, note } = self;
        // Bounded, so that a command that writes faster than the network carries has to wait.
        let (sender, messages) = channel(WAITING_MAX);
        if let Some(note) = note {
            let bytes = Octets(note.into_bytes());
            let _ = sender.send(FromCommand::Output { error: true, bytes }).await;
        }
        let Ok(control) = client.sender() else { return };
        let readers: Vec<_> = outputs
            .into_iter()
            .map(|(error, output)| {
                let sender = sender.clone();
                thread::spawn(move || read_all(error, output, &sender))
            })
            .collect();
        thread::spawn(move || {
            while let Ok(reply) = client.receive() {
                let last = reply.ends_command();
                if last {
                    finish(&readers);
                }
                let _ = sender.blocking_send(FromCommand::Reply { reply });
                if last {
                    return;
                }
            }
        });
        let (write, written) = channel(WAITING_MAX);
        thread::spawn(move || write_all(input, written, &control, has_terminal));
        let inward = async {
            while let Ok(message) = stream::receive::<ToCommand>(&mut from, BYTES_MAX).await {
                if write.send(message).await.is_err() {
                    break;
                }
            }
        };
        // When either side ends, dropping the other ends the connection, and with it the command.
        tokio::select! { () = pass(messages, to) => {}, () = inward => {} }
    }
}

/// The command's folder may not be on this machine.
fn at_home(folder: &Path, request: ControlRequest) -> (ControlRequest, Option<String>) {
    match request {
        ControlRequest::Exec { node, argv, cwd: Some(cwd), env, terminal } => {
            let missing = !Path::new(&cwd).is_dir();
            let here = folder.to_string_lossy().into_owned();
            let note = missing.then(|| {
                format!("windtunnel: there is no folder {cwd} there: in {here} instead\n")
            });
            let cwd = Some(if missing { here } else { cwd });
            (ControlRequest::Exec { node, argv, cwd, env, terminal }, note)
        }
        other => (other, None),
    }
}

async fn pass(mut messages: Receiver<FromCommand>, mut to: SendStream) {
    while let Some(message) = messages.recv().await {
        if stream::send(&mut to, &message).await.is_err() {
            return;
        }
    }
    let _ = to.finish();
    let _ = to.stopped().await;
}

fn read_all(error: bool, mut output: File, sender: &Sender<FromCommand>) {
    let mut buffer = vec![0; PIECE];
    // EIO: no process has the terminal open any more.
    while let Ok(got @ 1..) = output.read(&mut buffer) {
        let bytes = Octets(buffer[..got].to_vec());
        if sender.blocking_send(FromCommand::Output { error, bytes }).is_err() {
            return;
        }
    }
}

/// All that the command wrote comes before its end. Processes that it left behind may go on
/// writing; that is not waited for.
fn finish(readers: &[thread::JoinHandle<()>]) {
    for _ in 0..FINISH_STEPS {
        if readers.iter().all(thread::JoinHandle::is_finished) {
            return;
        }
        thread::sleep(FINISH_STEP);
    }
}

fn write_all(
    input: File,
    mut written: Receiver<ToCommand>,
    control: &windtunnel_control::client::RequestSender,
    has_terminal: bool,
) {
    let mut input = Some(input);
    while let Some(message) = written.blocking_recv() {
        match (message, &mut input) {
            // A command that does not read has ended, or will.
            (ToCommand::Input { bytes }, Some(input)) => drop(input.write_all(&bytes.0)),
            (ToCommand::InputEnds, Some(controller)) if has_terminal => {
                drop(controller.write_all(&[END_OF_FILE]));
            }
            (ToCommand::InputEnds, _) => input = None,
            (ToCommand::Signal { signal }, _) => {
                drop(control.send(&ControlRequest::Signal { signal }));
            }
            (ToCommand::Size { rows, columns }, Some(controller)) if has_terminal => {
                drop(terminal::set_size(controller, TerminalSize { rows, columns }));
            }
            _ => {}
        }
    }
}

/// The reading and the writing end.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Ctrl-D.
const END_OF_FILE: u8 = 4;
const WAITING_MAX: usize = 16;
const PIECE: usize = 16 * 1024;
pub(crate) const BYTES_MAX: usize = 1 << 20;
const FINISH_STEP: Duration = Duration::from_millis(5);
const FINISH_STEPS: u32 = 100;
