//! Pausing all programs while the packet loop is behind.

use serde::{Deserialize, Serialize};
use windtunnel_model::{Span, Time};

/// How often and how long all programs were paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Freezes {
    /// How often.
    pub(crate) times: u64,
    /// How long, together.
    pub(crate) lasted: Span,
}

/// Whether all programs are paused now, and the account of it.
#[derive(Debug, Default)]
pub(crate) struct Frost {
    since: Option<Time>,
    total: Freezes,
}

impl Frost {
    pub(crate) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn total(&self) -> Freezes {
        self.total
    }

    pub(crate) fn begin(&mut self, at: Time) {
        self.since = Some(at);
        self.total.times += 1;
    }

    /// Whether it was on.
    pub(crate) fn end(&mut self, at: Time) -> bool {
        let Some(since) = self.since.take() else { return false };
        self.total.lasted = self.total.lasted + at.since(since);
        true
    }
}
