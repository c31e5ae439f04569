//! Where the packets of all flows wait: one pool of places, chained flow by flow.

use alloc::vec::Vec;

use super::round_robin::{NONE, index};
use crate::packet::EmulatedPacket;

/// Places that are used again, so that a running queue allocates nothing.
#[derive(Debug)]
pub(super) struct PacketSlab {
    places: Vec<PacketSlabSlot>,
    free: u32,
}

#[derive(Debug)]
struct PacketSlabSlot {
    packet: Option<EmulatedPacket>,
    next: u32,
}

/// The packets of one flow, oldest first.
#[derive(Debug)]
pub(super) struct PacketSlabQueue {
    head: u32,
    tail: u32,
}

impl PacketSlabQueue {
    pub(super) const EMPTY: PacketSlabQueue = PacketSlabQueue { head: NONE, tail: NONE };

    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl PacketSlab {
    pub(super) fn new() -> Self {
        PacketSlab { places: Vec::new(), free: NONE }
    }

    pub(super) fn front(&self, waiting: &PacketSlabQueue) -> Option<&EmulatedPacket> {
        self.places.get(index(waiting.head))?.packet.as_ref()
    }

    pub(super) fn push_back(&mut self, waiting: &mut PacketSlabQueue, packet: EmulatedPacket) {
        let place = self.place(packet);
        match waiting.tail {
            NONE => waiting.head = place,
            tail => self.places[index(tail)].next = place,
        }
        waiting.tail = place;
    }

    pub(super) fn push_front(&mut self, waiting: &mut PacketSlabQueue, packet: EmulatedPacket) {
        let place = self.place(packet);
        self.places[index(place)].next = waiting.head;
        if waiting.head == NONE {
            waiting.tail = place;
        }
        waiting.head = place;
    }

    pub(super) fn pop(&mut self, waiting: &mut PacketSlabQueue) -> Option<EmulatedPacket> {
        let head = waiting.head;
        let place = self.places.get_mut(index(head))?;
        waiting.head = place.next;
        if waiting.head == NONE {
            waiting.tail = NONE;
        }
        place.next = self.free;
        self.free = head;
        place.packet.take()
    }

    /// Every packet, wherever it waits.
    pub(super) fn packets(
        &self,
        waiting: &PacketSlabQueue,
    ) -> impl Iterator<Item = &EmulatedPacket> {
        let mut at = waiting.head;
        core::iter::from_fn(move || {
            let place = self.places.get(index(at))?;
            at = place.next;
            place.packet.as_ref()
        })
    }

    fn place(&mut self, packet: EmulatedPacket) -> u32 {
        let (packet, next) = (Some(packet), NONE);
        let free = self.free;
        if let Some(place) = self.places.get_mut(index(free)) {
            self.free = place.next;
            *place = PacketSlabSlot { packet, next };
            return free;
        }
        self.places.push(PacketSlabSlot { packet, next });
        u32::try_from(self.places.len() - 1).unwrap_or(NONE)
    }
}
