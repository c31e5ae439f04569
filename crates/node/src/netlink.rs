//! A conversation with the kernel about devices, addresses and routes. Source: rtnetlink(7).
//!
//! Requests are collected and sent many at a time: one system call for up to [`BATCH`] of them.

pub(crate) mod disciplines;
mod message;
mod number;
pub(crate) mod request;
#[cfg(test)]
mod tests;

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use message::{ALIGNMENT, HEADER, Message};
use number::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NLMSG_ERROR};

/// A request that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct NetlinkError {
    /// What was asked for, such as `add the address 10.0.0.1/32 to eth0`.
    pub action: String,
    pub source: io::Error,
}

/// A netlink socket of the network namespace in which it was opened.
pub(crate) struct Netlink {
    socket: Socket,
    /// Sequence number of the last request.
    sequence: u32,
    batch: Vec<u8>,
    /// The sequence numbers and actions of what is in the batch.
    pending: Vec<(u32, String)>,
}

impl Netlink {
    pub(crate) fn open() -> Result<Netlink, NetlinkError> {
        let failed = |source| NetlinkError { action: "open a netlink socket".into(), source };
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        // Answers need not repeat the request.
        socket.set_cap_ack(true).map_err(failed)?;
        Ok(Netlink { socket, sequence: 0, batch: Vec::new(), pending: Vec::new() })
    }

    /// Adds a request to make something to the batch; `action` says what, for the error.
    pub(crate) fn create(&mut self, message: Message, action: String) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_EXCL, action)
    }

    /// Adds a request to make something, or to put it in the place of what is there, to the batch.
    pub(crate) fn replace(&mut self, message: Message, action: String) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_REPLACE, action)
    }

    /// Adds a request to change something to the batch.
    pub(crate) fn change(&mut self, message: Message, action: String) -> Result<(), NetlinkError> {
        self.add(message, 0, action)
    }

    /// Sends what was collected and waits for the kernel's word on each request; the first refusal
    /// is the error, though all have been tried.
    pub(crate) fn flush(&mut self) -> Result<(), NetlinkError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let failed = |source| NetlinkError { action: pending[0].1.clone(), source };
        self.socket.send(&self.batch, 0).map_err(failed)?;
        self.batch.clear();
        let mut answered = 0;
        let mut refused = None;
        while answered < pending.len() {
            let (datagram, _) = self.socket.recv_from_full().map_err(failed)?;
            for (sequence, outcome) in answers(&datagram).map_err(failed)? {
                answered += 1;
                if let (Err(source), None) = (outcome, &refused) {
                    let request = pending.iter().find(|(number, _)| *number == sequence);
                    let action = request.map_or_else(String::new, |(_, action)| action.clone());
                    refused = Some(NetlinkError { action, source });
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn add(&mut self, message: Message, flags: u16, action: String) -> Result<(), NetlinkError> {
        self.sequence += 1;
        message.write(&mut self.batch, NLM_F_REQUEST | NLM_F_ACK | flags, self.sequence);
        self.pending.push((self.sequence, action));
        if self.pending.len() >= BATCH { self.flush() } else { Ok(()) }
    }
}

/// The sequence numbers and outcomes in a datagram from the kernel.
pub(crate) fn answers(datagram: &[u8]) -> io::Result<Vec<(u32, io::Result<()>)>> {
    let mut rest = datagram;
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let (message, behind) = first_message(rest).ok_or_else(|| cut_off(rest))?;
        if message[4..6] == NLMSG_ERROR.to_ne_bytes() {
            answers.push(outcome(message).ok_or_else(|| cut_off(rest))?);
        }
        rest = behind;
    }
    Ok(answers)
}

/// The first message, with its header, and what is behind it; `None` if it is cut off.
fn first_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
    Some((message, bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default()))
}

/// The number of the request that this message answers, and what came of it.
fn outcome(message: &[u8]) -> Option<(u32, io::Result<()>)> {
    let sequence = u32::from_ne_bytes(*message.get(8..)?.first_chunk()?);
    let code = i32::from_ne_bytes(*message.get(HEADER..)?.first_chunk()?);
    let refused = || Err(io::Error::from_raw_os_error(code.saturating_neg()));
    Some((sequence, if code == 0 { Ok(()) } else { refused() }))
}

fn cut_off(bytes: &[u8]) -> io::Error {
    let text = format!("a message from the kernel is cut off: {} bytes", bytes.len());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// So few that the answers fit into the socket's buffer.
const BATCH: usize = 64;
