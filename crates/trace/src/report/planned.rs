//! Events, starts and measurements that were planned for times of the run.

use serde::{Deserialize, Serialize};

/// Whether what was planned for times happened then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePunctuality {
    /// How much has happened.
    pub happened: u64,
    /// Of that, later than its bound.
    pub late: u64,
    /// How late the latest was, in nanoseconds.
    pub latest_ns: u64,
    /// Those that were furthest beyond their bounds, the furthest first; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst: Vec<LateEvent>,
}

/// Something that happened later than it may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateEvent {
    /// Such as `kill of web`, `start of web (nginx)`, `down of wan (a-b)`.
    pub event: String,
    /// Nanoseconds after the run began, for when it was planned.
    pub intended_ns: u64,
    /// How late it was, in nanoseconds.
    pub late_ns: u64,
    /// How late it may be, in nanoseconds.
    pub bound_ns: u64,
}
