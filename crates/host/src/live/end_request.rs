//! Why the run is to end, and how urgently.

use windtunnel_verdict::evidence::RunEndReason;

/// The first reason to end the run, and whether an end at once was asked for since.
#[derive(Debug, Default)]
pub(super) struct EndRequest {
    reason: Option<RunEndReason>,
    hurried: bool,
}

impl EndRequest {
    /// Asks for the end; the first reason holds.
    pub(super) fn ask(&mut self, reason: RunEndReason) {
        self.reason.get_or_insert(reason);
    }

    /// Asks for the end, and for an end at once if the run is ending already.
    pub(super) fn insist(&mut self, reason: RunEndReason) {
        self.hurried |= self.reason.is_some();
        self.ask(reason);
    }

    /// Programs get no more time to end by themselves.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
    }

    /// Why the run is to end, if it is.
    pub(super) fn reason(&self) -> Option<&RunEndReason> {
        self.reason.as_ref()
    }

    /// Whether programs get no more time to end by themselves.
    pub(super) fn is_hurried(&self) -> bool {
        self.hurried
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_signal_hurries_the_end_that_the_first_has_begun() {
        let mut end = EndRequest::default();
        end.insist(RunEndReason::Interrupted(2));
        assert_eq!(end.reason(), Some(&RunEndReason::Interrupted(2)));
        assert!(!end.is_hurried(), "programs get their time");
        // The main loop has looked at the reason, as it does each turn.
        assert_eq!(end.reason(), Some(&RunEndReason::Interrupted(2)));
        end.insist(RunEndReason::Interrupted(15));
        assert!(end.is_hurried());
        assert_eq!(end.reason(), Some(&RunEndReason::Interrupted(2)), "the first reason holds");
    }

    #[test]
    fn a_signal_hurries_a_run_that_ends_by_itself() {
        let mut end = EndRequest::default();
        end.ask(RunEndReason::Duration);
        end.ask(RunEndReason::Finished);
        assert!(!end.is_hurried());
        end.insist(RunEndReason::Interrupted(2));
        assert!(end.is_hurried());
        assert_eq!(end.reason(), Some(&RunEndReason::Duration));
    }
}
