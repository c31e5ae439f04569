//! What can be seen of connections.

use alloc::vec::Vec;

use super::{ConnectionReplicator, ConnectionTableEntry};
use crate::counters::ReplicationCounters;
use crate::event::{RedirectorNumber, ReplicaId, ReplicatedConnectionKey};
use windtunnel_model::Time;

/// What is known of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSnapshot {
    /// Whose output the client gets; none before the connection is open, and after it is over.
    pub primary: Option<ReplicaId>,
    /// The replicas that take part, the primary included.
    pub replicas: Vec<ReplicaId>,
    /// When the last packet of either side came.
    pub active: Time,
    /// Bytes of output that wait for another replica.
    pub buffered: usize,
    /// Bytes of memory.
    pub memory: usize,
    /// Whether it is over, and only lingers.
    pub is_over: bool,
    /// Whether the client has not answered the SYN-ACK so far.
    pub is_half_open: bool,
}

impl ConnectionReplicator {
    /// Where a connection is kept, if there is one.
    #[must_use]
    pub fn place(&self, key: &ReplicatedConnectionKey) -> Option<RedirectorNumber> {
        self.table.get(key).map(|entry| entry.place)
    }

    /// All connections in order, those that linger included.
    pub fn keys(&self) -> impl Iterator<Item = &ReplicatedConnectionKey> {
        self.table.keys()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> ReplicationCounters {
        self.sink.counters
    }

    /// Connections, those that linger included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// A connection, if there is one.
    #[must_use]
    pub fn view(&self, key: ReplicatedConnectionKey) -> Option<ConnectionSnapshot> {
        let connection = &self.table.get(&key)?.connection;
        Some(ConnectionSnapshot {
            primary: connection.replicas.speaking(),
            replicas: connection.replicas.live().map(|replica| replica.id).collect(),
            active: connection.life.active,
            buffered: connection.replicas.buffered(),
            memory: connection.memory() + size_of::<ConnectionTableEntry>(),
            is_over: connection.life.is_over(),
            is_half_open: connection.is_half_open(),
        })
    }
}
