//! What the machine's processors did while packets were late: why they were, a whole run does not
//! say.

use serde::{Deserialize, Serialize};
use windtunnel_model::Span;
use windtunnel_sys::limits::CpuTickCounters;

/// What they did in the intervals in which packets were late, as ticks, and how long these were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhenLate {
    pub busy: u64,
    pub idle: u64,
    pub stolen: u64,
    pub lasted: Span,
}

impl From<WhenLate> for CpuTickCounters {
    fn from(load: WhenLate) -> Self {
        CpuTickCounters { busy: load.busy, idle: load.idle, stolen: load.stolen }
    }
}
