//! Members that have left a run while the part here goes on. As a rule they have reported before
//! that the run is over, on another stream than the one that says that they have left.

use std::collections::BTreeMap;

use windtunnel_model::{Span, Time};

/// Members that have left, and when that was learned.
#[derive(Debug, Default)]
pub(super) struct DepartedMembers(BTreeMap<u16, Time>);

impl DepartedMembers {
    /// A member has left.
    pub(super) fn add(&mut self, member: u16, at: Time) {
        self.0.entry(member).or_insert(at);
    }

    /// Those that have left long ago: messages that they sent before have come by now, or never
    /// will. Each once.
    pub(super) fn take(&mut self, now: Time) -> Vec<u16> {
        let is_due = |at: &Time| now.since(*at) >= PATIENCE;
        let due = self.0.iter().filter(|(_, at)| is_due(at)).map(|(member, _)| *member).collect();
        self.0.retain(|_, at| !is_due(at));
        due
    }
}

const PATIENCE: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_has_left_long_ago_is_named_once() {
        let at = |second| Time::ZERO + Span::from_secs(second);
        let mut leavers = DepartedMembers::default();
        leavers.add(3, at(10));
        leavers.add(3, at(11));
        leavers.add(1, at(11));
        assert!(leavers.take(at(11)).is_empty());
        assert_eq!(leavers.take(at(12)), [3]);
        assert_eq!(leavers.take(at(20)), [1]);
        assert!(leavers.take(at(20)).is_empty());
    }
}
