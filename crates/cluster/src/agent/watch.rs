//! The streams of runs: to watchers, to the other agents, to a part's control socket, and of files.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use quinn::SendStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::answer_stream::{AgentCall, AnswerSender};
use crate::carrier::{AgentConnectionPool, CarrierEvent};
use crate::protocol::AgentRequest;
use crate::protocol::answers::{FetchedRunMessage, WatchedRunMessage};
use crate::protocol::run::{PartCommand, RunMemberMessage};
use crate::stream;
use crate::stream_limit::CountedStream;

/// Sends a watcher all answers, to the end.
pub(super) async fn send_answers(
    mut to: AnswerSender<WatchedRunMessage>,
    mut answers: UnboundedReceiver<Result<WatchedRunMessage, String>>,
) {
    while let Some(answer) = answers.recv().await {
        if to.say(answer).await.is_err() {
            return;
        }
    }
    to.end();
}

/// The way to a watcher of a run: what it is sent, or why it is none.
#[derive(Debug, Clone)]
pub(crate) struct RunWatcherSender(pub(crate) UnboundedSender<Result<WatchedRunMessage, String>>);

impl RunWatcherSender {
    pub(super) fn send(&self, message: Result<WatchedRunMessage, String>) {
        // It may have gone.
        let _ = self.0.send(message);
    }
}

/// A watcher of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatcherId {
    pub(crate) run: u64,
    /// Among the watchers of all runs here.
    pub(crate) number: u64,
}

/// Receives a watcher's orders, until it goes.
pub(super) async fn receive_orders(
    mut from: CountedStream,
    watcher: WatcherId,
    events: UnboundedSender<CarrierEvent>,
) {
    while let Ok(order) = stream::receive::<PartCommand>(&mut from, ORDER_BYTES_MAX).await {
        let _ = events.send(CarrierEvent::Ordered { watcher, order: Some(order) });
    }
    let _ = events.send(CarrierEvent::Ordered { watcher, order: None });
}

/// To another agent: what is sent goes to its part of the run, in order. `member` is this one.
pub(crate) fn speaker(
    carrier: AgentConnectionPool,
    to: SocketAddr,
    run: u64,
    member: u16,
) -> UnboundedSender<RunMemberMessage> {
    let (say, said) = unbounded_channel();
    tokio::task::spawn_local(async move {
        // That an agent cannot be reached, the mesh finds out.
        let _ = speak(carrier, to, run, member, said).await;
    });
    say
}

async fn speak(
    carrier: AgentConnectionPool,
    to: SocketAddr,
    run: u64,
    member: u16,
    mut said: UnboundedReceiver<RunMemberMessage>,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let Some(first) = said.recv().await else { return Ok(()) };
    let connection = carrier.connection(to).await?;
    let (mut to, _) = connection.open_bi().await.map_err(|error| error.to_string())?;
    stream::send(&mut to, AgentRequest::receive(run, member).message()).await.map_err(text)?;
    stream::send(&mut to, &first).await.map_err(text)?;
    while let Some(word) = said.recv().await {
        stream::send(&mut to, &word).await.map_err(text)?;
    }
    let _ = to.finish();
    // Messages in flight must arrive: one may say that the run is over.
    let _ = to.stopped().await;
    Ok(())
}

/// Receives the messages of another agent about its part of a run.
pub(super) async fn receive_words(
    mut from: CountedStream,
    run: u64,
    member: u16,
    events: UnboundedSender<CarrierEvent>,
) {
    while let Ok(word) = stream::receive::<RunMemberMessage>(&mut from, NEWS_BYTES_MAX).await {
        let _ = events.send(CarrierEvent::Word { run, member, word });
    }
}

/// Connects a stream with the control socket of the part in `folder`.
pub(super) async fn control(folder: Result<PathBuf, String>, call: AgentCall<()>) {
    let AgentCall { mut to, rest, .. } = call;
    let socket = folder.and_then(|folder| {
        windtunnel_control::socket::connect(&folder)
            .map_err(|error| format!("the part does not listen: {error}"))
    });
    let socket = match socket {
        Ok(socket) => socket,
        Err(message) => return to.finish(Err(message)).await,
    };
    if to.say(Ok(())).await.is_ok() {
        let _ = join(socket, to.into_stream(), rest).await;
    }
}

async fn join(
    socket: std::os::unix::net::UnixStream,
    mut to: SendStream,
    mut from: CountedStream,
) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let (mut reader, mut writer) = tokio::net::UnixStream::from_std(socket)?.into_split();
    let out = async {
        let mut buffer = vec![0; PIECE];
        loop {
            match reader.read(&mut buffer).await? {
                0 => break,
                got => to.write_all(&buffer[..got]).await?,
            }
        }
        let _ = to.finish();
        io::Result::Ok(())
    };
    let inward = async {
        while let Some(chunk) = from.read_chunk(PIECE, true).await? {
            writer.write_all(&chunk.bytes).await?;
        }
        writer.shutdown().await
    };
    tokio::try_join!(out, inward).map(|_| ())
}

/// Sends all files of a part that is over.
pub(super) async fn fetch(folder: Result<PathBuf, String>, call: AgentCall<FetchedRunMessage>) {
    // The stream counts until all is sent.
    let AgentCall { mut to, rest: _counted, .. } = call;
    let files = match folder.and_then(|folder| {
        let files = files_in(&folder).map_err(|error| error.to_string())?;
        Ok((folder, files))
    }) {
        Ok(files) => files,
        Err(message) => return to.finish(Err(message)).await,
    };
    let sent = send_files(&files.0, &files.1, &mut to).await;
    let sent = sent.map_err(|error| format!("cannot send a file of the run: {error}"));
    to.finish(sent.map(|()| FetchedRunMessage::End)).await;
}

async fn send_files(
    folder: &Path,
    files: &[PathBuf],
    to: &mut AnswerSender<FetchedRunMessage>,
) -> io::Result<()> {
    for path in files {
        let mut file = std::fs::File::open(path)?;
        let meta = file.metadata()?;
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        let executable = meta.permissions().mode() & 0o100 != 0;
        let bytes = meta.len();
        to.say(Ok(FetchedRunMessage::File { path: name, bytes, executable })).await?;
        let mut left = meta.len();
        let mut buffer = vec![0; PIECE];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let got = io::Read::read(&mut file, &mut buffer[..most])?;
            if got == 0 {
                return Err(io::Error::other(format!("{} has become shorter", path.display())));
            }
            to.write(&buffer[..got]).await?;
            left -= got as u64;
        }
    }
    Ok(())
}

/// All regular files below a folder; others (sockets) are of no use elsewhere.
fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

const ORDER_BYTES_MAX: usize = 16 << 20;
const NEWS_BYTES_MAX: usize = 16 << 20;
const PIECE: usize = 64 * 1024;
