//! What goes out: packets and events.

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_model::Span;
use windtunnel_wire::vnet;

/// A replica, by the caller's own number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(pub u32);

/// Where a connection is kept, by the caller's own number for it: that of a redirector, if there are
/// several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RedirectorNumber(pub u32);

/// A connection: the addresses that the client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicatedConnectionKey {
    /// The client.
    pub client: SocketAddr,
    /// The service.
    pub service: SocketAddr,
}

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransmitDestination {
    /// To the client, by its address.
    Client,
    /// To this replica. The packet has the service's address.
    Replica(ReplicaId),
}

/// A packet to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransmitRequest {
    /// Where from.
    pub place: RedirectorNumber,
    /// Where to.
    pub to: TransmitDestination,
    /// Its header: the checksum is partial, and it may be a train.
    pub vnet: vnet::VirtioNetHeader,
    /// An Ethernet frame, with the Ethernet addresses of an earlier packet of this direction.
    pub frame: Vec<u8>,
}

/// Something that happened to a connection, in the order in which it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationEvent {
    /// The connection.
    pub key: ReplicatedConnectionKey,
    /// What.
    pub what: ReplicationEventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicationEventKind {
    /// The client was given a SYN-ACK.
    Opened {
        /// Whose output the client gets.
        primary: ReplicaId,
        /// Replicas that take part.
        replicas: usize,
        /// Time from the first answer of a replica to the last.
        waited: Span,
    },
    /// A replica is out of this connection.
    Expelled {
        /// Which.
        replica: ReplicaId,
        /// Why.
        cause: ReplicaExpulsionCause,
        /// Time from when it fell behind, or sent what was wrong, until now.
        after: Span,
        /// Replicas left.
        left: usize,
    },
    /// The primary was expelled, and another speaks from now on.
    Promoted {
        /// The new primary.
        replica: ReplicaId,
    },
    /// The client has the first packet since a replica was expelled.
    Resumed {
        /// Time since the packet that the client got before.
        silence: Span,
    },
    /// The connection is over.
    Closed(ConnectionTermination),
    /// The table is full, and this connection is not taken, and perhaps others after it, until one
    /// is taken again.
    TableFull,
}

/// Why a replica was expelled from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaExpulsionCause {
    /// The caller says that it is gone ([`crate::ConnectionReplicator::replica_lost`]).
    Withdrawn,
    /// It answered no probe.
    Silent,
    /// It answers, but did nothing for [`crate::FailureDetectorConfig::stall`] that others have done.
    Stalled,
    /// It sent other bytes than the others, from this byte of the server's stream on (0 is the
    /// first).
    Differed {
        /// Offset in the server's stream.
        offset: u64,
    },
    /// It finished its stream where another goes on, or alone for
    /// [`crate::FailureDetectorConfig::finish_grace`].
    FinishedAlone,
    /// It reset the connection.
    Reset,
    /// It refused the connection with a reset.
    Refused,
    /// It did not answer SYN in time.
    NoAnswer,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionTermination {
    /// Both directions were finished and acknowledged.
    Finished,
    /// The client reset it.
    ClientReset,
    /// The last replica reset it.
    ReplicaReset,
    /// All replicas refused it.
    Refused,
    /// The last replica is gone.
    Lost,
    /// No packet came for too long.
    Idle,
    /// The client began anew from the same port.
    Replaced,
}
