//! Nodes that pay for receiving.

use serde::{Deserialize, Serialize};

/// What came to a node whose packets are delivered within its own processor time, in packets:
/// `came` = `delivered` + `dropped_full` + `dropped_early`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReceived {
    /// The node.
    pub node: String,
    /// What the network delivered to it.
    pub came: u64,
    /// What its receive queue took. What it still held at the end is counted here.
    pub delivered: u64,
    /// What was dropped because the receive queue was full.
    pub dropped_full: u64,
    /// What was dropped because sockets of that UDP port had no room for so much.
    pub dropped_early: u64,
    /// Of what was delivered, datagrams for which sockets had no room, as the node's kernel counts
    /// (`RcvbufErrors`): the last tenth of a second before the end may be missing.
    pub overflowed: u64,
    /// Processor time of delivering, in nanoseconds: the kernel's work for each packet up to the
    /// socket.
    pub computed_ns: u64,
}
