//! Computations that a discipline makes at fixed times, made up for when it is next asked.

use windtunnel_model::{Span, Time};

#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodicUpdateTimer {
    every: Span,
    /// From the first packet on.
    next: Option<Time>,
}

impl PeriodicUpdateTimer {
    pub(super) fn new(every: Span) -> Self {
        PeriodicUpdateTimer { every, next: None }
    }

    /// Makes those that have become due. `update` computes the one of a time, or answers that
    /// nothing would change however often it was computed: then only the phase is kept.
    pub(super) fn advance(
        &mut self,
        now: Time,
        mut update: impl FnMut(Time) -> PeriodicUpdateOutcome,
    ) {
        let mut next = *self.next.get_or_insert(now + self.every);
        while next <= now {
            if update(next) == PeriodicUpdateOutcome::AtRest {
                let every = self.every.as_nanos().max(1);
                let missed = now.since(next).as_nanos() / every + 1;
                next += Span::from_nanos(missed.saturating_mul(every));
                break;
            }
            next += self.every;
        }
        self.next = Some(next);
    }

    /// When the next one is due.
    #[cfg(test)]
    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeriodicUpdateOutcome {
    Computed,
    AtRest,
}
