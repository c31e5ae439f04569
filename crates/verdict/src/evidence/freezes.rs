//! How all programs were paused while the packet loop was behind.

use serde::{Deserialize, Serialize};
use windtunnel_model::Span;

/// How often and how long all programs were paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeTotals {
    pub times: u64,
    /// How long, together.
    pub lasted: Span,
}
