//! Timers, by their purpose.

use alloc::collections::{BTreeMap, BTreeSet};

use windtunnel_model::Time;

use crate::id::{AgentId, RunId};

/// Something that is due at a time. Each at one time only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MeshTimer {
    /// Ask agents that are not known here, or were lost.
    Rejoin,
    /// The next part of another agent's list of agents is overdue.
    Pull,
    /// Send an agent again that it is suspected.
    Notice(AgentId),
    /// Exchange timestamps.
    Clock(AgentId),
    /// Changes have been collected for long enough.
    Flush(RunId),
    /// Members that have time have had it.
    Later(RunId),
    /// Send a member our part in a run.
    State(RunId, u32),
    /// Send a member the digest of the flows it should hold.
    Digest(RunId, u32),
    /// Ask a member for missing versions.
    Want(RunId, u32),
}

/// All that is due.
#[derive(Debug, Default)]
pub(crate) struct MeshTimerQueue {
    at: BTreeMap<MeshTimer, Time>,
    order: BTreeSet<(Time, MeshTimer)>,
}

impl MeshTimerQueue {
    /// Due at `at`, no more at any other time.
    pub(crate) fn set(&mut self, wake: MeshTimer, at: Time) {
        self.cancel(wake);
        self.at.insert(wake, at);
        self.order.insert((at, wake));
    }

    /// Due at `at` or before.
    pub(crate) fn set_by(&mut self, wake: MeshTimer, at: Time) {
        if self.at.get(&wake).is_none_or(|already| *already > at) {
            self.set(wake, at);
        }
    }

    pub(crate) fn cancel(&mut self, wake: MeshTimer) {
        if let Some(at) = self.at.remove(&wake) {
            self.order.remove(&(at, wake));
        }
    }

    pub(crate) fn due(&self, wake: MeshTimer) -> Option<Time> {
        self.at.get(&wake).copied()
    }

    pub(crate) fn is_set(&self, wake: MeshTimer) -> bool {
        self.at.contains_key(&wake)
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The first that is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<MeshTimer> {
        let (_, wake) = *self.order.first().filter(|(at, _)| *at <= now)?;
        self.cancel(wake);
        Some(wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_timers_come_in_order_and_once() {
        let at = Time::from_nanos;
        let mut timers = MeshTimerQueue::default();
        timers.set(MeshTimer::Pull, at(5));
        timers.set(MeshTimer::Rejoin, at(9));
        timers.set(MeshTimer::Rejoin, at(3));
        timers.set_by(MeshTimer::Rejoin, at(4));
        timers.set_by(MeshTimer::Pull, at(4));
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.pop(at(2)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop(at(10))).collect();
        assert_eq!(due, [MeshTimer::Rejoin, MeshTimer::Pull]);
        assert!(!timers.is_set(MeshTimer::Pull) && timers.next().is_none());
    }
}
