//! A command's side: connect, ask, wait.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use windtunnel_model::valid::Validate;
use windtunnel_sys::unix;

use crate::ask::{RequestAnswer, TypedRequest};
use crate::frame;
use crate::message::{ControlGreeting, ControlReply, ControlRequest, VERSION};
use crate::socket;

/// Why a live run cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlClientError {
    /// No run lives in the folder.
    #[error("no live run in {folder}")]
    NoRun {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The run is another user's.
    #[error("the run in {folder} is another user's")]
    Denied {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The run is of another version of windtunnel.
    #[error(
        "the run in {folder} speaks version {theirs}, this windtunnel speaks version {VERSION}"
    )]
    Version {
        folder: PathBuf,
        /// The run's version.
        theirs: u32,
    },
    /// The run has no room for it.
    #[error("the run in {folder} takes no more connections: {why}")]
    Refused { folder: PathBuf, why: String },
    #[error("the run in {folder} closed the connection")]
    Closed { folder: PathBuf },
    /// The run does not do what was asked.
    #[error("{message}")]
    Declined { message: String, hint: Option<String> },
    /// The run answers something else than was asked.
    #[error("unexpected answer {0:?}")]
    Unexpected(Box<ControlReply>),
    #[error("cannot talk to the run in {folder}")]
    Talk {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ControlClientError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ControlClientError::NoRun { .. } => Some(
                "start one with `windtunnel run FILE`, name its folder with --run DIR, or `windtunnel attach` to one over machines"
                    .to_owned(),
            ),
            ControlClientError::Denied { .. } => {
                Some("only the user that started it and root can control it".to_owned())
            }
            ControlClientError::Version { .. } => {
                Some("use the windtunnel that started the run".to_owned())
            }
            ControlClientError::Refused { .. } => {
                Some("end other commands on this run, such as `exec`, `shell` and `top`".to_owned())
            }
            ControlClientError::Declined { hint, .. } => hint.clone(),
            _ => None,
        }
    }
}

impl From<ControlReply> for ControlClientError {
    /// The error of a reply that does not answer the request.
    fn from(reply: ControlReply) -> Self {
        match reply {
            ControlReply::Error { message, hint } => ControlClientError::Declined { message, hint },
            other => ControlClientError::Unexpected(Box::new(other)),
        }
    }
}

/// A connection to a live run.
#[derive(Debug)]
pub struct ControlClient {
    stream: BufReader<UnixStream>,
    folder: PathBuf,
    name: String,
}

impl ControlClient {
    /// Connects to the run whose folder is `folder`.
    ///
    /// # Errors
    /// If no run of this version lives there.
    pub fn connect(folder: &Path) -> Result<Self, ControlClientError> {
        let stream = socket::connect(folder).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                ControlClientError::Denied { folder: folder.to_owned(), source }
            }
            _ => ControlClientError::NoRun { folder: folder.to_owned(), source },
        })?;
        let mut client = ControlClient {
            stream: BufReader::new(stream),
            folder: folder.to_owned(),
            name: String::new(),
        };
        let hello: ControlGreeting = client.read()?;
        if hello.version != VERSION {
            return Err(ControlClientError::Version {
                folder: folder.to_owned(),
                theirs: hello.version,
            });
        }
        if let Some(why) = hello.refused {
            return Err(ControlClientError::Refused { folder: folder.to_owned(), why });
        }
        client.name = hello.name;
        Ok(client)
    }

    /// Name of the run's experiment.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request with the descriptors that go with it.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn send(
        &mut self,
        request: &ControlRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ControlClientError> {
        let mut line = serde_json::to_vec(request).map_err(|e| self.failed(e.into()))?;
        line.push(b'\n');
        let mut sent = 0;
        while sent < line.len() {
            let with = if sent == 0 { descriptors } else { &[] };
            sent += unix::send(self.stream.get_ref(), &line[sent..], with)
                .map_err(|e| self.failed(e))?;
        }
        Ok(())
    }

    /// A second way to send on this connection, for another thread.
    ///
    /// # Errors
    /// If the descriptor cannot be copied.
    pub fn sender(&self) -> io::Result<RequestSender> {
        Ok(RequestSender(self.stream.get_ref().try_clone()?))
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn receive(&mut self) -> Result<ControlReply, ControlClientError> {
        self.read()
    }

    /// Whether a reply can be read without waiting because it is already buffered.
    #[must_use]
    pub fn has_buffered(&self) -> bool {
        !self.stream.buffer().is_empty()
    }

    /// Asks and waits for the one answer.
    ///
    /// # Errors
    /// If the connection broke, or the run does not do what is asked.
    pub fn ask<A: RequestAnswer>(
        &mut self,
        request: &TypedRequest<A>,
    ) -> Result<A, ControlClientError> {
        self.ask_with(request, &[])
    }

    /// Asks, with the descriptors that go with the request.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn ask_with<A: RequestAnswer>(
        &mut self,
        request: &TypedRequest<A>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<A, ControlClientError> {
        self.send(request.message(), descriptors)?;
        self.receive_answer()
    }

    /// Waits for the answer to what was sent.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn receive_answer<A: RequestAnswer>(&mut self) -> Result<A, ControlClientError> {
        Ok(A::of(self.receive()?)?)
    }

    fn read<T: DeserializeOwned + Validate>(&mut self) -> Result<T, ControlClientError> {
        let mut line = Vec::new();
        let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        match self.stream.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) => Err(ControlClientError::Closed { folder: self.folder.clone() }),
            Ok(read) if read > LINE_BYTES_MAX => {
                Err(self.failed(io::Error::other("a line of its reply does not end")))
            }
            Ok(_) => frame::decode(&line).map_err(|error| self.failed(io::Error::other(error))),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, source: io::Error) -> ControlClientError {
        ControlClientError::Talk { folder: self.folder.clone(), source }
    }
}

/// Sends on the connection of a [`ControlClient`].
#[derive(Debug)]
pub struct RequestSender(UnixStream);

impl RequestSender {
    /// Sends a request without descriptors.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn send(&self, request: &ControlRequest) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        io::Write::write_all(&mut &self.0, &line)
    }
}

impl Drop for RequestSender {
    fn drop(&mut self) {
        // Both sides of the connection end with this: the process that asked it to send has gone.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}

impl AsFd for ControlClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.get_ref().as_fd()
    }
}

/// The longest reply: what 50 000 links do, with room.
pub const LINE_BYTES_MAX: usize = 256 << 20;
