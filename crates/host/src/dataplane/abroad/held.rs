//! Packets of other machines that wait until they are to leave for their nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_tunnel::Frame;
use windtunnel_wire::vnet;

use super::spare::Spare;

/// Packets that wait for their time.
#[derive(Debug)]
pub(super) struct Held {
    packets: BinaryHeap<Reverse<Packet>>,
    next: u64,
    bytes: u64,
    most: u64,
}

/// When and where a packet is to leave.
pub(super) struct Address {
    pub(super) intended: Time,
    pub(super) port: PortId,
    pub(super) lane: Lane,
    pub(super) header: [u8; vnet::Header::LEN],
}

/// A packet for a node here.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::dataplane) struct Packet {
    /// When it is to leave, on this machine's clock.
    pub(in crate::dataplane) intended: Time,
    number: u64,
    pub(in crate::dataplane) port: PortId,
    pub(in crate::dataplane) lane: Lane,
    pub(in crate::dataplane) header: [u8; vnet::Header::LEN],
    pub(in crate::dataplane) frame: Vec<u8>,
}

impl Held {
    /// They may hold `most` bytes.
    pub(super) fn new(most: u64) -> Self {
        Held { packets: BinaryHeap::new(), next: 0, bytes: 0, most }
    }

    /// When the next packet is to leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.packets.peek().map(|Reverse(packet)| packet.intended)
    }

    /// Answers whether there is room.
    pub(super) fn add(&mut self, address: &Address, frame: Frame<'_>, spare: &mut Spare) -> bool {
        let bytes = self.bytes + frame.len() as u64;
        if bytes > self.most {
            return false;
        }
        self.bytes = bytes;
        let mut buffer = spare.take(frame.len());
        frame.move_to(&mut buffer);
        let &Address { intended, port, lane, header } = address;
        let packet = Packet { intended, number: self.next, port, lane, header, frame: buffer };
        self.next += 1;
        self.packets.push(Reverse(packet));
        true
    }

    /// The next packet whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<Packet> {
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
