//! Why packets are dropped on links.

use serde::{Deserialize, Serialize};

/// Why a packet did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The lane was down.
    Down,
    /// The lane was cut by a partition.
    Partition,
    /// It was too large and must not be fragmented.
    Mtu,
    /// The loss element decided so.
    Loss,
    /// The queue was full.
    QueueFull,
    /// Active queue management decided so.
    Aqm,
    /// The engine had no memory left for it.
    Memory,
}

impl DropReason {
    /// All, in the order of columns and of numbers in records.
    pub const ALL: [DropReason; 7] = [
        DropReason::Down,
        DropReason::Partition,
        DropReason::Mtu,
        DropReason::Loss,
        DropReason::QueueFull,
        DropReason::Aqm,
        DropReason::Memory,
    ];

    /// The name in tables, records and reports: lower case, words joined by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            other => other.key(),
        }
    }

    /// The key in the file that a person writes: words joined by `-`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            DropReason::Down => "down",
            DropReason::Partition => "partition",
            DropReason::Mtu => "mtu",
            DropReason::Loss => "loss",
            DropReason::QueueFull => "queue-full",
            DropReason::Aqm => "aqm",
            DropReason::Memory => "memory",
        }
    }
}
