//! When files of parts that were not fetched are removed: an agent's disk is not to fill silently.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use windtunnel_model::{Span, Time};

use crate::protocol::run::text_of;

/// How long files wait to be fetched.
#[derive(Debug)]
pub(super) struct RunFileRetention {
    keep: Span,
    /// By run that is over and has no watcher: since when.
    waiting: BTreeMap<u64, Time>,
    /// The last runs whose files were removed, for the error message to late clients.
    expired: VecDeque<u64>,
}

impl RunFileRetention {
    pub(super) fn new(keep: Span) -> Self {
        RunFileRetention { keep, waiting: BTreeMap::new(), expired: VecDeque::new() }
    }

    /// The runs that have waited for long enough, of all that are over and have no watcher
    /// `now`. One that was watched meanwhile begins to wait anew.
    pub(super) fn take(&mut self, idle: impl Iterator<Item = u64>, now: Time) -> Vec<u64> {
        let before = mem::take(&mut self.waiting);
        let since = |run: u64| before.get(&run).copied().unwrap_or(now);
        let (mut up, keep) = (Vec::new(), self.keep);
        for run in idle {
            if now.since(since(run)) >= keep {
                up.push(run);
            } else {
                self.waiting.insert(run, since(run));
            }
        }
        self.expired.extend(&up);
        self.expired.drain(..self.expired.len().saturating_sub(REMEMBERED));
        up
    }

    /// Why a run is not here.
    pub(super) fn why_unknown(&self, run: u64) -> String {
        let run_text = text_of(run);
        if self.expired.contains(&run) {
            let keep = self.keep;
            return format!(
                "the results of run {run_text} have expired: they were not fetched for {keep} (--keep-results of the agent)"
            );
        }
        format!("no run {run_text} is here")
    }
}

const REMEMBERED: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u64) -> Time {
        Time::ZERO + Span::from_secs(3600 * hour)
    }

    /// Of runs that are over and unwatched at this hour, these expire.
    #[track_caller]
    fn expect(expiry: &mut RunFileRetention, idle: &[u64], hour: u64, expired: &[u64]) {
        assert_eq!(expiry.take(idle.iter().copied(), at(hour)), expired);
    }

    fn day() -> RunFileRetention {
        RunFileRetention::new(Span::from_secs(24 * 3600))
    }

    #[test]
    fn results_that_are_not_fetched_expire_once_and_each_run_by_itself() {
        let mut expiry = day();
        expect(&mut expiry, &[1], 0, &[]);
        expect(&mut expiry, &[1, 2], 23, &[]);
        expect(&mut expiry, &[1, 2], 24, &[1]);
        expect(&mut expiry, &[2], 46, &[]);
        expect(&mut expiry, &[2], 47, &[2]);
        expect(&mut expiry, &[], 99, &[]);
    }

    #[test]
    fn a_run_that_was_watched_waits_from_then_on() {
        let mut expiry = day();
        expect(&mut expiry, &[1], 0, &[]);
        // It is watched.
        expect(&mut expiry, &[], 20, &[]);
        expect(&mut expiry, &[1], 21, &[]);
        expect(&mut expiry, &[1], 44, &[]);
        expect(&mut expiry, &[1], 45, &[1]);
    }

    #[test]
    fn a_late_client_learns_that_the_results_have_expired_and_others_that_there_is_no_run() {
        let mut expiry = day();
        expect(&mut expiry, &[0xa], 0, &[]);
        assert_eq!(expiry.why_unknown(0xa), "no run 000000000000000a is here");
        expect(&mut expiry, &[0xa], 24, &[0xa]);
        assert_eq!(
            expiry.why_unknown(0xa),
            "the results of run 000000000000000a have expired: they were not fetched for 24h (--keep-results of the agent)"
        );
        // As long as not too many have expired since: an agent may live for years.
        let later = 1 << 20;
        let many = later..later + 1000;
        expiry.take(many.clone(), at(25));
        expiry.take(many, at(49));
        assert_eq!(expiry.why_unknown(0xa), "no run 000000000000000a is here");
        assert!(expiry.why_unknown(later).contains("expired"));
    }

    #[test]
    fn results_that_are_not_to_be_kept_expire_as_soon_as_they_have_no_watcher() {
        let mut expiry = RunFileRetention::new(Span::ZERO);
        expect(&mut expiry, &[1], 5, &[1]);
    }
}
