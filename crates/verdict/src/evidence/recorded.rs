//! What became of the files that grow during a run.

use serde::{Deserialize, Serialize};

/// What the recorder found out.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RunRecorderSummary {
    /// By lane index: the most wire bytes a second over any whole second.
    pub peak_bytes_per_s: Vec<u64>,
    /// Records that were not written.
    pub lost: u64,
    /// Why writing failed, if it did.
    pub failure: Option<String>,
}
