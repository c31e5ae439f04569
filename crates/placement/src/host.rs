//! Machines: their capacity, reservations, and the round-trip times between them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use windtunnel_model::{Bytes, Rate, Span};

/// A machine that nodes can be put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementHost {
    /// Its name; no two are alike.
    pub name: String,
    /// Words that stand for it, and perhaps for others, in `pin`: `ssd`, `rack=2`.
    pub labels: BTreeSet<String>,
    /// Its processors, in thousandths.
    pub cpu_millis: u64,
    /// Its memory.
    pub memory: Bytes,
    /// The rate of its network each way; `None`: not known, so nothing is refused for it.
    pub uplink: Option<Rate>,
    /// The most nodes that it takes; `None`: any number.
    pub nodes_max: Option<u32>,
    /// Its capacity reserved by other runs.
    pub reserved: ReservedCapacity,
}

/// A machine's capacity reserved by other runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReservedCapacity {
    /// Processors in thousandths.
    pub cpu_millis: u64,
    /// Memory.
    pub memory: Bytes,
    /// Bits a second to other machines.
    pub uplink_up: u64,
    /// Bits a second from other machines.
    pub uplink_down: u64,
    /// Nodes.
    pub nodes: u32,
}

impl PlacementHost {
    /// A machine with 16 processors, 64 GB, an unknown uplink, and nothing reserved.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        PlacementHost {
            name: name.into(),
            labels: BTreeSet::new(),
            cpu_millis: 16_000,
            memory: Bytes(64_000_000_000),
            uplink: None,
            nodes_max: None,
            reserved: ReservedCapacity::default(),
        }
    }

    /// Processors that no other run has, in thousandths.
    #[must_use]
    pub fn free_cpu_millis(&self) -> u64 {
        self.cpu_millis.saturating_sub(self.reserved.cpu_millis)
    }

    /// Memory that no other run has.
    #[must_use]
    pub fn free_memory(&self) -> Bytes {
        Bytes(self.memory.0.saturating_sub(self.reserved.memory.0))
    }

    /// How many more nodes it takes, if there is a bound.
    #[must_use]
    pub fn free_nodes(&self) -> Option<u32> {
        self.nodes_max.map(|most| most.saturating_sub(self.reserved.nodes))
    }

    /// Bits a second to other machines that no other run has, if the uplink is known.
    #[must_use]
    pub fn free_up(&self) -> Option<u64> {
        self.uplink.map(|rate| rate.bits_per_second().saturating_sub(self.reserved.uplink_up))
    }

    /// Bits a second from other machines that no other run has, if the uplink is known.
    #[must_use]
    pub fn free_down(&self) -> Option<u64> {
        self.uplink.map(|rate| rate.bits_per_second().saturating_sub(self.reserved.uplink_down))
    }

    /// Whether `pin` means this machine: its name or one of its labels.
    #[must_use]
    pub fn answers_to(&self, pin: &str) -> bool {
        self.name == pin || self.labels.contains(pin)
    }
}

/// Measured round-trip times between machines, by their positions. The same both ways.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rtts {
    known: BTreeMap<(usize, usize), Span>,
}

impl Rtts {
    /// Notes the round-trip time between two machines, instead of an earlier one.
    pub fn set(&mut self, a: usize, b: usize, rtt: Span) {
        self.known.insert((a.min(b), a.max(b)), rtt);
    }

    /// The round-trip time between two machines: none inside of one, `None` if it was never
    /// measured.
    #[must_use]
    pub fn between(&self, a: usize, b: usize) -> Option<Span> {
        if a == b {
            return Some(Span::ZERO);
        }
        self.known.get(&(a.min(b), a.max(b))).copied()
    }

    /// Half a round trip in nanoseconds, as far as it is known.
    pub(crate) fn one_way(&self, a: usize, b: usize) -> u64 {
        self.between(a, b).map_or(0, |rtt| rtt.as_nanos() / 2)
    }
}
