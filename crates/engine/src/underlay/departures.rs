//! Frames that have come to the end of their last lane, until the caller takes them.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::ethernet;

use crate::buffer::PacketBufferPool;
use crate::departure::FrameDeparture;
use crate::network::EthernetAddressPair;
use crate::packet::EmulatedPacket;

/// Frames that are to be sent, in order.
#[derive(Debug)]
pub(crate) struct DepartureQueue {
    queue: VecDeque<FrameDeparture>,
    /// By lane index: departures in the queue.
    unpolled: Vec<u32>,
    /// By port: whether it is on this machine.
    here: Vec<bool>,
}

/// Where a packet leaves the network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExitPort {
    pub(crate) port: PortId,
    /// The lane that it came by.
    pub(crate) lane: Lane,
    pub(crate) addresses: Option<EthernetAddressPair>,
}

impl DepartureQueue {
    /// None, from so many lanes.
    pub(crate) fn new(lanes: usize, here: Vec<bool>) -> DepartureQueue {
        DepartureQueue { queue: VecDeque::new(), unpolled: vec![0; lanes], here }
    }

    /// Whether a port is on this machine.
    #[inline]
    pub(crate) fn is_here(&self, port: PortId) -> bool {
        self.here[port.index()]
    }

    /// Whether something that came by a lane has not been taken yet.
    #[inline]
    pub(crate) fn waits(&self, lane: Lane) -> bool {
        self.unpolled[lane.index()] > 0
    }

    /// Lets a packet leave as it is: at `now`, or on another machine when its last segment is there.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Time,
        exit: ExitPort,
        packet: EmulatedPacket,
        pool: &mut PacketBufferPool,
    ) {
        let ExitPort { port, lane, addresses } = exit;
        let intended = if self.is_here(port) { now } else { packet.times.last };
        let (mut frame, vnet) = packet.into_parts(pool);
        address(&mut frame, addresses);
        self.unpolled[lane.index()] += 1;
        self.queue.push_back(FrameDeparture { port, lane, intended, vnet, frame });
    }

    /// The next one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<FrameDeparture> {
        let departure = self.queue.pop_front()?;
        self.unpolled[departure.lane.index()] -= 1;
        Some(departure)
    }
}

/// Writes the Ethernet addresses of a delivery; a group address stays.
pub(crate) fn address(frame: &mut [u8], addresses: Option<EthernetAddressPair>) {
    let Some(EthernetAddressPair { destination, source }) = addresses else { return };
    let group =
        ethernet::EthernetFrame::parse(frame).ok().filter(ethernet::EthernetFrame::is_multicast);
    let destination = group.map_or(destination, |view| view.destination());
    ethernet::set_addresses(frame, destination, source);
}
