//! The process that does a part of a run, and the socket to it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Command;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windtunnel_control::frame::{self, Frames};
use windtunnel_control::part::{FromPart, ToPart};

use crate::carrier::Heard;

/// How a part is started: a program that does `windtunnel_host::part` with its standard input.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Worker {
    /// Starts a part of `run`. What it says goes to `heard`; dropping what is returned ends it.
    ///
    /// # Errors
    /// If there can be no such process.
    pub(super) fn start(
        &self,
        run: u64,
        heard: UnboundedSender<Heard>,
    ) -> io::Result<UnboundedSender<ToPart>> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stream = UnixStream::from_std(ours)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        // Ctrl-C in the agent's terminal is for the agent, at whose end parts end.
        command.process_group(0);
        let mut child = command.spawn()?;
        // It still has the part's end of the socket.
        drop(command);
        let (from, to) = stream.into_split();
        let (tell, told) = unbounded_channel();
        tokio::task::spawn_local(write(to, told));
        tokio::task::spawn_local(async move {
            read(from, run, &heard).await;
            let ended = child.wait().await;
            let _ = heard.send(Heard::Part { run, said: Err(how(ended)) });
        });
        Ok(tell)
    }
}

async fn write(mut to: OwnedWriteHalf, mut told: UnboundedReceiver<ToPart>) {
    let mut messages = Vec::new();
    while told.recv_many(&mut messages, TOGETHER_MAX).await > 0 {
        // One after the other would wake the part for each.
        let bytes: Vec<u8> =
            messages.drain(..).filter_map(|it| frame::encode(&it).ok()).flatten().collect();
        if to.write_all(&bytes).await.is_err() {
            // Its end shows where it is read.
            return;
        }
    }
}

async fn read(from: OwnedReadHalf, run: u64, heard: &UnboundedSender<Heard>) {
    let mut frames = Frames::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        while let Ok(Some(said)) = frames.take::<FromPart>() {
            let _ = heard.send(Heard::Part { run, said: Ok(said) });
        }
        if from.readable().await.is_err() {
            return;
        }
        match from.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(got) => frames.add(&buffer[..got]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

fn how(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("its process has ended: {status}"),
        Err(error) => format!("its process cannot be waited for: {error}"),
    }
}

/// Messages in one go, at the most.
const TOGETHER_MAX: usize = 256;
