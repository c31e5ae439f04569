//! What went between the machines of a run.

use serde::{Deserialize, Serialize};

/// What went between the machines, as one of them saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterMachineTraffic {
    /// Packets that were sent to other machines.
    pub sent_packets: u64,
    /// Bytes of all datagrams that were sent, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Packets that came from other machines.
    pub received_packets: u64,
    /// Packets that this machine could not send.
    pub unsent_packets: u64,
    /// Datagrams with packets that were sent to this machine and have not come.
    pub lost_datagrams: u64,
    /// Packets of which only a part came.
    pub incomplete_packets: u64,
    /// Packets that came and for which there was no room until their time.
    pub overflowed_packets: u64,
    /// Packets for which there is no node here, or from a machine whose clock is not known.
    pub stray_packets: u64,
    /// Datagrams that were not of this run, or not whole, or came twice.
    pub refused_datagrams: u64,
    /// Flows of the others that began, that were announced to this machine.
    #[serde(default)]
    pub announced_flows: u64,
    /// News of flows that made no sense here.
    pub refused_flows: u64,
    /// Flows here that could not be announced to the others.
    pub nameless_flows: u64,
}
