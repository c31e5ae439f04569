//! One connection: the client on one side, replicas on the other.

mod client;
mod deliver;
mod emit;
mod expel;
mod opening;
mod replica;
mod watch;

use alloc::vec::Vec;

use crate::config::{LINGER, ReplicationConfig};
use crate::draft::PacketHeaderTemplate;
use crate::event::{
    ConnectionTermination, ReplicaId, ReplicatedConnectionKey, ReplicationEventKind,
};
use crate::offset::Space;
use crate::options::TcpOptions;
use crate::ranges::StreamRangeSet;
use crate::replica::{ConnectionReplica, ReplicaLifecycleStage};
use crate::sink::ReplicationOutbox;
use windtunnel_model::Time;
use windtunnel_wire::ecn::Codepoint;

/// What every step of a connection is given.
pub(crate) struct ReplicationContext<'a> {
    pub(crate) now: Time,
    pub(crate) config: &'a ReplicationConfig,
    pub(crate) sink: &'a mut ReplicationOutbox,
}

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// The client has not been given a SYN-ACK. Since when the first replica has answered.
    Opening { first_answer: Option<Time> },
    /// It has.
    Open,
    /// The connection is over, and its state is kept until then to answer what still comes.
    Over { ending: ConnectionTermination, until: Time },
}

/// The client's side.
#[derive(Debug, Clone)]
struct ClientTcpState {
    space: Space,
    /// What its SYN offered, MSS lowered to that of the way to the replicas.
    syn: TcpOptions,
    wants_ecn: bool,
    /// Its window at SYN.
    syn_window: u16,
    /// The end of what it has sent.
    sent: u64,
    /// The server's stream up to here has come to it.
    acked: u64,
    /// How its window field is scaled.
    shift: u8,
    /// It takes the server's stream up to here.
    edge: u64,
    /// Its latest TSval.
    stamp: u32,
    /// Offset of its FIN.
    fin: Option<u64>,
    /// It has asked for room (a window probe), and has sent nothing new since.
    asks: bool,
    /// It has sent what it was acknowledged, or an old number, and received nothing since: the
    /// acknowledgement was lost, or it asks whether a server is there (a keep-alive).
    lacks_ack: bool,
    /// Times that it sent data again since anything of it was acknowledged.
    retransmissions: u32,
    /// Headers of its packets.
    template: PacketHeaderTemplate,
}

/// What the client sees of the server.
#[derive(Debug, Clone, Default)]
struct VirtualServerTcpState {
    /// The sequence space: that of the first primary, whatever comes after it.
    space: Space,
    /// The options of the SYN-ACK: what all replicas can do.
    syn: TcpOptions,
    ecn: bool,
    /// The largest payload of a packet to the client.
    segment_max: usize,
    /// Headers of packets to the client.
    template: PacketHeaderTemplate,
    /// Identification of the next packet (IPv4).
    identification: u16,
    /// The last acknowledgement that the client was given, and the end of its window.
    announced: (u64, u64),
    /// Times that it was given again since it grew.
    repeated: u32,
    /// The client's TSval to echo.
    echo: u32,
    /// Congestion was met by data on its way here: the next data carries it on.
    ce: bool,
    /// The primary has reduced its window: the next data says so.
    cwr: bool,
    /// How the primary marks its data.
    codepoint: Codepoint,
    /// When the client was sent the last packet, and the last one with data or a probe.
    spoke: Time,
    sent_data: Option<Time>,
}

/// A connection.
#[derive(Debug, Clone)]
pub(crate) struct ReplicatedConnection {
    key: ReplicatedConnectionKey,
    phase: ConnectionPhase,
    opened: Time,
    /// The last packet of either side.
    active: Time,
    client: ClientTcpState,
    server: VirtualServerTcpState,
    replicas: Vec<ConnectionReplica>,
    /// Index of the replica that speaks to the client, and whose bytes are right where two differ.
    primary: usize,
    /// The server's stream up to here was given to the client. INVARIANT: every live replica has
    /// sent the same up to here.
    delivered: u64,
    /// Beyond, the client was given these.
    sent: StreamRangeSet,
    /// Offset of FIN in the server's stream, once it was given to the client.
    fin: Option<u64>,
    /// A replica was expelled, and the client has not been sent anything since.
    is_resuming: bool,
    /// Which SACK blocks the client was shown.
    shown: StreamRangeSet,
}

impl ReplicatedConnection {
    /// Whether another connection may take its place in a full table.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Over { .. })
    }

    /// Until when it is kept, if it is over.
    pub(crate) fn over_until(&self) -> Option<Time> {
        match self.phase {
            ConnectionPhase::Over { until, .. } => Some(until),
            ConnectionPhase::Opening { .. } | ConnectionPhase::Open => None,
        }
    }

    /// Whether the client has not answered the SYN-ACK so far.
    pub(crate) fn is_half_open(&self) -> bool {
        !self.is_over() && self.client.acked == 0
    }

    /// When its SYN came.
    pub(crate) fn opened(&self) -> Time {
        self.opened
    }

    /// The replicas that take part, and which of them speaks.
    pub(crate) fn live(&self) -> impl Iterator<Item = ReplicaId> {
        self.replicas.iter().filter(|replica| replica.is_live()).map(|replica| replica.id)
    }

    pub(crate) fn primary(&self) -> Option<ReplicaId> {
        self.replicas.get(self.primary).filter(|replica| replica.is_live()).map(|one| one.id)
    }

    /// When the last packet of either side came.
    pub(crate) fn active(&self) -> Time {
        self.active
    }

    /// Bytes of output that are kept.
    pub(crate) fn buffered(&self) -> usize {
        self.replicas.iter().map(|replica| replica.output.len()).sum()
    }

    /// Bytes of memory, the value itself not counted.
    pub(crate) fn memory(&self) -> usize {
        let replicas = self.replicas.iter().map(|replica| {
            replica.output.memory() + replica.sacked.memory() + replica.stamps.memory()
        });
        replicas.sum::<usize>()
            + self.replicas.capacity() * size_of::<ConnectionReplica>()
            + self.client.template.memory()
            + self.server.template.memory()
            + self.sent.memory()
            + self.shown.memory()
    }

    fn live_count(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.is_live()).count()
    }

    fn index_of(&self, id: ReplicaId) -> Option<usize> {
        self.replicas.iter().position(|replica| replica.id == id)
    }

    /// All live replicas have the client's stream up to here.
    fn acked(&self) -> u64 {
        let live = self.replicas.iter().filter(|replica| replica.is_live());
        live.map(|replica| replica.acked).min().unwrap_or(self.server.announced.0)
    }

    /// All live replicas take the client's stream up to here.
    fn edge(&self) -> u64 {
        let live = self.replicas.iter().filter(|replica| replica.is_live());
        live.map(|replica| replica.edge).min().unwrap_or(self.server.announced.1)
    }

    /// Whose duplicate acknowledgements the client is shown: of the replicas that have the least,
    /// the primary, or else the first.
    fn speaker(&self) -> usize {
        let acked = self.acked();
        let has_least = |index: &usize| {
            self.replicas.get(*index).is_some_and(|one| one.is_live() && one.acked == acked)
        };
        let all = core::iter::once(self.primary).chain(0..self.replicas.len());
        all.into_iter().find(has_least).unwrap_or(self.primary)
    }

    /// Whether replicas' packets are still translated.
    fn is_translating(&self) -> bool {
        match self.phase {
            ConnectionPhase::Opening { .. } => false,
            ConnectionPhase::Open => true,
            ConnectionPhase::Over { ending, .. } => {
                matches!(
                    ending,
                    ConnectionTermination::Finished | ConnectionTermination::ClientReset
                ) && self.live_count() > 0
            }
        }
    }

    /// The connection is over.
    fn end(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        ending: ConnectionTermination,
        linger: windtunnel_model::Span,
    ) {
        if !self.is_over() {
            cx.sink.event(self.key, ReplicationEventKind::Closed(ending));
        }
        self.phase = ConnectionPhase::Over { ending, until: cx.now + linger };
    }

    /// Ends a connection of which both directions are finished and acknowledged.
    fn end_if_finished(&mut self, cx: &mut ReplicationContext<'_>) {
        let has_come = self.client.fin.is_some_and(|fin| self.acked() > fin);
        let is_sent = self.fin.is_some_and(|fin| self.client.acked > fin);
        if self.phase == ConnectionPhase::Open && has_come && is_sent {
            self.end(cx, ConnectionTermination::Finished, LINGER);
            for replica in &mut self.replicas {
                replica.output.release();
            }
        }
    }

    /// The status of a replica that is no part of the connection any more, or never was.
    fn status(&self, index: usize) -> ReplicaLifecycleStage {
        self.replicas.get(index).map_or(ReplicaLifecycleStage::Out, |replica| replica.status)
    }
}
