//! Counters.

/// What came, went and was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplicationCounters {
    /// Connections that were opened.
    pub opened: u64,
    /// Connections of which another replica took over.
    pub promoted: u64,
    /// Replicas expelled from a connection, whatever the cause.
    pub expelled: u64,
    /// The same, because they sent other bytes.
    pub differed: u64,
    /// Segments of clients.
    pub from_clients: u64,
    /// Segments of replicas.
    pub from_replicas: u64,
    /// Packets to clients.
    pub to_clients: u64,
    /// Packets to replicas.
    pub to_replicas: u64,
    /// Bytes that were compared and given to clients.
    pub delivered: u64,
    /// Data that clients sent again.
    pub client_retransmissions: u64,
    /// Probes of replicas that were behind.
    pub probes: u64,
    /// Segments of replicas that this room answered for the client, which had acknowledged them.
    pub answered: u64,
    /// Data of backups that the client has or gets from the primary.
    pub absorbed: u64,
    /// Segments of replicas that take no part in their connection any more; they were reset.
    pub outsiders: u64,
    /// Segments with numbers that cannot be: acknowledged what was never sent, or lie before the
    /// beginning.
    pub implausible: u64,
    /// TCP options that were left out.
    pub options_removed: u64,
    /// Output dropped because it was further ahead than [`crate::ReplicationLimits::output`].
    pub output_too_far: u64,
    /// Output dropped because there would have been more than [`crate::GAPS_MAX`] gaps.
    pub output_gaps: u64,
    /// Output dropped because of [`crate::ReplicationLimits::output_total`].
    pub output_full: u64,
    /// Packets dropped because the caller did not take those that waited.
    pub packets_lost: u64,
    /// Events dropped likewise.
    pub events_lost: u64,
    /// Connections that were forgotten before their client had answered the SYN-ACK, because others
    /// came ([`crate::ReplicationLimits::half_open`]).
    pub half_open_forgotten: u64,
    /// SYNs with more replicas than [`crate::REPLICAS_MAX`].
    pub replicas_left_out: u64,
    /// What was not taken.
    pub refused: ReplicationRefusalCounters,
}

/// Packets that were not taken, by reason ([`crate::ReplicationRefusal`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplicationRefusalCounters {
    /// Not TCP.
    pub not_tcp: u64,
    /// Lengths or checksums contradict the bytes.
    pub malformed: u64,
    /// Fragments.
    pub fragment: u64,
    /// Of no connection here.
    pub unknown: u64,
    /// SYNs with a signature option.
    pub signed: u64,
    /// SYNs while the table was full.
    pub table_full: u64,
    /// SYNs with fewer than two replicas.
    pub too_few: u64,
}
