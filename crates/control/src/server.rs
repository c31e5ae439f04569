//! The run's side: a listener and connections that never block the loop that owns them, and never
//! have it do more than one thing at a time for one client.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use windtunnel_sys::unix;

use crate::admission::UserAdmission;
use crate::frame;
use crate::message::{ControlGreeting, ControlReply, ControlRequest, VERSION};
use crate::registry::Registration;
use crate::socket;

/// Accepts connections in a run folder. The socket's file is removed with it.
#[derive(Debug)]
pub struct ControlListener {
    socket: UnixListener,
    path: std::path::PathBuf,
    admission: UserAdmission,
    /// A descriptor to give up where there are no others, so that a client can still be refused.
    reserve: Option<File>,
    /// How the run is found from other folders.
    _registration: Option<Registration>,
}

/// One connection.
#[derive(Debug)]
pub struct ControlConnection {
    stream: UnixStream,
    /// Received and not handed on.
    partial: Vec<u8>,
    /// So much of `partial` holds no end of a line.
    scanned: usize,
    /// Descriptors that came with the bytes in `partial`.
    descriptors: Vec<OwnedFd>,
    /// Replies that the socket has not taken yet.
    unsent: Vec<u8>,
    /// Whether what came in cannot be cut into requests, so that the connection is at its end.
    broken: bool,
}

/// What came in.
#[derive(Debug)]
pub enum ConnectionInput {
    /// A request with the descriptors it carried.
    Request(Box<ControlRequest>, Vec<OwnedFd>),
    /// A line that is not a request; the text says why.
    Unreadable(String),
    /// The other end has closed.
    Closed,
}

impl ControlListener {
    /// Listens in `folder`.
    ///
    /// # Errors
    /// What the system says about the folder or the socket.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let socket = socket::listen(folder)?;
        socket.set_nonblocking(true)?;
        let admission = UserAdmission::here()?;
        let reserve = Some(File::open("/dev/null")?);
        let path = folder.join(socket::NAME);
        let _registration = Registration::add(folder);
        Ok(ControlListener { socket, path, admission, reserve, _registration })
    }

    /// The next connection, greeted; `None` if no client waits, or it has gone. Connections of
    /// other users are closed.
    ///
    /// # Errors
    /// What the system says, descriptor shortage included: then the connection still waits, and the
    /// listener stays readable. See [`ControlListener::refuse`].
    pub fn accept(&self, name: &str) -> io::Result<Option<ControlConnection>> {
        let Some(mut connection) = self.accept_one()? else { return Ok(None) };
        // A client that only probes for a live run has gone already.
        Ok(connection.greet(name, None).is_ok().then_some(connection))
    }

    /// Takes the next connection only to say `why` there is no room, and closes it; false if
    /// no client waits.
    ///
    /// # Errors
    /// What the system says: a shortage that even the descriptor kept for this does not help. Then
    /// only time does.
    pub fn refuse(&mut self, name: &str, why: &str) -> io::Result<bool> {
        self.reserve = None;
        let refused = match self.accept_one() {
            Ok(Some(mut connection)) => {
                // A client that has gone meanwhile misses nothing.
                let _ = connection.greet(name, Some(why.to_owned()));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        self.reserve = Some(File::open("/dev/null")?);
        refused
    }

    fn accept_one(&self) -> io::Result<Option<ControlConnection>> {
        let stream = match self.socket.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        let peer = unix::peer_credentials(&stream)?;
        Ok(self.admission.allows(peer.uid).then(|| ControlConnection::new(stream)))
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        // The folder may be gone; then so is the socket.
        let _ = fs::remove_file(&self.path);
    }
}

impl AsFd for ControlListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsFd for ControlConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl ControlConnection {
    fn new(stream: UnixStream) -> Self {
        let (partial, unsent) = (Vec::new(), Vec::new());
        let descriptors = Vec::new();
        ControlConnection { stream, partial, scanned: 0, descriptors, unsent, broken: false }
    }

    fn greet(&mut self, name: &str, refused: Option<String>) -> io::Result<()> {
        self.write(&ControlGreeting { version: VERSION, name: name.to_owned(), refused })
    }

    /// The next thing that has arrived, without waiting; `None` if nothing has. More may be there:
    /// [`ControlConnection::has_more`].
    #[must_use]
    pub fn receive(&mut self) -> Option<ConnectionInput> {
        let mut buffer = [0; READ_BYTES];
        while !self.broken {
            if let Some(incoming) = self.take_line() {
                return Some(incoming);
            }
            if let Some(what) = self.excess() {
                // It is unknown where the next request begins.
                self.broken = true;
                return Some(ConnectionInput::Unreadable(what));
            }
            match unix::receive(&self.stream, &mut buffer) {
                Ok(got) if got.bytes == 0 => return Some(ConnectionInput::Closed),
                Ok(got) => {
                    self.partial.extend_from_slice(&buffer[..got.bytes]);
                    self.descriptors.extend(got.descriptors);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(ConnectionInput::Closed),
            }
        }
        Some(ConnectionInput::Closed)
    }

    /// Whether a whole line has been read that [`ControlConnection::receive`] has not given yet: the
    /// socket need not be readable for it.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.broken || self.partial[self.scanned..].contains(&b'\n')
    }

    /// Whether so many replies wait that the client should read some before it is asked what else
    /// it wants.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.unsent.len() > UNSENT_BYTES_SOFT
    }

    /// Sends a reply; what the socket does not take at once is kept for [`ControlConnection::flush`].
    ///
    /// # Errors
    /// If the other end has closed or does not read its replies.
    pub fn reply(&mut self, reply: &ControlReply) -> io::Result<()> {
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
            // The client will not read the rest.
            Err(_) => self.unsent.clear(),
        }
        outcome
    }

    /// What a line has too much of.
    fn excess(&self) -> Option<String> {
        if self.partial.len() > LINE_BYTES_MAX {
            return Some(format!("a line over {LINE_BYTES_MAX} bytes"));
        }
        let many = self.descriptors.len() > DESCRIPTORS_MAX;
        many.then(|| format!("over {DESCRIPTORS_MAX} descriptors with a line"))
    }

    fn take_line(&mut self) -> Option<ConnectionInput> {
        let end = self.partial[self.scanned..].iter().position(|&byte| byte == b'\n');
        let Some(end) = end.map(|end| self.scanned + end) else {
            self.scanned = self.partial.len();
            return None;
        };
        self.scanned = 0;
        let line: Vec<u8> = self.partial.drain(..=end).collect();
        Some(match frame::decode::<ControlRequest>(&line) {
            Ok(request) => {
                ConnectionInput::Request(Box::new(request), std::mem::take(&mut self.descriptors))
            }
            Err(error) => ConnectionInput::Unreadable(format!("not a request: {error}")),
        })
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

const READ_BYTES: usize = 4096;
/// A longer request is nonsense.
const LINE_BYTES_MAX: usize = 1 << 20;
/// More descriptors in one line are nonsense: no request takes as many as one message carries.
const DESCRIPTORS_MAX: usize = unix::DESCRIPTORS_MAX;
/// With so many bytes of replies waiting, no more is asked of a client.
const UNSENT_BYTES_SOFT: usize = 1 << 20;
/// Beyond this a client gets no further replies until it has read some: a few of the longest.
const UNSENT_BYTES_MAX: usize = 32 << 20;
