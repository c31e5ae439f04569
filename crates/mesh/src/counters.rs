//! Counters.

/// Datagrams and bytes (payload, without the carrier's) of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatagramTotals {
    /// Datagrams.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Datagrams and announcements received, sent and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeshTrafficCounters {
    /// All that came.
    pub received: DatagramTotals,
    /// Sent for membership: probes, news, lists of agents.
    pub membership: DatagramTotals,
    /// Sent for agreement on runs.
    pub runs: DatagramTotals,
    /// Sent as changes of flows, and their repairs.
    pub flows: DatagramTotals,
    /// Sent to compare tables: digests, and requests for missing versions.
    pub digests: DatagramTotals,
    /// Sent to compare clocks.
    pub clocks: DatagramTotals,
    /// Came in another version of the protocol, or nothing of ours.
    pub other_version: u64,
    /// Came cut, too large, of an unknown kind or with impossible values.
    pub malformed: u64,
    /// From an agent that is not known here, or from a former life.
    pub strangers: u64,
    /// Came for a run that this agent has no part in.
    pub other_run: u64,
    /// Came for a run from a member that has no part in it (yet, or any more).
    pub outside: u64,
    /// Announcements without anything new: duplicated, late, or repairs of a complete table.
    pub stale: u64,
    /// Announced flows and named agents that were not taken because there are too many.
    pub refused: u64,
    /// Timestamps that were not requested, or that cannot be.
    pub odd_clocks: u64,
    /// Requests for missing versions that were answered.
    pub repairs: u64,
    /// How often this agent was not there when it wanted to be, for longer than an answer may
    /// take.
    pub stalls: u64,
}

impl MeshTrafficCounters {
    /// All that was sent.
    #[must_use]
    pub fn sent(&self) -> DatagramTotals {
        let kinds = [self.membership, self.runs, self.flows, self.digests, self.clocks];
        kinds.into_iter().fold(DatagramTotals::default(), |sum, kind| DatagramTotals {
            datagrams: sum.datagrams + kind.datagrams,
            bytes: sum.bytes + kind.bytes,
        })
    }
}

impl DatagramTotals {
    pub(crate) fn count(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}
