//! The stream between a part and its agent.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::RecvFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_control::SoftwareVersion;
use windtunnel_control::frame::{self, FrameDecoder};
use windtunnel_control::part::{FromPart, ToPart};
use windtunnel_model::valid::Validate;

use crate::observer::{Observer, ObserverNotice, OwnedNotice};

/// Reads what the agent says.
#[derive(Debug)]
pub(crate) struct AgentConnection {
    stream: UnixStream,
    frames: FrameDecoder,
    writer: AgentWriter,
}

/// Sends to the agent; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AgentWriter(Arc<Mutex<UnixStream>>);

impl AgentConnection {
    /// # Errors
    /// If the descriptor cannot be copied.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        let writer = stream.try_clone()?;
        // An agent that does not read for so long is as good as gone.
        writer.set_write_timeout(Some(WRITE_PATIENCE))?;
        let writer = AgentWriter(Arc::new(Mutex::new(writer)));
        Ok(AgentConnection { stream, frames: FrameDecoder::default(), writer })
    }

    pub(crate) fn writer(&self) -> &AgentWriter {
        &self.writer
    }

    /// Exchanges versions with the agent.
    ///
    /// # Errors
    /// If the agent has another, or has gone.
    pub(crate) fn greet(&mut self) -> io::Result<()> {
        let own = SoftwareVersion::own();
        self.writer.write(&own);
        let theirs: SoftwareVersion = self.wait_for()?;
        if theirs == own {
            return Ok(());
        }
        let why = format!("the agent is of {theirs}, and this program of {own}");
        Err(io::Error::new(ErrorKind::InvalidData, why))
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// If the agent has gone.
    pub(crate) fn wait(&mut self) -> io::Result<ToPart> {
        self.wait_for()
    }

    fn wait_for<T: DeserializeOwned + Validate>(&mut self) -> io::Result<T> {
        loop {
            if let Some(message) = self.next()? {
                return Ok(message);
            }
            let mut buffer = [0; 64 * 1024];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(gone()),
                Ok(got) => self.frames.add(&buffer[..got]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// All messages that have come.
    ///
    /// # Errors
    /// If the agent has gone.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<ToPart>> {
        let mut buffer = [0; 64 * 1024];
        loop {
            match rustix::net::recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(gone()),
                Ok((_, got)) => self.frames.add(&buffer[..got]),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut messages = Vec::new();
        while let Some(message) = self.next()? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn next<T: DeserializeOwned + Validate>(&mut self) -> io::Result<Option<T>> {
        self.frames.take().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }
}

impl AsFd for AgentConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AgentWriter {
    /// Reports no error: that the agent has gone shows where its messages are read.
    pub(crate) fn send(&self, message: &FromPart) {
        self.write(message);
    }

    fn write(&self, message: &impl Serialize) {
        let Ok(bytes) = frame::encode(message) else { return };
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.write_all(&bytes);
    }
}

impl Observer for AgentWriter {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        if let Ok(notice) = serde_json::to_string(&OwnedNotice::from(notice)) {
            self.send(&FromPart::Notice { notice });
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the agent has gone")
}

const WRITE_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;

    fn pair() -> (UnixStream, AgentConnection) {
        let (agent, part) = UnixStream::pair().unwrap();
        (agent, AgentConnection::new(part).unwrap())
    }

    fn say(agent: &mut UnixStream, message: &impl Serialize) {
        agent.write_all(&frame::encode(message).unwrap()).unwrap();
    }

    #[test]
    fn a_part_greets_an_agent_of_its_own_version() {
        let (mut agent, mut link) = pair();
        say(&mut agent, &SoftwareVersion::own());
        link.greet().unwrap();
        let mut frames = FrameDecoder::default();
        let mut buffer = [0; 1024];
        let got = agent.read(&mut buffer).unwrap();
        frames.add(&buffer[..got]);
        assert_eq!(frames.take::<SoftwareVersion>().unwrap(), Some(SoftwareVersion::own()));
    }

    #[test]
    fn messages_are_whole_however_they_arrive() {
        let (mut agent, mut link) = pair();
        assert_eq!(link.receive().unwrap(), [], "nothing has come");
        let (begin, measure) = (ToPart::Begin { origin_ns: 7 }, ToPart::Measure);
        let bytes = [frame::encode(&begin).unwrap(), frame::encode(&measure).unwrap()].concat();
        let (first, second) = bytes.split_at(bytes.len() - 3);
        agent.write_all(first).unwrap();
        assert_eq!(link.receive().unwrap(), [begin]);
        agent.write_all(second).unwrap();
        assert_eq!(link.receive().unwrap(), [measure]);
    }

    #[test]
    fn an_agent_that_has_gone_is_an_error_also_in_the_middle_of_a_message() {
        let (mut agent, mut link) = pair();
        let bytes = frame::encode(&ToPart::Measure).unwrap();
        agent.write_all(&bytes[..bytes.len() - 1]).unwrap();
        agent.shutdown(Shutdown::Both).unwrap();
        assert_eq!(link.receive().unwrap_err().to_string(), "the agent has gone");
        assert_eq!(link.wait().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn bytes_that_are_not_a_message_are_an_error() {
        let (mut agent, mut link) = pair();
        agent.write_all(&frame::encode(&"neither").unwrap()).unwrap();
        assert_eq!(link.receive().unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn notices_of_a_run_reach_the_agent() {
        let (mut agent, link) = pair();
        link.writer().notice(&ObserverNotice::Setup { done: 1, total: 4 });
        let mut frames = FrameDecoder::default();
        let mut buffer = [0; 1024];
        let got = agent.read(&mut buffer).unwrap();
        frames.add(&buffer[..got]);
        let Some(FromPart::Notice { notice }) = frames.take().unwrap() else { panic!("no notice") };
        let seen: OwnedNotice = serde_json::from_str(&notice).unwrap();
        assert_eq!(seen, OwnedNotice::Setup { done: 1, total: 4 });
    }
}
