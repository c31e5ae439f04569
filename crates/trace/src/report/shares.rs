//! Programs that share the link of their node.

use serde::{Deserialize, Serialize};

/// What the programs of a node had of its link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeShares {
    /// The node.
    pub node: String,
    /// The direction of the link, as elsewhere.
    pub lane: String,
    /// Each program, and last what belongs to none.
    pub programs: Vec<ProgramShare>,
    /// Flows whose owners were looked for.
    pub flows: u64,
    /// Flows of sockets that several programs had.
    pub shared_flows: u64,
    /// Their packets that count as those of the program that sent each.
    #[serde(default)]
    pub attributed_packets: u64,
    /// Their bytes.
    #[serde(default)]
    pub attributed_bytes: u64,
    /// Their packets that count as the first program's, because it is not known which sent them: all
    /// of TCP, and datagrams of which no call was seen.
    #[serde(default)]
    pub unattributed_packets: u64,
    /// Their bytes.
    #[serde(default)]
    pub unattributed_bytes: u64,
    /// Packets that left before their owner was found, at the rest's share.
    pub early_packets: u64,
    /// Their bytes.
    pub early_bytes: u64,
    /// Packets of which no process was found, because its socket was closed too soon.
    pub unowned_packets: u64,
    /// Their bytes.
    pub unowned_bytes: u64,
    /// Packets that name no socket: fragments, and protocols without ports.
    pub portless_packets: u64,
    /// Their bytes.
    pub portless_bytes: u64,
    /// Packets of flows for which there was no room in the table.
    pub untracked_packets: u64,
    /// Their bytes.
    pub untracked_bytes: u64,
}

/// What a program had of its node's link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramShare {
    /// Its number among the node's programs; absent for the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<usize>,
    /// Its file, numbered where several have the same; `(rest)` for what belongs to none.
    pub name: String,
    /// Its minimum in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bits_per_second: Option<u64>,
    /// Its weight.
    pub weight: u32,
    /// Packets that the link has transmitted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes with the overhead that the link charges.
    pub wire_bytes: u64,
    /// Packets that were dropped because the queue was full.
    pub dropped_packets: u64,
}
