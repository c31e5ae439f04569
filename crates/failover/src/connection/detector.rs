//! Which replicas are given up, and when.

use super::replica_set::ConnectionReplicaSet;
use crate::config::FailureDetectorConfig;
use crate::event::ReplicaExpulsionCause;
use crate::health::ReplicaHealthVerdict;
use crate::replica::ConnectionReplica;
use windtunnel_model::Time;

/// Judges replicas by their health and by that of the others: what none does, none is blamed for.
pub(super) struct ReplicaFailureDetector<'a> {
    pub(super) replicas: &'a ConnectionReplicaSet,
    pub(super) detection: &'a FailureDetectorConfig,
}

/// What is to be done about a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplicaJudgement {
    /// Nothing yet.
    Wait,
    /// It is to be probed.
    Probe,
    /// It is to be expelled: why, and since when that was to be seen.
    Expel { cause: ReplicaExpulsionCause, since: Time },
}

/// A fault of a replica that may still pass: since when, and until when that is borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ToleratedFault {
    cause: ReplicaExpulsionCause,
    since: Time,
    until: Time,
}

impl ReplicaFailureDetector<'_> {
    /// What is to be done about a live replica at a time.
    pub(super) fn judge(&self, now: Time, index: usize) -> ReplicaJudgement {
        if let Some(fault) = self.faults(index).find(|fault| fault.until <= now) {
            return ReplicaJudgement::Expel { cause: fault.cause, since: fault.since };
        }
        let health = &self.replicas.members[index].health;
        match health.verdict(now, self.detection) {
            ReplicaHealthVerdict::Silent if self.another_lives_since(index, health.silent) => {
                let since = health.apart.unwrap_or(now);
                ReplicaJudgement::Expel { cause: ReplicaExpulsionCause::Silent, since }
            }
            // Where all are silent the fault may be on the way to them.
            ReplicaHealthVerdict::Silent | ReplicaHealthVerdict::Probe => ReplicaJudgement::Probe,
            ReplicaHealthVerdict::Wait => ReplicaJudgement::Wait,
        }
    }

    /// When a judgement is due next. The last replica is never given up.
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.replicas.live_count() < 2 {
            return None;
        }
        let members = self.replicas.members.iter().enumerate();
        let live = members.filter(|(_, replica)| replica.is_live());
        let due = live.flat_map(|(index, replica)| {
            let until = self.faults(index).map(|fault| fault.until).min();
            [replica.health.deadline(self.detection), until]
        });
        due.flatten().min()
    }

    fn faults(&self, index: usize) -> impl Iterator<Item = ToleratedFault> {
        [self.finished_alone(index), self.stalled(index)].into_iter().flatten()
    }

    /// A stream that ended alone.
    fn finished_alone(&self, index: usize) -> Option<ToleratedFault> {
        let since = self.replicas.members[index].health.finished?;
        let until = since + self.detection.finish_grace;
        let cause = ReplicaExpulsionCause::FinishedAlone;
        self.all_others_live_since(index, since).then_some(ToleratedFault { cause, since, until })
    }

    /// A replica that does nothing. Where each lacks what another has done, the one that did
    /// something last is the best that there is.
    fn stalled(&self, index: usize) -> Option<ToleratedFault> {
        let health = &self.replicas.members[index].health;
        let (since, until) = health.stall(self.detection)?;
        let goes_on = |other: &ConnectionReplica| {
            !other.health.is_lagging() || other.health.moved > health.moved
        };
        let is_worse =
            self.replicas.others(index).any(goes_on) && self.all_others_live_since(index, since);
        let cause = ReplicaExpulsionCause::Stalled;
        is_worse.then_some(ToleratedFault { cause, since, until })
    }

    /// Whether all others have been seen since a time. If not, they may be the dead ones, and are
    /// being probed.
    fn all_others_live_since(&self, index: usize, since: Time) -> bool {
        self.replicas.others(index).all(|other| other.health.seen > since)
    }

    fn another_lives_since(&self, index: usize, since: Time) -> bool {
        self.replicas.others(index).any(|other| other.health.seen > since)
    }
}
