//! A conversation with the kernel about devices, addresses and routes. Source: rtnetlink(7).
//!
//! Requests are collected and sent many at a time: one system call for up to [`BATCH`] of them.

mod attributes;
pub(crate) mod bridges;
pub(crate) mod disciplines;
pub(crate) mod filter;
mod message;
mod number;
pub(crate) mod request;
#[cfg(test)]
mod tests;

use std::io;

use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};

use message::{ALIGNMENT, HEADER, RtnetlinkMessage};
use number::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NLMSG_DONE, NLMSG_ERROR,
};

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
        Netlink::open_of(NETLINK_ROUTE)
    }

    /// For packet filters.
    pub(crate) fn open_filter() -> Result<Netlink, NetlinkError> {
        Netlink::open_of(NETLINK_NETFILTER)
    }

    fn open_of(protocol: isize) -> Result<Netlink, NetlinkError> {
        let failed = |source| NetlinkError { action: "open a netlink socket".into(), source };
        let mut socket = Socket::new(protocol).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        // Answers need not repeat the request.
        socket.set_cap_ack(true).map_err(failed)?;
        Ok(Netlink { socket, sequence: 0, batch: Vec::new(), pending: Vec::new() })
    }

    /// Adds a request to make something to the batch; `action` says what, for the error.
    pub(crate) fn create(
        &mut self,
        message: RtnetlinkMessage,
        action: String,
    ) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_EXCL, action)
    }

    /// Adds a request to make something, or to put it in the place of what is there, to the batch.
    pub(crate) fn replace(
        &mut self,
        message: RtnetlinkMessage,
        action: String,
    ) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_REPLACE, action)
    }

    /// Adds a request to change something to the batch.
    pub(crate) fn change(
        &mut self,
        message: RtnetlinkMessage,
        action: String,
    ) -> Result<(), NetlinkError> {
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

    /// Asks for all of a kind, and hands each message of the answer that is of the kind `answer` to
    /// `take`, which takes no other than a whole one.
    ///
    /// # Errors
    /// The kernel's, `InvalidData` where a message is not as it should be, and `Interrupted` where
    /// something was changed meanwhile, so that something may be missing.
    pub(crate) fn dump(
        &mut self,
        message: RtnetlinkMessage,
        answer: u16,
        mut take: impl FnMut(&[u8]) -> Option<()>,
    ) -> io::Result<()> {
        self.ask(message, NLM_F_DUMP)?;
        let mut interrupted = false;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            if take_all(&datagram, answer, &mut interrupted, &mut take)? {
                return if interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
            }
        }
    }

    /// Asks for one thing: the message of the kind `answer`.
    pub(crate) fn get(&mut self, message: RtnetlinkMessage, answer: u16) -> io::Result<Vec<u8>> {
        self.ask(message, 0)?;
        let (datagram, _) = self.socket.recv_from_full()?;
        let mut found = None;
        take_all(&datagram, answer, &mut false, &mut |message| {
            found = Some(message.to_vec());
            Some(())
        })?;
        found.ok_or_else(|| cut_off(&datagram))
    }

    fn ask(&mut self, message: RtnetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut request = Vec::new();
        message.write(&mut request, NLM_F_REQUEST | flags, self.sequence);
        self.socket.send(&request, 0)?;
        Ok(())
    }

    fn add(
        &mut self,
        message: RtnetlinkMessage,
        flags: u16,
        action: String,
    ) -> Result<(), NetlinkError> {
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

/// Hands each message of the kind `answer` in a datagram to `take`. Returns whether the datagram is the
/// last one of an answer in many parts, and notes whether that is not of one moment.
fn take_all(
    datagram: &[u8],
    answer: u16,
    interrupted: &mut bool,
    take: &mut impl FnMut(&[u8]) -> Option<()>,
) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let (message, behind) = first_message(rest).ok_or_else(|| cut_off(rest))?;
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        *interrupted |= u16::from_ne_bytes([message[6], message[7]]) & NLM_F_DUMP_INTR != 0;
        if kind == NLMSG_DONE || kind == NLMSG_ERROR {
            // One that is cut off says nothing else.
            let code = message.get(HEADER..).and_then(<[u8]>::first_chunk);
            let code = code.map_or(0, |code| i32::from_ne_bytes(*code));
            let refused = || io::Error::from_raw_os_error(code.saturating_neg());
            return if code < 0 { Err(refused()) } else { Ok(true) };
        }
        if kind == answer {
            take(message).ok_or_else(|| cut_off(rest))?;
        }
        rest = behind;
    }
    Ok(false)
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
