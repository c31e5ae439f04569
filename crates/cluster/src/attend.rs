//! Conversations of a client that starts or watches a run, beside single questions.

use std::io::{self, ErrorKind};

use quinn::RecvStream;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use windtunnel_control::{ControlGreeting, ControlReply, ControlRequest, VERSION, frame};
use windtunnel_model::valid::Validate;

use crate::agent::exec::BYTES_MAX;
use crate::client::{AgentClient, AgentClientError};
use crate::protocol::answers::{AgentAnswer, WatchedRunMessage, no_answer};
use crate::protocol::exec::{FromCommand, ToCommand};
use crate::protocol::questions::AgentQuestion;
use crate::protocol::run::PartCommand;
use crate::protocol::{ANSWER_BYTES_MAX, AgentReply, AgentRequest};
use crate::stream;

impl AgentClient {
    /// Asks for [`AgentRequest::Part`] or [`AgentRequest::Watch`], passes on what is ordered, and hands everything
    /// over that is answered, until there is nothing more of either.
    ///
    /// # Errors
    /// [`AgentClientError::Broken`] if the agent has gone.
    pub fn attend(
        &self,
        ask: &AgentQuestion<WatchedRunMessage>,
        orders: &mut UnboundedReceiver<PartCommand>,
        mut handle: impl FnMut(Result<WatchedRunMessage, AgentReply>),
    ) -> Result<(), AgentClientError> {
        let attending = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, ask.message()).await?;
            let ordering = async {
                while let Some(order) = orders.recv().await {
                    stream::send(&mut to, &order).await?;
                }
                io::Result::Ok(())
            };
            let receiving = async {
                loop {
                    match stream::receive(&mut from, ANSWER_BYTES_MAX).await {
                        Ok(reply) => handle(WatchedRunMessage::of(reply)),
                        Err(error) => return io::Result::<()>::Err(error),
                    }
                }
            };
            tokio::select! { done = ordering => done, gone = receiving => gone }
        };
        self.block_on(attending)
    }

    /// Runs a command in a node of a part: passes on `messages`, and hands over its replies.
    ///
    /// # Errors
    /// If it cannot be run, or the agent has gone.
    pub fn exec(
        &self,
        ask: &AgentQuestion<()>,
        mut messages: Receiver<ToCommand>,
        mut handle: impl FnMut(FromCommand),
    ) -> Result<(), AgentClientError> {
        let running = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, ask.message()).await?;
            begun(&mut from).await?;
            let sending = async {
                while let Some(message) = messages.recv().await {
                    if stream::send(&mut to, &message).await.is_err() {
                        // It does not listen any more, and its last message says why.
                        std::future::pending::<()>().await;
                    }
                }
            };
            let receiving = async {
                loop {
                    let message = stream::receive(&mut from, BYTES_MAX).await?;
                    let last =
                        matches!(&message, FromCommand::Reply { reply } if reply.ends_command());
                    handle(message);
                    if last {
                        return io::Result::Ok(());
                    }
                }
            };
            tokio::select! { () = sending => Ok(()), received = receiving => received }
        };
        self.block_on(running)
    }

    /// Asks the part of a run as its control socket is asked.
    ///
    /// # Errors
    /// If there is no such part, or the agent has gone.
    pub fn control(
        &self,
        run: u64,
        request: &ControlRequest,
    ) -> Result<ControlReply, AgentClientError> {
        let asking = async {
            let (mut to, mut from) = self.connection().open_bi().await?;
            stream::send(&mut to, AgentRequest::control(run).message()).await?;
            begun(&mut from).await?;
            let mut lines = ControlLineReader { from, waiting: Vec::new() };
            let hello: ControlGreeting = lines.next().await?;
            if hello.version != VERSION {
                let (theirs, ours) = (hello.version, VERSION);
                let text = format!("the part speaks version {theirs}, this windtunnel {ours}");
                return Err(io::Error::other(text));
            }
            let mut line = serde_json::to_vec(request)?;
            line.push(b'\n');
            to.write_all(&line).await?;
            lines.next().await
        };
        self.block_on(asking)
    }
}

/// Waits for the answer after which a conversation follows.
async fn begun(from: &mut RecvStream) -> io::Result<()> {
    let reply = stream::receive(from, ANSWER_BYTES_MAX).await?;
    <()>::of(reply).map_err(no_answer)
}

/// The lines of a control socket's conversation.
struct ControlLineReader {
    from: RecvStream,
    waiting: Vec<u8>,
}

impl ControlLineReader {
    async fn next<T: DeserializeOwned + Validate>(&mut self) -> io::Result<T> {
        let mut looked = 0;
        loop {
            let new = &self.waiting[looked..];
            if let Some(end) = new.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=looked + end).collect();
                return frame::decode(&line).map_err(io::Error::other);
            }
            looked = self.waiting.len();
            if looked > LINE_BYTES_MAX {
                return Err(io::Error::other("a line of the part's does not end"));
            }
            let chunk = self.from.read_chunk(PIECE, true).await?;
            let chunk = chunk.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;
            self.waiting.extend_from_slice(&chunk.bytes);
        }
    }
}

/// A longer line of a part's conversation is nonsense.
const LINE_BYTES_MAX: usize = windtunnel_control::client::LINE_BYTES_MAX;
const PIECE: usize = 64 * 1024;
