//! One end of the connection between the host process and an init.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::unix;

use crate::message::{self, MESSAGE_BYTES_MAX, MessageError};

/// A socket that preserves message boundaries.
#[derive(Debug)]
pub(crate) struct SeqpacketSocket(OwnedFd);

/// Why a message did not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The message itself is at fault.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The other side takes nothing any more.
    #[error("the node takes no messages: it is stopped, or the machine is overloaded")]
    Stuck,
    /// The other side is gone.
    #[error("the node's init has ended")]
    Gone,
    #[error("the connection to the node failed")]
    Io(#[from] io::Error),
}

impl SeqpacketSocket {
    /// Two connected ends: the host's and the init's.
    pub(crate) fn pair() -> io::Result<(SeqpacketSocket, SeqpacketSocket)> {
        let (host, init) = unix::seqpacket_pair()?;
        Ok((SeqpacketSocket(host), SeqpacketSocket(init)))
    }

    /// The socket itself.
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    /// Sends a message; waits up to [`SEND_PATIENCE`] for room.
    pub(crate) fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let bytes = message::encode(message)?;
        if !self.wait(PollFlags::OUT, Some(SEND_PATIENCE))? {
            return Err(ChannelError::Stuck);
        }
        unix::send(&self.0, &bytes, descriptors).map_err(gone)?;
        Ok(())
    }

    /// The next message with its descriptors, waiting up to `timeout` (`None`: without limit);
    /// `None` if none has come.
    pub(crate) fn receive<T: DeserializeOwned>(
        &self,
        timeout: Option<Duration>,
    ) -> Result<Option<(T, Vec<OwnedFd>)>, ChannelError> {
        if !self.wait(PollFlags::IN, timeout)? {
            return Ok(None);
        }
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let received = unix::receive(&self.0, &mut buffer).map_err(gone)?;
        if received.bytes == 0 {
            return Err(ChannelError::Gone);
        }
        Ok(Some((message::decode(&buffer[..received.bytes])?, received.descriptors)))
    }

    /// Whether the channel is ready (or dead, which the next call will find out) in time.
    fn wait(&self, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
        loop {
            match poll::wait(&mut [PollFd::new(&self.0, flags)], timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

impl AsFd for SeqpacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn gone(error: io::Error) -> ChannelError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ChannelError::Gone,
        _ => ChannelError::Io(error),
    }
}

/// An init answers within microseconds unless it has been stopped.
const SEND_PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ListeningEndpoint, NodeInitReply, NodeInitRequest};

    #[test]
    fn messages_cross_with_their_descriptors() {
        let (host, init) = SeqpacketSocket::pair().unwrap();
        let request = NodeInitRequest::Watch { token: 4, what: ListeningEndpoint::Tcp(80) };
        host.send(&request, &[host.as_fd(), init.as_fd()]).unwrap();
        let (received, descriptors) = init.receive::<NodeInitRequest>(None).unwrap().unwrap();
        assert_eq!(received, request);
        assert_eq!(descriptors.len(), 2);
    }

    #[test]
    fn an_empty_channel_gives_nothing_and_a_closed_one_is_gone() {
        let (host, init) = SeqpacketSocket::pair().unwrap();
        assert!(host.receive::<NodeInitReply>(Some(Duration::ZERO)).unwrap().is_none());
        drop(init);
        assert!(matches!(host.receive::<NodeInitReply>(None), Err(ChannelError::Gone)));
        assert!(matches!(host.send(&NodeInitRequest::Continue, &[]), Err(ChannelError::Gone)));
    }
}
