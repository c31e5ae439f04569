//! Since when a peer has answered no probe.

use windtunnel_model::{Span, Time};

/// Probes that the path should carry, and their results.
#[derive(Debug, Default)]
pub(crate) struct PathLiveness {
    /// When the first was sent after the last answer.
    since: Option<Time>,
}

impl PathLiveness {
    /// Such a probe was sent.
    pub(crate) fn asked(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// Any probe was answered.
    pub(crate) fn answered(&mut self) {
        self.since = None;
    }

    /// Since when, if that is long enough to mean something.
    pub(crate) fn since(&self, now: Time) -> Option<Time> {
        self.since.filter(|since| now.since(*since) >= SILENT)
    }
}

/// Eight probes without an answer: a way that loses one in ten datagrams is not silent.
pub(crate) const SILENT: Span = Span::from_secs(2);
