//! The members of a run that have not been sent everything.

use alloc::collections::BTreeSet;

use windtunnel_model::{Span, Time};

/// The members that changes of this agent's flows are to be sent to: at once, or in time.
#[derive(Debug, Default)]
pub(crate) struct AnnouncementQueue {
    /// Members that have not been sent everything, and are to be.
    dirty: BTreeSet<u32>,
    /// Others that have not been sent everything, and can wait. One that is to be sent everything
    /// now may still be among them.
    later: BTreeSet<u32>,
    /// When changes were last sent.
    flushed: Option<Time>,
}

impl AnnouncementQueue {
    /// There is a change for some members at once, and for `all` in time.
    pub(crate) fn add(
        &mut self,
        at_once: impl Iterator<Item = u32>,
        all: impl Iterator<Item = u32>,
    ) {
        self.dirty.extend(at_once);
        self.later.extend(all.filter(|member| !self.dirty.contains(member)));
    }

    /// A member is to be sent everything now.
    pub(crate) fn insert(&mut self, member: u32) {
        self.dirty.insert(member);
    }

    /// A member that could wait cannot any more.
    pub(crate) fn hasten(&mut self, member: u32) {
        if self.later.contains(&member) {
            self.dirty.insert(member);
        }
    }

    /// A member is sent nothing any more.
    pub(crate) fn remove(&mut self, member: u32) {
        self.dirty.remove(&member);
        self.later.remove(&member);
    }

    /// Whether a member has not been sent everything.
    pub(crate) fn contains(&self, member: u32) -> bool {
        self.dirty.contains(&member) || self.later.contains(&member)
    }

    /// Whether no member is to be sent anything now.
    pub(crate) fn is_empty(&self) -> bool {
        self.dirty.is_empty()
    }

    /// Whether there are members that can wait.
    pub(crate) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// When changes may be sent again, if they are collected for so long.
    pub(crate) fn due(&self, batch: Span) -> Option<Time> {
        self.flushed.map(|at| at + batch)
    }

    /// Takes the members that are sent everything now.
    pub(crate) fn take(&mut self, now: Time) -> BTreeSet<u32> {
        self.flushed = Some(now);
        let members = core::mem::take(&mut self.dirty);
        for member in &members {
            self.later.remove(member);
        }
        members
    }

    /// The members that could wait are to be sent everything now. Returns them.
    pub(crate) fn end_waiting(&mut self) -> BTreeSet<u32> {
        let later = core::mem::take(&mut self.later);
        self.dirty.extend(&later);
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_can_wait_are_sent_changes_later_or_with_others() {
        let mut queue = AnnouncementQueue::default();
        queue.add([1].into_iter(), [1, 2, 3].into_iter());
        assert!(queue.contains(2) && queue.has_later() && !queue.is_empty());
        queue.hasten(2);
        queue.hasten(9);
        let now = Time::from_nanos(5);
        assert_eq!(queue.take(now), BTreeSet::from([1, 2]));
        assert!(queue.is_empty() && queue.contains(3) && !queue.contains(2));
        assert_eq!(queue.due(Span::from_nanos(2)), Some(Time::from_nanos(7)));
        assert_eq!(queue.end_waiting(), BTreeSet::from([3]));
        assert_eq!(queue.take(now), BTreeSet::from([3]));
        assert!(!queue.has_later());
    }
}
