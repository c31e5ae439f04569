//! The names of agents, runs, plans and flows.

use core::fmt;
use core::net::SocketAddr;

/// An agent: one for each machine, the same over restarts. The caller draws it randomly once and
/// keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u64);

/// A run of an experiment, drawn randomly when it is started. An id is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// The SHA-256 of the plan and the placement, on which all members of a run must agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanHash(pub [u8; 32]);

/// One life of an agent: from its start until it ends, or until the others have declared it lost.
///
/// A later life of an agent (by `epoch`, then `renewal`) replaces an earlier one everywhere, and
/// the earlier one's announcements are void.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The agent.
    pub agent: AgentId,
    /// Which start of it: greater than that of all former starts. The wall clock in microseconds
    /// will do.
    pub epoch: u64,
    /// How often it has been declared lost since that start, although it lived.
    pub renewal: u32,
    /// Its address.
    pub address: SocketAddr,
}

impl Identity {
    /// Whether this is a later life than `other`, of the same agent.
    pub(crate) fn follows(&self, other: &Identity) -> bool {
        (self.epoch, self.renewal, self.address) > (other.epoch, other.renewal, other.address)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlanHash({self})")
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}, life {}.{}", self.agent, self.address, self.epoch, self.renewal)
    }
}

/// Mixes a number so that sums of such are a fingerprint of a set (SplitMix64's finish).
pub(crate) const fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
