//! What those who start or watch a run do with an agent beside asking it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use quinn::RecvStream;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use windtunnel_control::{Hello, Reply, Request};

use crate::agent::exec::BYTES_MAX;
use crate::client::{Client, ClientError};
use crate::protocol::exec::{FromCommand, ToCommand};
use crate::protocol::run::Order;
use crate::protocol::{ANSWER_BYTES_MAX, Answer, Ask};
use crate::stream;

impl Client {
    /// Asks for [`Ask::Part`] or [`Ask::Watch`], passes on what is ordered, and hands everything over that is
    /// answered, until there is nothing more of either.
    ///
    /// # Errors
    /// [`ClientError::Broken`] if the agent has gone.
    pub fn attend(
        &self,
        ask: &Ask,
        mut orders: UnboundedReceiver<Order>,
        mut hear: impl FnMut(Answer),
    ) -> Result<(), ClientError> {
        let attending = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, ask).await?;
            let ordering = async {
                while let Some(order) = orders.recv().await {
                    stream::send(&mut to, &order).await?;
                }
                io::Result::Ok(())
            };
            let hearing = async {
                loop {
                    match stream::receive(&mut from, ANSWER_BYTES_MAX).await {
                        Ok(answer) => hear(answer),
                        Err(error) => return io::Result::<()>::Err(error),
                    }
                }
            };
            tokio::select! { done = ordering => done, gone = hearing => gone }
        };
        self.block_on(attending)
    }

    /// Runs a command in a node of a part: passes on what is `told`, and hands over what it says.
    ///
    /// # Errors
    /// If it cannot be run, or the agent has gone.
    pub fn exec(
        &self,
        ask: &Ask,
        mut told: Receiver<ToCommand>,
        mut hear: impl FnMut(FromCommand),
    ) -> Result<(), ClientError> {
        let running = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, ask).await?;
            match stream::receive(&mut from, ANSWER_BYTES_MAX).await? {
                Answer::Done => {}
                Answer::Error { message } => return Err(io::Error::other(message)),
                _ => return Err(io::Error::other("something else than was asked")),
            }
            let telling = async {
                while let Some(message) = told.recv().await {
                    if stream::send(&mut to, &message).await.is_err() {
                        // It does not listen any more, and what it says last tells why.
                        std::future::pending::<()>().await;
                    }
                }
            };
            let hearing = async {
                loop {
                    let message = stream::receive(&mut from, BYTES_MAX).await?;
                    let last = matches!(
                        &message,
                        FromCommand::Reply { reply: Reply::Exited { .. } | Reply::Error { .. } }
                    );
                    hear(message);
                    if last {
                        return io::Result::Ok(());
                    }
                }
            };
            tokio::select! { () = telling => Ok(()), heard = hearing => heard }
        };
        self.block_on(running)
    }

    /// Copies the files of a part that is over into `folder`, which is made.
    ///
    /// # Errors
    /// If there is no such part, the agent has gone, or a file cannot be written.
    pub fn fetch(&self, run: u64, folder: &Path) -> Result<(), ClientError> {
        let fetching = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, &Ask::Fetch { run }).await?;
            to.finish().map_err(io::Error::other)?;
            loop {
                match stream::receive(&mut from, ANSWER_BYTES_MAX).await? {
                    Answer::File { path, bytes, executable } => {
                        let path = inside(folder, &path)?;
                        save(&mut from, &path, bytes, executable).await?;
                    }
                    Answer::Done => return Ok(()),
                    Answer::Error { message } => return Err(io::Error::other(message)),
                    _ => return Err(io::Error::other("something else than was asked")),
                }
            }
        };
        self.block_on(fetching)
    }

    /// Asks the part of a run as its control socket is asked.
    ///
    /// # Errors
    /// If there is no such part, or the agent has gone.
    pub fn control(&self, run: u64, request: &Request) -> Result<Reply, ClientError> {
        let asking = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, &Ask::Control { run }).await?;
            match stream::receive(&mut from, ANSWER_BYTES_MAX).await? {
                Answer::Done => {}
                Answer::Error { message } => return Err(io::Error::other(message)),
                _ => return Err(io::Error::other("something else than was asked")),
            }
            let mut lines = Lines { from, waiting: Vec::new() };
            let _: Hello = lines.next().await?;
            let mut line = serde_json::to_vec(request)?;
            line.push(b'\n');
            to.write_all(&line).await?;
            lines.next().await
        };
        self.block_on(asking)
    }
}

/// The lines of a control socket's conversation.
struct Lines {
    from: RecvStream,
    waiting: Vec<u8>,
}

impl Lines {
    async fn next<T: serde::de::DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=end).collect();
                return Ok(serde_json::from_slice(&line)?);
            }
            let chunk = self.from.read_chunk(64 * 1024, true).await?;
            let chunk = chunk.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
            self.waiting.extend_from_slice(&chunk.bytes);
        }
    }
}

/// Where a file goes that another machine names: nowhere but below `folder`.
fn inside(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let name = Path::new(name);
    if name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(folder.join(name));
    }
    Err(io::Error::other(format!("{} is no name of a file of a run", name.display())))
}

async fn save(from: &mut RecvStream, path: &Path, bytes: u64, executable: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let chunk = from.read_chunk(most, true).await?;
        let chunk = chunk.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
        io::Write::write_all(&mut file, &chunk.bytes)?;
        left -= chunk.bytes.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_machine_stay_below_their_folder() {
        let folder = Path::new("/runs/x");
        assert_eq!(inside(folder, "nodes/a/stdout").unwrap(), folder.join("nodes/a/stdout"));
        for outside in ["/etc/passwd", "../y", "nodes/../../y"] {
            assert!(inside(folder, outside).is_err(), "{outside}");
        }
    }
}
