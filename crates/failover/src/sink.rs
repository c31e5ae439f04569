//! What waits to be taken by the caller.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::config::WAITING_MAX;
use crate::counters::ReplicationCounters;
use crate::draft::{PacketHeaderTemplate, SegmentDraft};
use crate::event::{
    RedirectorNumber, ReplicaId, ReplicatedConnectionKey, ReplicationEvent, ReplicationEventKind,
    TransmitDestination, TransmitRequest,
};
use windtunnel_wire::vnet;

/// Packets and events in order, and the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicationOutbox {
    pub(crate) transmits: VecDeque<TransmitRequest>,
    pub(crate) events: VecDeque<ReplicationEvent>,
    pub(crate) counters: ReplicationCounters,
    /// Bytes of output kept by all connections.
    pub(crate) buffered: usize,
    /// Where the connection is kept that sends now.
    pub(crate) place: RedirectorNumber,
}

impl ReplicationOutbox {
    pub(crate) fn event(&mut self, key: ReplicatedConnectionKey, what: ReplicationEventKind) {
        if self.events.len() >= WAITING_MAX {
            self.counters.events_lost += 1;
            return;
        }
        self.events.push_back(ReplicationEvent { key, what });
    }

    pub(crate) fn send_to_client(
        &mut self,
        draft: &SegmentDraft<'_>,
        template: &PacketHeaderTemplate,
        identification: u16,
    ) {
        self.counters.to_clients += 1;
        self.send(TransmitDestination::Client, draft, template, identification);
    }

    pub(crate) fn send_to_replica(
        &mut self,
        id: ReplicaId,
        draft: &SegmentDraft<'_>,
        template: &PacketHeaderTemplate,
        identification: u16,
    ) {
        self.counters.to_replicas += 1;
        self.send(TransmitDestination::Replica(id), draft, template, identification);
    }

    /// A packet that is not TCP, with complete checksums.
    pub(crate) fn copy_to_replica(&mut self, id: ReplicaId, frame: Vec<u8>) {
        self.counters.to_replicas += 1;
        self.push(TransmitDestination::Replica(id), vnet::VirtioNetHeader::default(), frame);
    }

    fn send(
        &mut self,
        to: TransmitDestination,
        draft: &SegmentDraft<'_>,
        template: &PacketHeaderTemplate,
        number: u16,
    ) {
        let (vnet, frame) = draft.write(template, number);
        self.push(to, vnet, frame);
    }

    fn push(&mut self, to: TransmitDestination, vnet: vnet::VirtioNetHeader, frame: Vec<u8>) {
        if self.transmits.len() >= WAITING_MAX {
            self.counters.packets_lost += 1;
            return;
        }
        self.transmits.push_back(TransmitRequest { place: self.place, to, vnet, frame });
    }
}
