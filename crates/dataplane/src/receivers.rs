//! Nodes that pay for receiving: their packets go to queues instead of to devices.

use windtunnel_model::PortId;
use windtunnel_sys::packet::TransmitFrame;

use crate::receive_queue::{ReceiveQueue, ReceiveQueueCounters};

/// The queues of this machine's nodes.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueueTable {
    queues: Vec<ReceiveQueue>,
    /// By port, the position of its node's queue.
    of_port: Vec<Option<usize>>,
}

impl ReceiveQueueTable {
    pub(super) fn new(queues: Vec<ReceiveQueue>) -> ReceiveQueueTable {
        let mut receivers = ReceiveQueueTable::default();
        queues.into_iter().for_each(|queue| receivers.add(queue));
        receivers
    }

    /// From now on packets to the node's ports go to this queue.
    pub(super) fn add(&mut self, queue: ReceiveQueue) {
        for port in &queue.ports {
            let length = self.of_port.len().max(port.index() + 1);
            self.of_port.resize(length, None);
            self.of_port[port.index()] = Some(self.queues.len());
        }
        self.queues.push(queue);
    }

    /// Offers a frame to the queue of a port, if it has one: whether that took it.
    #[inline]
    pub(super) fn offer(&mut self, port: PortId, outgoing: &TransmitFrame<'_>) -> Option<bool> {
        let queue = (*self.of_port.get(port.index())?)?;
        Some(self.queues[queue].offer(outgoing))
    }

    /// Wakes those that have something to take.
    pub(super) fn notify(&mut self) {
        self.queues.iter_mut().for_each(ReceiveQueue::notify);
    }

    /// The run begins.
    pub(super) fn reset(&mut self) {
        self.queues.iter_mut().for_each(ReceiveQueue::reset);
    }

    /// What came since.
    pub(super) fn received(&self) -> Vec<ReceiveQueueCounters> {
        self.queues.iter().map(ReceiveQueue::received).collect()
    }
}
