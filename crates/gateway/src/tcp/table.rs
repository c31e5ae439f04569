//! Connections by their addresses.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use windtunnel_sys::clock;
use windtunnel_wire::vnet;

use crate::flows::{ProxiedConnectionKey, ProxiedConnectionStage};
use crate::log::FlowLine;
use crate::worker::NodeLinkPacket;

/// A request of a client, as it came.
#[derive(Debug)]
pub(super) struct Syn {
    pub(super) frame: Vec<u8>,
    pub(super) vnet: [u8; vnet::VirtioNetHeader::LEN],
    /// Where an answer goes.
    pub(super) mac: [u8; 6],
}

/// A connection.
#[derive(Debug)]
pub(super) enum ProxiedConnection {
    Dialled { dial: u64, syn: Syn, socket: OwnedFd, line: FlowLine },
    Offered { socket: OwnedFd, line: FlowLine, since_ns: u64 },
    Joined,
    Over { since_ns: u64 },
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct ProxiedConnectionTable {
    flows: HashMap<ProxiedConnectionKey, ProxiedConnection>,
    dials: HashMap<u64, ProxiedConnectionKey>,
}

impl Syn {
    pub(super) fn of(packet: &NodeLinkPacket<'_>) -> Syn {
        Syn { frame: packet.parsed.frame.to_vec(), vnet: packet.vnet.emit(), mac: packet.mac }
    }
}

impl ProxiedConnectionTable {
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(super) fn stage(&self, key: &ProxiedConnectionKey) -> Option<ProxiedConnectionStage> {
        Some(match self.flows.get(key)? {
            ProxiedConnection::Dialled { .. } => ProxiedConnectionStage::Dialled,
            ProxiedConnection::Offered { .. } => ProxiedConnectionStage::Offered,
            ProxiedConnection::Joined => ProxiedConnectionStage::Joined,
            ProxiedConnection::Over { .. } => ProxiedConnectionStage::Over,
        })
    }

    pub(super) fn insert(&mut self, key: ProxiedConnectionKey, flow: ProxiedConnection) {
        if let ProxiedConnection::Dialled { dial, .. } = flow {
            self.dials.insert(dial, key);
        }
        self.flows.insert(key, flow);
    }

    /// The kernel still has something to say of a connection that is over.
    pub(super) fn touch(&mut self, key: &ProxiedConnectionKey) {
        if let Some(ProxiedConnection::Over { since_ns }) = self.flows.get_mut(key) {
            *since_ns = clock::monotonic_ns();
        }
    }

    /// Keeps a newer request of a connection that is being made.
    pub(super) fn keep(&mut self, key: &ProxiedConnectionKey, newer: Syn) {
        if let Some(ProxiedConnection::Dialled { syn, .. }) = self.flows.get_mut(key) {
            *syn = newer;
        }
    }

    /// The connection that is being made by this number.
    pub(super) fn take_dialled(
        &mut self,
        dial: u64,
    ) -> Option<(ProxiedConnectionKey, Syn, OwnedFd, FlowLine)> {
        let key = self.dials.remove(&dial)?;
        match self.flows.remove(&key)? {
            ProxiedConnection::Dialled { syn, socket, line, .. } => Some((key, syn, socket, line)),
            other => {
                self.flows.insert(key, other);
                None
            }
        }
    }

    pub(super) fn take_offered(
        &mut self,
        key: &ProxiedConnectionKey,
    ) -> Option<(OwnedFd, FlowLine)> {
        match self.flows.remove(key)? {
            ProxiedConnection::Offered { socket, line, .. } => Some((socket, line)),
            other => {
                self.flows.insert(*key, other);
                None
            }
        }
    }

    pub(super) fn cancel(&mut self, key: &ProxiedConnectionKey) -> Option<(OwnedFd, FlowLine)> {
        match self.flows.remove(key)? {
            ProxiedConnection::Dialled { dial, socket, line, .. } => {
                self.dials.remove(&dial);
                Some((socket, line))
            }
            other => {
                self.flows.insert(*key, other);
                None
            }
        }
    }

    /// Forgets what is over for longer than the kernel needs it, and what a client has never taken
    /// up, whose connections outside are returned.
    pub(super) fn expire(&mut self, now_ns: u64) -> Vec<(OwnedFd, FlowLine)> {
        let old = |since_ns: u64| now_ns.saturating_sub(since_ns) > LINGER_NS;
        let expired = self.flows.extract_if(|_, flow| match flow {
            ProxiedConnection::Offered { since_ns, .. } | ProxiedConnection::Over { since_ns } => {
                old(*since_ns)
            }
            ProxiedConnection::Dialled { .. } | ProxiedConnection::Joined => false,
        });
        let sockets = expired.filter_map(|(_, flow)| match flow {
            ProxiedConnection::Offered { socket, line, .. } => Some((socket, line)),
            _ => None,
        });
        sockets.collect()
    }
}

/// Longer than Linux repeats a SYN (127 s with `tcp_syn_retries` 6) or an unanswered FIN without an
/// owner.
const LINGER_NS: u64 = 150_000_000_000;
