//! Routes that change while packets are under way.

use alloc::collections::VecDeque;

use windtunnel_model::{Span, Time};

/// When shortest routes are computed again because lanes went down or up.
#[derive(Debug)]
pub(crate) struct RerouteSchedule {
    /// So long after a change; `None`: never.
    delay: Option<Span>,
    /// Times to come, in order.
    due: VecDeque<Time>,
}

impl RerouteSchedule {
    pub(super) fn new(delay: Option<Span>) -> Self {
        RerouteSchedule { delay, due: VecDeque::new() }
    }

    /// Lanes went down or up.
    pub(super) fn lanes_changed(&mut self, now: Time) {
        let Some(delay) = self.delay else { return };
        let at = now + delay;
        // Changes of one instant are answered once.
        if self.due.back() != Some(&at) {
            self.due.push_back(at);
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.due.front().copied()
    }

    /// The next time, if it has come.
    pub(crate) fn take(&mut self, now: Time) -> Option<Time> {
        let at = self.next().filter(|at| *at <= now)?;
        self.due.pop_front();
        Some(at)
    }
}
