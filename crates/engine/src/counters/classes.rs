//! What the classes that share a lane did.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What one class sent and lost at a queue. A *packet* is an MTU segment; bytes are those of IP
/// packets unless the name says wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassCounters {
    /// Packets that the rate has begun to transmit.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes with the overhead that the lane charges.
    pub wire_bytes: u64,
    /// Packets that were dropped because the queue was full.
    pub dropped_packets: u64,
}

/// How much is known of the owners of what was transmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrafficOwnershipCounts {
    /// Flows that were asked for.
    pub flows: u64,
    /// What left before there was an answer.
    pub asked: TrafficVolume,
    /// What left for flows that have no owner.
    pub unowned: TrafficVolume,
    /// What left without naming a socket: fragments, and protocols without ports.
    pub no_socket: TrafficVolume,
    /// What left for flows that found no room in the table.
    pub untracked: TrafficVolume,
    /// What left of sockets that several classes have, each packet in the class that sent it.
    pub attributed: TrafficVolume,
    /// What left of such sockets in the class of its flow.
    pub unattributed: TrafficVolume,
}

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrafficVolume {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The classes of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneClassCounters {
    /// In the order of the plan, and last what belongs to none of them.
    pub counters: Vec<ClassCounters>,
    /// How much is known of owners.
    pub ownership: TrafficOwnershipCounts,
}

impl TrafficVolume {
    pub(crate) fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }
}
