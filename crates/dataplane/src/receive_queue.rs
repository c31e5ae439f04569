//! Packets that come to a node which pays for receiving them: they wait in a queue that a thread of
//! the node's init empties, and what has no room is dropped before any system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};
use windtunnel_budget::discard::DatagramShareGate;
use windtunnel_model::profile::QueueLimit;
use windtunnel_model::{NodeId, Plan, PortId, plan};
use windtunnel_node::{NodeInitRequest, NodeSet};
use windtunnel_sys::frame_queue::FrameQueueProducer;
use windtunnel_sys::packet::{PacketSendSocket, TransmitFrame};
use windtunnel_sys::poll::EventFd;
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::segment::PacketTrain;
use windtunnel_wire::vnet;

/// The packet loop's end of a node's queue.
#[derive(Debug)]
pub struct ReceiveQueue {
    pub ports: Vec<PortId>,
    giver: FrameQueueProducer,
    wake: EventFd,
    limit: QueueLimit,
    gate: DatagramShareGate,
    has_news: bool,
    counts: ReceiveQueueCounters,
}

/// What came to a node that pays for receiving, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveQueueCounters {
    /// By position in the plan.
    pub node: usize,
    /// What the network delivered.
    pub came: u64,
    /// What was dropped of it because the queue was full.
    pub dropped_full: u64,
    /// What was dropped of it because sockets had no room for so much.
    pub dropped_early: u64,
    /// Datagrams that the kernel had worked for before it found no room for them.
    pub overflowed: u64,
    /// Processor time of delivering, in nanoseconds.
    pub computed_ns: u64,
}

impl ReceiveQueueCounters {
    /// What the queue took.
    pub fn delivered(&self) -> u64 {
        self.came.saturating_sub(self.dropped_full).saturating_sub(self.dropped_early)
    }
}

impl ReceiveQueue {
    /// Makes the queue of a node, whose init is asked to empty it. To be called in the network
    /// namespace of the packet loop.
    pub fn begin(
        node: &plan::Node,
        id: NodeId,
        limit: QueueLimit,
        order: impl FnOnce(&NodeInitRequest, &[BorrowedFd<'_>]) -> Result<(), String>,
    ) -> Result<ReceiveQueue, String> {
        let failed = |error: io::Error| format!("node {} cannot receive: {error}", node.name);
        let (giver, memory) =
            FrameQueueProducer::create(ring_bytes(node, limit)).map_err(failed)?;
        let (outlet, wake) =
            (PacketSendSocket::open().map_err(failed)?, EventFd::open().map_err(failed)?);
        order(&NodeInitRequest::Receive, &[memory.as_fd(), outlet.as_fd(), wake.as_fd()])?;
        let ports = node.interfaces.iter().map(|interface| interface.port).collect();
        Ok(ReceiveQueue::new(id, ports, giver, wake, limit))
    }

    fn new(
        node: NodeId,
        ports: Vec<PortId>,
        giver: FrameQueueProducer,
        wake: EventFd,
        limit: QueueLimit,
    ) -> ReceiveQueue {
        let counts = ReceiveQueueCounters { node: node.index(), ..ReceiveQueueCounters::default() };
        ReceiveQueue {
            ports,
            giver,
            wake,
            limit,
            gate: DatagramShareGate::default(),
            has_news: false,
            counts,
        }
    }

    /// Those of all nodes of a set that have one.
    pub fn of_all(plan: &Plan, node_set: &NodeSet) -> Result<Vec<ReceiveQueue>, String> {
        let limits = plan.nodes.iter().map(plan::Node::effective_receive_queue);
        let nodes = plan.nodes.iter().zip(limits).enumerate();
        let asked = nodes.filter_map(|(index, (node, limit))| Some((index, node, limit?)));
        let one = |(index, spec, limit): (usize, &plan::Node, QueueLimit)| {
            let id = NodeId::from_index(index);
            let node = node_set.node(id)?;
            let send = |request: &NodeInitRequest, fds: &[BorrowedFd<'_>]| {
                let sent = node.send(request, fds);
                sent.map_err(|error| format!("node {} cannot receive: {error}", spec.name))
            };
            Some(ReceiveQueue::begin(spec, id, limit, send))
        };
        asked.filter_map(one).collect()
    }

    /// Takes a frame, or drops it; whether it was taken.
    pub fn offer(&mut self, outgoing: &TransmitFrame<'_>) -> bool {
        let packet = ParsedPacket::parse(outgoing.frame);
        let packets = packet.as_ref().map_or(1, |packet| {
            let header = vnet::VirtioNetHeader::parse(outgoing.vnet_header);
            PacketTrain::of(packet, &header).count
        });
        self.counts.came += u64::from(packets);
        if packet.is_ok_and(|packet| !self.is_wanted(&packet)) {
            self.counts.dropped_early += u64::from(packets);
            return false;
        }
        if !self.has_room(packets, outgoing.frame.len()) || !self.giver.give(outgoing, packets) {
            self.counts.dropped_full += u64::from(packets);
            return false;
        }
        self.has_news = true;
        true
    }

    /// Wakes the thread that empties it, where it sleeps.
    pub fn notify(&mut self) {
        if std::mem::take(&mut self.has_news) && self.giver.must_wake() {
            // It fails only if it is raised already.
            let _ = self.wake.raise();
        }
    }

    /// Forgets what was counted: the run begins.
    pub fn reset(&mut self) {
        let account = self.giver.account();
        self.counts = ReceiveQueueCounters {
            node: self.counts.node,
            // Subtracted at the end.
            overflowed: account.overflowed,
            computed_ns: account.computed_ns,
            ..ReceiveQueueCounters::default()
        };
    }

    /// What came since the run began.
    pub fn received(&self) -> ReceiveQueueCounters {
        let account = self.giver.account();
        ReceiveQueueCounters {
            overflowed: account.overflowed.saturating_sub(self.counts.overflowed),
            computed_ns: account.computed_ns.saturating_sub(self.counts.computed_ns),
            ..self.counts
        }
    }

    fn is_wanted(&mut self, packet: &ParsedPacket<'_>) -> bool {
        if packet.info.protocol != UDP {
            return true;
        }
        let Some((_, port)) = packet.ports() else { return true };
        self.giver.wanted(port).is_none_or(|share| self.gate.passes(port, share))
    }

    /// A queue that is empty takes any frame.
    fn has_room(&self, packets: u32, bytes: usize) -> bool {
        let queued = self.giver.queued();
        let fits = match self.limit {
            QueueLimit::Packets(most) => queued.packets + u64::from(packets) <= most.0,
            QueueLimit::Bytes(most) => queued.bytes + bytes as u64 <= most.0,
            // The file cannot say so.
            QueueLimit::Time(_) => false,
        };
        fits || queued.packets == 0
    }
}

/// Memory for what the limit allows: the ring has headers, and packets are not longer than the MTU.
fn ring_bytes(node: &plan::Node, limit: QueueLimit) -> usize {
    let mtu = node.interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
    let bytes = match limit {
        QueueLimit::Packets(most) => most.0.saturating_mul(u64::from(mtu) + ROOM_OF_HEADERS),
        // The shortest frame has 42 bytes, and takes 80.
        QueueLimit::Bytes(most) => most.0.saturating_mul(2),
        QueueLimit::Time(_) => 0,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX).min(RING_BYTES_MAX)
}

const UDP: u8 = 17;
/// Of Ethernet, of the ring, and what aligns a frame.
const ROOM_OF_HEADERS: u64 = 80;
/// Positions in the ring are 32 bits long.
const RING_BYTES_MAX: usize = 2 << 30;

#[cfg(test)]
mod tests;
