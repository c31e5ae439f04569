//! Which of a node's sockets would take what comes to services' addresses, by INET_DIAG.
//!
//! For each target, an address and port, the kernel is asked for the socket that it would hand a new
//! connection or a datagram of an unknown peer to: the same lookup that packets meet, so that a
//! socket counts whether it is bound to the address, to all addresses or, with IPv6, to those of
//! both versions. That costs one row of a hash table, however many sockets there are.
//!
//! No kernel notifies anybody of bind(2) or listen(2), so each node is asked every [`INTERVAL`]; where
//! that would take more than 5 % of a processor, less often, but at least every [`INTERVAL_MAX`].
//! Of sockets that are closed, the kernel sends a message, and the node is asked at once.

mod message;
mod thread;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use windtunnel_model::NodeId;
use windtunnel_model::plan::{ServicePort, TransportProtocol};
use windtunnel_sys::clock;
use windtunnel_sys::sock_diag::{self, SockDiagReceiveOutcome};

pub use thread::{ListenerThread, ListenerThreadEvent};

use message::ListenerSocketReply;

/// From one look at a node to the next.
pub const INTERVAL: Duration = Duration::from_millis(4);
/// The longest that it becomes where looking is dear.
pub const INTERVAL_MAX: Duration = Duration::from_millis(20);

/// What a socket is to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerTarget {
    pub address: IpAddr,
    pub port: ServicePort,
    /// The device that packets come by, by its index: a socket may be bound to one.
    pub device: u32,
}

/// A target has another socket than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerChange {
    pub node: NodeId,
    pub target: ListenerTarget,
    /// The socket, by its cookie; `None`: none listens there any longer.
    pub socket: Option<u64>,
    /// When that was seen, in nanoseconds of the monotonic clock.
    pub seen_ns: u64,
    /// How often the node had been lost before.
    pub losses: u32,
}

/// What looking has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListenerStats {
    /// Looks at a node.
    pub looks: u64,
    /// Time spent, in nanoseconds.
    pub spent_ns: u64,
    /// The longest time from one look at all nodes to the next, in nanoseconds.
    pub interval_longest_ns: u64,
    /// Messages of closed sockets that the kernel had no room for: they are found by the next look.
    pub overruns: u64,
}

/// The listening sockets of many nodes.
#[derive(Debug)]
pub struct ListenerMonitor {
    nodes: BTreeMap<NodeId, NodeListenerTargets>,
    due_ns: u64,
    looked_ns: u64,
    buffer: Vec<u8>,
    stats: ListenerStats,
}

#[derive(Debug)]
struct NodeListenerTargets {
    socket: OwnedFd,
    targets: Vec<ListenerTargetState>,
    losses: u32,
}

/// What is known of a target.
#[derive(Debug, Clone, Copy)]
struct ListenerTargetState {
    target: ListenerTarget,
    /// The cookie of the socket there.
    socket: Option<u64>,
    /// Its node was lost, and no look since then found that no socket was there.
    loss: Option<NodeLoss>,
}

/// A loss of a node, as a target of it meets it.
#[derive(Debug, Clone, Copy)]
struct NodeLoss {
    /// In nanoseconds of the monotonic clock.
    at_ns: u64,
    /// The cookie of the socket that was there before.
    socket: Option<u64>,
}

impl ListenerMonitor {
    /// Of no node yet.
    #[must_use]
    pub fn new() -> ListenerMonitor {
        ListenerMonitor {
            nodes: BTreeMap::new(),
            due_ns: 0,
            looked_ns: 0,
            buffer: vec![0; BUFFER_BYTES],
            stats: ListenerStats::default(),
        }
    }

    /// Looks at a node from now on, by a socket of [`sock_diag::open`] that was opened inside of
    /// it, for these targets instead of those before. What is known of targets stays.
    ///
    /// # Errors
    /// If the kernel has no answers for one of the transport protocols.
    pub fn watch(
        &mut self,
        node: NodeId,
        socket: OwnedFd,
        targets: Vec<ListenerTarget>,
    ) -> io::Result<()> {
        sock_diag::notify_of_listeners(&socket)?;
        for transport in [TransportProtocol::Tcp, TransportProtocol::Udp] {
            if targets.iter().any(|target| target.port.transport == transport) {
                self.check(&socket, transport)?;
            }
        }
        let before = self.nodes.remove(&node);
        let losses = before.as_ref().map_or(0, |watched| watched.losses);
        let before = before.map(|watched| watched.targets).unwrap_or_default();
        let known = |target: ListenerTarget| {
            let known = before.iter().find(|known| known.target == target).copied();
            known.unwrap_or(ListenerTargetState { target, socket: None, loss: None })
        };
        let targets = targets.into_iter().map(known).collect();
        self.nodes.insert(node, NodeListenerTargets { socket, targets, losses });
        self.due_ns = 0;
        Ok(())
    }

    /// All programs of a node are about to be killed, and it counts as lost: none of its sockets is
    /// there any longer. What listens there from now on is new, once it is sure to be no socket that
    /// is still to be closed. Later sightings have this number of `losses`.
    pub fn lose(&mut self, node: NodeId, losses: u32) {
        let Some(watched) = self.nodes.get_mut(&node) else { return };
        watched.losses = losses;
        let at_ns = clock::monotonic_ns();
        watched.targets.iter_mut().for_each(|known| known.lose(at_ns));
    }

    /// Looks at a node no longer.
    pub fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// What becomes readable when a socket of a node was closed.
    pub fn descriptors(&self) -> impl Iterator<Item = (NodeId, BorrowedFd<'_>)> {
        self.nodes.iter().map(|(node, watched)| (*node, watched.socket.as_fd()))
    }

    /// When to call [`ListenerMonitor::look_at_all`] next, in nanoseconds of the monotonic clock; `None`:
    /// there is nothing to look at.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        (!self.nodes.is_empty()).then_some(self.due_ns)
    }

    /// Looks at all nodes.
    ///
    /// # Errors
    /// The first failure; the other nodes have been looked at.
    pub fn look_at_all(
        &mut self,
        sink: &mut dyn FnMut(ListenerChange),
    ) -> Result<(), (NodeId, io::Error)> {
        let began_ns = clock::monotonic_ns();
        if self.looked_ns != 0 {
            let since_ns = began_ns.saturating_sub(self.looked_ns);
            self.stats.interval_longest_ns = self.stats.interval_longest_ns.max(since_ns);
        }
        self.looked_ns = began_ns;
        let mut outcome = Ok(());
        for (node, watched) in &mut self.nodes {
            let looked = watched.look(*node, &mut self.buffer, &mut self.stats, sink);
            outcome = outcome.and(looked.map_err(|error| (*node, error)));
        }
        let spent_ns = clock::monotonic_ns().saturating_sub(began_ns);
        self.stats.spent_ns += spent_ns;
        let [least, most] = [INTERVAL, INTERVAL_MAX].map(nanoseconds);
        self.due_ns = began_ns + spent_ns.saturating_mul(BUDGET_INVERSE).clamp(least, most);
        outcome
    }

    /// Looks at a node, of which a socket was closed.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn look_at(
        &mut self,
        node: NodeId,
        sink: &mut dyn FnMut(ListenerChange),
    ) -> io::Result<()> {
        let began_ns = clock::monotonic_ns();
        let Some(watched) = self.nodes.get_mut(&node) else { return Ok(()) };
        let looked = watched.look(node, &mut self.buffer, &mut self.stats, sink);
        self.stats.spent_ns += clock::monotonic_ns().saturating_sub(began_ns);
        looked
    }

    /// What looking has cost until now.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        self.stats
    }

    /// Whether the kernel knows of sockets of a protocol at all: that none is there, it says in the
    /// same words as that it does not.
    fn check(&mut self, socket: &OwnedFd, transport: TransportProtocol) -> io::Result<()> {
        sock_diag::send(socket, &message::empty_dump(transport))?;
        loop {
            match sock_diag::receive(socket, &mut self.buffer)? {
                SockDiagReceiveOutcome::Nothing => return Err(io::ErrorKind::TimedOut.into()),
                SockDiagReceiveOutcome::Overrun => {}
                SockDiagReceiveOutcome::Bytes(length) => {
                    match message::read(&self.buffer[..length])? {
                        Some((_, ListenerSocketReply::Done)) => return Ok(()),
                        Some((_, ListenerSocketReply::Failed(errno))) => {
                            return Err(io::Error::from_raw_os_error(errno));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

impl Default for ListenerMonitor {
    fn default() -> Self {
        ListenerMonitor::new()
    }
}

impl NodeListenerTargets {
    fn look(
        &mut self,
        node: NodeId,
        buffer: &mut [u8],
        stats: &mut ListenerStats,
        sink: &mut dyn FnMut(ListenerChange),
    ) -> io::Result<()> {
        stats.looks += 1;
        for first in (0..self.targets.len()).step_by(BATCH) {
            let batch = self.targets.len().min(first + BATCH);
            let requests = (first..batch).zip(&self.targets[first..batch]);
            let requests = requests.flat_map(|(position, known)| {
                message::lookup(sequence_of(position), &known.target)
            });
            sock_diag::send(&self.socket, &requests.collect::<Vec<u8>>())?;
            self.take_answers(node, buffer, stats, sink)?;
        }
        Ok(())
    }

    /// The kernel has answered before the request has returned. What has got no answer, as there was no
    /// room, keeps its state until the next look.
    fn take_answers(
        &mut self,
        node: NodeId,
        buffer: &mut [u8],
        stats: &mut ListenerStats,
        sink: &mut dyn FnMut(ListenerChange),
    ) -> io::Result<()> {
        loop {
            let length = match sock_diag::receive(&self.socket, buffer)? {
                SockDiagReceiveOutcome::Nothing => return Ok(()),
                SockDiagReceiveOutcome::Overrun => {
                    stats.overruns += 1;
                    continue;
                }
                SockDiagReceiveOutcome::Bytes(length) => length,
            };
            let Some((sequence, answer)) = message::read(&buffer[..length])? else { continue };
            let position = usize::try_from(sequence).ok().and_then(|it| it.checked_sub(1));
            // Messages of closed sockets have no number.
            let known = position.and_then(|position| self.targets.get_mut(position));
            let Some(known) = known else { continue };
            let socket = match answer {
                ListenerSocketReply::Socket { cookie, listens } => {
                    let takes_all =
                        known.target.port.transport == TransportProtocol::Udp || listens;
                    takes_all.then_some(cookie)
                }
                ListenerSocketReply::Failed(ENOENT) => None,
                ListenerSocketReply::Failed(errno) => {
                    return Err(io::Error::from_raw_os_error(errno));
                }
                ListenerSocketReply::Done => continue,
            };
            let seen_ns = clock::monotonic_ns();
            if known.changes(socket, seen_ns) {
                let (target, losses) = (known.target, self.losses);
                sink(ListenerChange { node, target, socket, seen_ns, losses });
            }
        }
    }
}

impl ListenerTargetState {
    /// Takes what was seen; whether it is news.
    fn changes(&mut self, socket: Option<u64>, seen_ns: u64) -> bool {
        match socket {
            None => self.loss = None,
            Some(cookie) if self.loss.is_some_and(|loss| loss.closes(cookie, seen_ns)) => {
                return false;
            }
            Some(_) => {}
        }
        std::mem::replace(&mut self.socket, socket) != socket
    }

    fn lose(&mut self, at_ns: u64) {
        let before = self.loss.and_then(|loss| loss.socket);
        self.loss = Some(NodeLoss { at_ns, socket: self.socket.take().or(before) });
    }
}

impl NodeLoss {
    /// Whether a socket that is seen may be one that was there before and is still to be closed: a
    /// busy machine lets a killed process end late.
    fn closes(&self, cookie: u64, seen_ns: u64) -> bool {
        let longest = if self.socket == Some(cookie) { CLOSING_MAX } else { CLOSING };
        seen_ns < self.at_ns.saturating_add(nanoseconds(longest))
    }
}

/// The number of the request for a target.
fn sequence_of(position: usize) -> u32 {
    u32::try_from(position + 1).unwrap_or(u32::MAX)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Answers come in datagrams of one socket each.
const BUFFER_BYTES: usize = 4096;
/// Requests that are sent at once: their answers have to fit into the socket's room.
const BATCH: usize = 64;
/// Looking may take one part in so many of a processor.
const BUDGET_INVERSE: u64 = 20;
/// For so long after a node was lost, a socket may be one of its that had not been seen: of several
/// at one port, a look finds one.
const CLOSING: Duration = Duration::from_millis(100);
/// For so long after a node was lost, the socket that had been seen is not taken for one that stays.
const CLOSING_MAX: Duration = Duration::from_secs(5);
/// "No such file or directory", of errno(3).
const ENOENT: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_a_node_that_is_lost_is_no_news_until_none_was_there_or_time_has_passed() {
        let target = ListenerTarget {
            address: IpAddr::from([10, 1, 0, 80]),
            port: "80/tcp".parse().unwrap(),
            device: 100,
        };
        let mut lost = ListenerTargetState { target, socket: None, loss: None };
        assert!(lost.changes(Some(1), 0));
        lost.lose(0);
        let [soon, later, last] = [CLOSING / 2, CLOSING, CLOSING_MAX].map(nanoseconds);
        let mut known = lost;
        assert!(!known.changes(Some(1), soon), "it is being closed");
        assert!(!known.changes(Some(2), soon), "so is its neighbour");
        assert!(!known.changes(None, soon));
        assert!(known.changes(Some(3), soon), "it is new");
        let mut known = lost;
        known.lose(1);
        assert!(!known.changes(Some(1), later + 1), "it is closed late");
        assert!(known.changes(Some(2), later + 1), "another one has taken its place");
        assert!(known.changes(None, later + 2));
        let mut known = lost;
        assert!(known.changes(Some(1), last), "it was not closed");
        assert!(!known.changes(Some(1), last + 1));
    }
}
