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
use windtunnel_control::SoftwareVersion;
use windtunnel_control::frame::{self, FrameDecoder};
use windtunnel_control::part::{FromPart, ToPart};

use crate::carrier::CarrierEvent;

/// How a part is started: a program that does `windtunnel_host::part` with its standard input.
#[derive(Debug, Clone)]
pub struct PartWorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl PartWorkerCommand {
    /// Starts a part of `run`. What it says goes to `events`; dropping what is returned ends it.
    ///
    /// # Errors
    /// If there can be no such process.
    pub(super) fn start(
        &self,
        run: u64,
        events: UnboundedSender<CarrierEvent>,
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
        let (orders, queue) = unbounded_channel();
        tokio::task::spawn_local(write(to, queue));
        tokio::task::spawn_local(async move {
            let wrong = read(from, run, &events).await.err();
            if wrong.is_some() {
                // It may have ended by itself.
                let _ = child.start_kill();
            }
            let ended = child.wait().await;
            let why = wrong.unwrap_or_else(|| how(ended));
            let _ = events.send(CarrierEvent::Part { run, said: Err(why) });
        });
        Ok(orders)
    }
}

async fn write(mut to: OwnedWriteHalf, mut queue: UnboundedReceiver<ToPart>) {
    let Ok(version) = frame::encode(&SoftwareVersion::own()) else { return };
    if to.write_all(&version).await.is_err() {
        return;
    }
    let mut messages = Vec::new();
    while queue.recv_many(&mut messages, TOGETHER_MAX).await > 0 {
        // One after the other would wake the part for each.
        let bytes: Vec<u8> =
            messages.drain(..).filter_map(|it| frame::encode(&it).ok()).flatten().collect();
        if to.write_all(&bytes).await.is_err() {
            // Its end shows where it is read.
            return;
        }
    }
}

/// Receives the part's messages to its end; or returns what is wrong with it.
async fn read(
    from: OwnedReadHalf,
    run: u64,
    events: &UnboundedSender<CarrierEvent>,
) -> Result<(), String> {
    let (mut frames, mut is_greeted) = (FrameDecoder::default(), false);
    let mut buffer = vec![0; 64 * 1024];
    let nonsense = |error| format!("what its process says makes no sense: {error}");
    loop {
        if !is_greeted && let Some(version) = frames.take::<SoftwareVersion>().map_err(nonsense)? {
            greet(&version)?;
            is_greeted = true;
        }
        while is_greeted && let Some(said) = frames.take::<FromPart>().map_err(nonsense)? {
            let _ = events.send(CarrierEvent::Part { run, said: Ok(said) });
        }
        if from.readable().await.is_err() {
            return Ok(());
        }
        match from.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => frames.add(&buffer[..got]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Ok(()),
        }
    }
}

/// The program may have been replaced while the agent lived.
fn greet(version: &SoftwareVersion) -> Result<(), String> {
    let own = SoftwareVersion::own();
    if *version == own {
        return Ok(());
    }
    Err(format!("the part is of {version}, and its agent of {own}: start the agent again"))
}

fn how(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("its process has ended: {status}"),
        Err(error) => format!("its process cannot be waited for: {error}"),
    }
}

/// Messages in one go, at the most.
const TOGETHER_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first message of a part, or why it was refused, where its program writes `first`.
    async fn first_message(first: &[u8]) -> Result<FromPart, String> {
        let octal: String = first.iter().map(|byte| format!("\\{byte:03o}")).collect();
        // Standard input is the socket, and stays open.
        let script = format!("printf '{octal}' >&0; exec sleep 60");
        let worker = PartWorkerCommand {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
        };
        let (events, mut received) = unbounded_channel();
        let _part = worker.start(7, events).unwrap();
        match received.recv().await {
            Some(CarrierEvent::Part { run: 7, said }) => said,
            other => panic!("{other:?}"),
        }
    }

    fn test(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, work);
    }

    #[test]
    fn a_part_of_another_version_is_refused_with_both_versions() {
        test(async {
            let other = SoftwareVersion { protocol: 999, windtunnel: "9.9.9".to_owned() };
            let why = first_message(&frame::encode(&other).unwrap()).await.unwrap_err();
            let own = SoftwareVersion::own();
            assert_eq!(
                why,
                format!(
                    "the part is of windtunnel 9.9.9 (protocol 999), and its agent of {own}: start the agent again"
                )
            );
        });
    }

    #[test]
    fn a_part_with_invalid_messages_is_ended() {
        test(async {
            let version = frame::encode(&SoftwareVersion::own()).unwrap();
            let bound = frame::encode(&FromPart::Bound { port: 0 }).unwrap();
            let long = [0xff; 4];
            for wrong in [&bound[..], &[&version[..], &bound].concat(), &long] {
                let why = first_message(wrong).await.unwrap_err();
                assert!(why.starts_with("what its process says makes no sense: "), "{why}");
            }
        });
    }
}
