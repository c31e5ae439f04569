//! Pausing all programs while the packet loop is behind.

use windtunnel_model::Time;
use windtunnel_verdict::evidence::FreezeTotals;

/// Whether all programs are paused now, and the account of it.
#[derive(Debug, Default)]
pub(crate) struct FreezeState {
    since: Option<Time>,
    total: FreezeTotals,
}

impl FreezeState {
    pub(crate) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn total(&self) -> FreezeTotals {
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

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;

    use super::*;

    #[test]
    fn the_time_of_all_freezes_is_added() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut freeze = FreezeState::default();
        assert!(!freeze.is_on() && !freeze.end(at(5)), "there is nothing to end");
        freeze.begin(at(10));
        assert!(freeze.is_on());
        assert!(freeze.end(at(40)) && !freeze.is_on());
        freeze.begin(at(100));
        freeze.end(at(105));
        assert_eq!(freeze.total(), FreezeTotals { times: 2, lasted: Span::from_millis(35) });
    }
}
