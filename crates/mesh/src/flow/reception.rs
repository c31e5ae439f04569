//! How far another member's flows have been received, and what of them is to be asked for.

use windtunnel_model::Span;

use super::peer::PeerFlows;
use crate::wire::message::FlowTableDigest;

/// Until a request for missing versions is repeated: doubled each time…
const WANT_WAIT: Span = Span::from_millis(20);
/// …up to this.
const WANT_WAIT_MAX: Span = Span::from_millis(500);

/// The flows of one member of a run, and the requests for those that are missing.
#[derive(Debug, Default)]
pub(crate) struct FlowReception {
    pub(crate) flows: PeerFlows,
    /// It was reported that not all of its flows were taken.
    overflow_reported: bool,
    want_wait: Span,
    /// The greatest version that its digests name.
    want_top: u64,
}

impl FlowReception {
    /// Something is known to be missing.
    pub(crate) fn lacks(&self) -> bool {
        self.flows.has_gap() || self.flows.have() < self.want_top
    }

    /// So many flows were not taken. Whether that is to be reported: once only.
    pub(crate) fn overflows(&mut self, refused: u64) -> bool {
        let first = refused > 0 && !self.overflow_reported;
        self.overflow_reported |= first;
        first
    }

    /// Compares the flows with a digest. Whether they agree; `None` if that cannot be decided.
    pub(crate) fn compare(&mut self, digest: &FlowTableDigest) -> Option<bool> {
        let agrees = self.flows.agrees(digest.top, digest.flows);
        match agrees {
            Some(false) => {
                if self.flows.have() == digest.top {
                    self.flows.restart();
                }
                self.want_top = self.want_top.max(digest.top);
            }
            // Announcements beyond that have been withdrawn.
            Some(true) => self.want_top = 0,
            None => {}
        }
        agrees
    }

    /// Something was found to be missing just now: the first request is repeated soon.
    pub(crate) fn begin_wanting(&mut self) {
        self.want_wait = WANT_WAIT;
    }

    /// If something is missing: the version that everything up to has been received, for a request,
    /// and how soon it is repeated.
    pub(crate) fn next_want(&mut self) -> Option<(u64, Span)> {
        if !self.lacks() {
            return None;
        }
        let wait = self.want_wait.max(WANT_WAIT);
        self.want_wait = Span::from_nanos(wait.as_nanos() * 2).min(WANT_WAIT_MAX);
        Some((self.flows.have(), wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;
    use crate::flow::Fingerprint;

    #[test]
    fn what_a_digest_names_is_asked_for_ever_more_rarely_until_a_digest_agrees() {
        let mut reception = FlowReception::default();
        let digest =
            |top| FlowTableDigest { run: RunId(1), top, flows: Fingerprint::default(), lost: 0 };
        assert_eq!((reception.compare(&digest(7)), reception.lacks()), (Some(false), true));
        reception.begin_wanting();
        assert_eq!(reception.next_want(), Some((0, WANT_WAIT)));
        assert_eq!(reception.next_want(), Some((0, Span::from_millis(40))));
        for _ in 0..10 {
            reception.next_want();
        }
        assert_eq!(reception.next_want(), Some((0, WANT_WAIT_MAX)));
        assert_eq!((reception.compare(&digest(0)), reception.next_want()), (Some(true), None));
    }

    #[test]
    fn refused_flows_are_reported_once() {
        let mut reception = FlowReception::default();
        assert!(!reception.overflows(0));
        assert!(reception.overflows(3));
        assert!(!reception.overflows(1));
    }
}
