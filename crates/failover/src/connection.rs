//! One connection: the client on one side, replicas on the other.

mod client;
mod client_sender;
mod client_state;
mod comparison;
mod delivered;
mod detector;
mod expel;
mod lifecycle;
mod monitor;
mod opening;
mod repetition;
mod replica;
mod replica_sender;
mod replica_set;
mod server_state;
mod watch;

use crate::config::LINGER;
use crate::context::ReplicationContext;
use crate::event::ConnectionTermination;
use crate::icmp::IcmpQuotedSegment;
use client_sender::ClientSender;
use client_state::ClientTcpState;
use delivered::DeliveredStream;
use lifecycle::{ConnectionLifecycle, ConnectionPhase};
use replica_sender::ReplicaSender;
use replica_set::ConnectionReplicaSet;
use server_state::VirtualServerTcpState;

/// A connection: its parts, and what connects them.
#[derive(Debug, Clone)]
pub(crate) struct ReplicatedConnection {
    pub(crate) life: ConnectionLifecycle,
    client: ClientTcpState,
    server: VirtualServerTcpState,
    pub(crate) replicas: ConnectionReplicaSet,
    delivered: DeliveredStream,
}

impl ReplicatedConnection {
    /// Whether the client has not answered the SYN-ACK so far.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.life.is_over() && self.client.acked == 0
    }

    /// Bytes of memory, the value itself not counted.
    pub(crate) fn memory(&self) -> usize {
        self.replicas.memory()
            + self.client.template.memory()
            + self.server.memory()
            + self.delivered.memory()
    }

    /// All live replicas have the client's stream up to here.
    fn acked(&self) -> u64 {
        self.replicas.acked().unwrap_or(self.server.announced.acked)
    }

    /// Packets to the client are sent by this.
    fn client_sender(&mut self) -> ClientSender<'_> {
        ClientSender {
            key: &self.life.key,
            client: &mut self.client,
            server: &mut self.server,
            replicas: &mut self.replicas,
            delivered: &mut self.delivered,
        }
    }

    /// Packets to replicas are sent by this.
    fn replica_sender(&mut self) -> ReplicaSender<'_> {
        ReplicaSender {
            client: &self.client,
            server: &mut self.server,
            replicas: &self.replicas,
            delivered: &self.delivered,
        }
    }

    /// A packet to the client met an error on its way: every replica is informed, in its own
    /// numbers, and packets from here are no longer than the way takes.
    pub(crate) fn handle_icmp(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        quote: &IcmpQuotedSegment,
        frame: &[u8],
    ) {
        let Some(offset) = self.server.space.offset(quote.sequence, self.client.acked) else {
            return;
        };
        if let Some(room) = quote.segment_max.and_then(|room| usize::try_from(room).ok()) {
            self.server.limit_segments(room);
        }
        self.replica_sender().pass_icmp(cx, quote, frame, offset);
    }

    /// Ends a connection of which both directions are finished and acknowledged.
    fn end_if_finished(&mut self, cx: &mut ReplicationContext<'_>) {
        let has_come = self.client.fin.is_some_and(|fin| self.acked() > fin);
        let is_sent = self.delivered.is_finish_acknowledged(self.client.acked);
        if self.life.phase == ConnectionPhase::Open && has_come && is_sent {
            self.life.end(cx, ConnectionTermination::Finished, LINGER);
            for replica in &mut self.replicas.members {
                replica.output.release();
            }
        }
    }
}
