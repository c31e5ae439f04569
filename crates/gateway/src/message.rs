//! What the gateway process and its parent say to each other, and what it asks of the node's init:
//! one JSON value a datagram.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windtunnel_sys::unix;

use crate::report::GatewayReport;

/// From the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GatewayCommand {
    /// The run's clock starts: at this time of `CLOCK_MONOTONIC`.
    Begin { origin_ns: u64 },
    /// The run has ended, and programs are about to be stopped.
    CountNoMore,
    /// All is over.
    End,
}

/// To the parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GatewayEvent {
    Ready,
    /// It cannot work.
    Failed(String),
    Ended(GatewayReport),
}

/// From the gateway process to the node's init: the socket that it needs. The answer is a
/// `Result<(), i32>`: the socket comes along, or an errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GatewaySocketRequest {
    /// One that accepts connections to a port of any address.
    Listen { v6: bool, port: u16 },
    /// One that connects.
    Connect(SocketAddr),
    /// One for datagrams.
    Datagrams(SocketAddr),
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message).map_err(io::Error::other)?;
    unix::send(socket, &bytes, descriptors).map(drop)
}

/// The next message; `None` when the other end is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; BYTES_MAX];
    let received = unix::receive(socket, &mut buffer)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(&buffer[..received.bytes]).map_err(io::Error::other)?;
    Ok(Some((message, received.descriptors)))
}

/// A report has some dozens of counters.
const BYTES_MAX: usize = 64 << 10;
