//! What is left to do after all programs were let go on at once.

use std::time::Duration;

use windtunnel_limit::{ProcessScope, births};

/// Looks for processes that were born stopped, for a while.
#[derive(Debug, Default)]
pub(super) struct ResumptionMonitor {
    next: Option<ResumptionCheck>,
}

#[derive(Debug, Clone, Copy)]
struct ResumptionCheck {
    at_ns: u64,
    /// Since the one before.
    after: Duration,
}

impl ResumptionMonitor {
    /// All programs go on from `now_ns`.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.next = Some(ResumptionCheck::after(FIRST, now_ns));
    }

    /// They are stopped again, or a limit looks.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// When it has something to do, if it has.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.next.map(|look| look.at_ns)
    }

    /// Does it, if it is time.
    pub(super) fn turn(&mut self, now_ns: u64) {
        let Some(look) = self.next.filter(|look| look.at_ns <= now_ns) else { return };
        births::resume(ProcessScope::Namespace.processes());
        let after = look.after * GROWTH;
        self.next = (after <= LAST).then(|| ResumptionCheck::after(after, now_ns));
    }
}

impl ResumptionCheck {
    fn after(after: Duration, now_ns: u64) -> ResumptionCheck {
        let after_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        ResumptionCheck { at_ns: now_ns.saturating_add(after_ns), after }
    }
}

/// A fork is under way for that long, unless its process waits for a processor.
const FIRST: Duration = Duration::from_millis(2);
const GROWTH: u32 = 8;
const LAST: Duration = Duration::from_secs(8);
