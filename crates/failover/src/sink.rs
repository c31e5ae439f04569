//! What waits to be taken by the caller.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::WAITING_MAX;
use crate::counters::Counters;
use crate::draft::{Draft, Template};
use crate::event::{Destination, Event, Key, Place, ReplicaId, Transmit, What};
use windtunnel_wire::vnet;

/// Packets and events in order, and the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sink {
    pub(crate) transmits: VecDeque<Transmit>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) counters: Counters,
    /// Bytes of output kept by all connections.
    pub(crate) buffered: usize,
    /// Where the connection is kept that sends now.
    pub(crate) place: Place,
}

impl Sink {
    pub(crate) fn event(&mut self, key: Key, what: What) {
        if self.events.len() >= WAITING_MAX {
            self.counters.events_lost += 1;
            return;
        }
        self.events.push_back(Event { key, what });
    }

    pub(crate) fn send_to_client(
        &mut self,
        draft: &Draft<'_>,
        template: &Template,
        identification: u16,
    ) {
        self.counters.to_clients += 1;
        self.send(Destination::Client, draft, template, identification);
    }

    pub(crate) fn send_to_replica(
        &mut self,
        id: ReplicaId,
        draft: &Draft<'_>,
        template: &Template,
        identification: u16,
    ) {
        self.counters.to_replicas += 1;
        self.send(Destination::Replica(id), draft, template, identification);
    }

    /// A packet that is not TCP, with complete checksums.
    pub(crate) fn copy_to_replica(&mut self, id: ReplicaId, frame: Vec<u8>) {
        self.counters.to_replicas += 1;
        self.push(Destination::Replica(id), vnet::Header::default(), frame);
    }

    fn send(&mut self, to: Destination, draft: &Draft<'_>, template: &Template, number: u16) {
        let (vnet, frame) = draft.write(template, number);
        self.push(to, vnet, frame);
    }

    fn push(&mut self, to: Destination, vnet: vnet::Header, frame: Vec<u8>) {
        if self.transmits.len() >= WAITING_MAX {
            self.counters.packets_lost += 1;
            return;
        }
        self.transmits.push_back(Transmit { place: self.place, to, vnet, frame });
    }
}
