//! Packets of other machines that wait until they are to leave for their nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::vnet;

use super::buffer_pool::BufferPool;

/// Packets that wait for their time.
#[derive(Debug)]
pub(super) struct ReleaseQueue {
    packets: BinaryHeap<Reverse<ReleaseQueueEntry>>,
    next: u64,
    bytes: u64,
    most: u64,
}

/// When and where a packet is to leave.
pub(super) struct Address {
    pub(super) intended: Time,
    pub(super) port: PortId,
    pub(super) lane: Lane,
    pub(super) header: [u8; vnet::VirtioNetHeader::LEN],
}

/// A packet for a node here.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReleaseQueueEntry {
    /// When it is to leave, on this machine's clock.
    pub intended: Time,
    number: u64,
    pub port: PortId,
    pub lane: Lane,
    pub header: [u8; vnet::VirtioNetHeader::LEN],
    pub frame: Vec<u8>,
}

impl ReleaseQueue {
    /// They may hold `most` bytes.
    pub(super) fn new(most: u64) -> Self {
        ReleaseQueue { packets: BinaryHeap::new(), next: 0, bytes: 0, most }
    }

    /// When the next packet is to leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.packets.peek().map(|Reverse(packet)| packet.intended)
    }

    /// Takes in a frame of so many bytes, which `move_to` puts into a buffer. Answers whether there
    /// is room.
    pub(super) fn add(
        &mut self,
        address: &Address,
        frame_bytes: usize,
        buffer_pool: &mut BufferPool,
        move_to: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let bytes = self.bytes + frame_bytes as u64;
        if bytes > self.most {
            return false;
        }
        self.bytes = bytes;
        let mut buffer = buffer_pool.take(frame_bytes);
        move_to(&mut buffer);
        let &Address { intended, port, lane, header } = address;
        let packet =
            ReleaseQueueEntry { intended, number: self.next, port, lane, header, frame: buffer };
        self.next += 1;
        self.packets.push(Reverse(packet));
        true
    }

    /// The next packet whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<ReleaseQueueEntry> {
        self.packets.peek().filter(|Reverse(packet)| packet.intended <= now)?;
        let Reverse(packet) = self.packets.pop()?;
        self.bytes -= packet.frame.len() as u64;
        Some(packet)
    }

    /// Forgets those of before the run.
    pub(super) fn clear_before(&mut self, origin: Time) {
        self.packets.retain(|Reverse(packet)| packet.intended >= origin);
        self.bytes = self.packets.iter().map(|Reverse(packet)| packet.frame.len() as u64).sum();
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Adds a packet of so many bytes.
    fn add(queue: &mut ReleaseQueue, millis: u64, bytes: usize) -> bool {
        let address = Address {
            intended: at(millis),
            port: PortId(1),
            lane: Lane::from_index(0),
            header: [0; vnet::VirtioNetHeader::LEN],
        };
        let fill = |buffer: &mut Vec<u8>| buffer.resize(bytes, 0);
        queue.add(&address, bytes, &mut BufferPool::default(), fill)
    }

    fn due(queue: &mut ReleaseQueue, millis: u64) -> Vec<usize> {
        std::iter::from_fn(|| queue.due(at(millis))).map(|packet| packet.frame.len()).collect()
    }

    #[test]
    fn packets_leave_in_order_of_their_time_and_those_of_one_instant_as_they_came() {
        let mut queue = ReleaseQueue::new(1_000);
        for (millis, bytes) in [(20, 1), (10, 2), (20, 3), (10, 4)] {
            assert!(add(&mut queue, millis, bytes));
        }
        assert_eq!(queue.next(), Some(at(10)));
        assert_eq!(due(&mut queue, 9), [] as [usize; 0]);
        assert_eq!(due(&mut queue, 10), [2, 4]);
        assert_eq!(due(&mut queue, 30), [1, 3]);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn packets_beyond_the_memory_are_refused_until_there_is_room_again() {
        let mut queue = ReleaseQueue::new(100);
        assert!(add(&mut queue, 10, 60));
        assert!(!add(&mut queue, 20, 41));
        assert!(add(&mut queue, 20, 40));
        assert_eq!(due(&mut queue, 10), [60]);
        assert!(add(&mut queue, 30, 60));
    }

    #[test]
    fn early_packets_of_a_beginning_run_are_kept_and_older_ones_free_their_room() {
        let mut queue = ReleaseQueue::new(100);
        add(&mut queue, 10, 60);
        add(&mut queue, 30, 40);
        queue.clear_before(at(20));
        assert!(add(&mut queue, 40, 60));
        assert_eq!(due(&mut queue, 50), [40, 60]);
    }
}
