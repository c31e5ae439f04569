//! A conversation with the kernel about devices, addresses and routes. Source: rtnetlink(7).
//!
//! Requests are collected and sent many at a time: one system call for up to [`BATCH`] of them.

pub(crate) mod request;

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A request that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct NetlinkError {
    /// What was asked for, such as `add the address 10.0.0.1/32 to eth0`.
    pub action: String,
    /// What the kernel said.
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
    pub(crate) fn create(
        &mut self,
        message: RouteNetlinkMessage,
        action: String,
    ) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_EXCL, action)
    }

    /// Adds a request to make something, or to put it in the place of what is there, to the batch.
    pub(crate) fn replace(
        &mut self,
        message: RouteNetlinkMessage,
        action: String,
    ) -> Result<(), NetlinkError> {
        self.add(message, NLM_F_CREATE | NLM_F_REPLACE, action)
    }

    /// Adds a request to change something to the batch.
    pub(crate) fn change(
        &mut self,
        message: RouteNetlinkMessage,
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

    fn add(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        action: String,
    ) -> Result<(), NetlinkError> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let start = self.batch.len();
        // A message starts at a multiple of four bytes (netlink(7)).
        let length = message.buffer_len().next_multiple_of(4);
        self.batch.resize(start + length, 0);
        message.serialize(&mut self.batch[start..start + message.buffer_len()]);
        self.pending.push((self.sequence, action));
        if self.pending.len() >= BATCH { self.flush() } else { Ok(()) }
    }
}

/// The sequence numbers and outcomes in a datagram from the kernel.
pub(crate) fn answers(datagram: &[u8]) -> io::Result<Vec<(u32, io::Result<()>)>> {
    let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut rest = datagram;
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let length = NetlinkBuffer::new_checked(rest).map_err(malformed)?.length();
        let message =
            NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(malformed)?;
        if let NetlinkPayload::Error(answer) = message.payload {
            let outcome = if answer.code.is_some() { Err(answer.to_io()) } else { Ok(()) };
            answers.push((message.header.sequence_number, outcome));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(answers)
}

/// So few that the answers fit into the socket's buffer.
const BATCH: usize = 64;
