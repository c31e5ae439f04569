//! The run's side: a listener and connections that never block the loop that owns them.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use windtunnel_sys::unix;

use crate::message::{Hello, Reply, Request, VERSION};
use crate::socket;

/// Accepts connections in a run folder. The socket's file is removed with it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: std::path::PathBuf,
    uid: u32,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    /// Received and not yet a whole line.
    partial: Vec<u8>,
    /// Descriptors that came with the bytes in `partial`.
    descriptors: Vec<OwnedFd>,
    /// Replies that the socket has not taken yet.
    unsent: Vec<u8>,
}

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// A request with the descriptors it carried.
    Request(Box<Request>, Vec<OwnedFd>),
    /// A line that is no request; the text says why.
    Unreadable(String),
    /// The other end has closed.
    Closed,
}

impl Listener {
    /// Listens in `folder`.
    ///
    /// # Errors
    /// What the system says about the folder or the socket.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let socket = socket::listen(folder)?;
        socket.set_nonblocking(true)?;
        let uid = windtunnel_sys::process::current_user().uid;
        Ok(Listener { socket, path: folder.join(socket::NAME), uid })
    }

    /// The next connection, greeted; `None` if nobody waits. Connections of other users are closed.
    ///
    /// # Errors
    /// What the system says, descriptor shortage included.
    pub fn accept(&self, name: &str) -> io::Result<Option<Connection>> {
        let stream = match self.socket.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        let peer = unix::peer_credentials(&stream)?;
        if peer.uid != self.uid && peer.uid != 0 {
            return Ok(None);
        }
        let mut connection =
            Connection { stream, partial: Vec::new(), descriptors: Vec::new(), unsent: Vec::new() };
        connection.write(&Hello { version: VERSION, name: name.to_owned() })?;
        Ok(Some(connection))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The folder may be gone; then so is the socket.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    /// Everything that has arrived, without waiting.
    #[must_use]
    pub fn receive(&mut self) -> Vec<Incoming> {
        let mut incoming = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match unix::receive(&self.stream, &mut buffer) {
                Ok(got) if got.bytes == 0 => {
                    incoming.push(Incoming::Closed);
                    return incoming;
                }
                Ok(got) => {
                    self.partial.extend_from_slice(&buffer[..got.bytes]);
                    self.descriptors.extend(got.descriptors);
                    self.take_lines(&mut incoming);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return incoming,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    incoming.push(Incoming::Closed);
                    return incoming;
                }
            }
            if self.partial.len() > LINE_BYTES_MAX {
                incoming.push(Incoming::Unreadable(format!("a line over {LINE_BYTES_MAX} bytes")));
                incoming.push(Incoming::Closed);
                return incoming;
            }
        }
    }

    /// Sends a reply; what the socket does not take at once is kept for [`Connection::flush`].
    ///
    /// # Errors
    /// If the other end has closed or does not read its replies.
    pub fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        self.write(reply)
    }

    /// Whether a reply waits for room in the socket.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what waits, as far as there is room.
    ///
    /// # Errors
    /// If the other end has closed.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut sent = 0;
        let outcome = loop {
            let rest = &self.unsent[sent..];
            if rest.is_empty() {
                break Ok(());
            }
            match unix::send(&self.stream, rest, &[]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match outcome {
            Ok(()) => drop(self.unsent.drain(..sent)),
            // Nobody will read the rest.
            Err(_) => self.unsent.clear(),
        }
        outcome
    }

    fn take_lines(&mut self, incoming: &mut Vec<Incoming>) {
        while let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            incoming.push(match serde_json::from_slice(&line) {
                Ok(request) => {
                    Incoming::Request(Box::new(request), std::mem::take(&mut self.descriptors))
                }
                Err(error) => Incoming::Unreadable(format!("not a request: {error}")),
            });
        }
    }

    fn write(&mut self, message: &impl serde::Serialize) -> io::Result<()> {
        if self.unsent.len() > UNSENT_BYTES_MAX {
            // Many replies wait: this client does not read, and the run's memory is for packets.
            return Err(ErrorKind::WouldBlock.into());
        }
        serde_json::to_writer(&mut self.unsent, message)?;
        self.unsent.push(b'\n');
        self.flush()
    }
}

/// A longer request is nonsense.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Beyond this a client gets no further replies until it has read some: a few of the longest.
const UNSENT_BYTES_MAX: usize = 32 << 20;
