//! Ports of agents, and of runs.

/// The default port of agents.
pub const PORT: u16 = 7447;

/// The first and the last of the UDP ports for packets of runs on a machine whose agent listens
/// on `port`: those behind it. Each run takes one.
#[must_use]
pub fn part_ports(port: u16) -> (u16, u16) {
    let first = port.saturating_add(1);
    (first, first.saturating_add(PART_PORTS - 1))
}

/// How many runs can be on a machine at the same time.
const PART_PORTS: u16 = 100;
