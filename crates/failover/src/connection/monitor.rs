//! Which replicas are behind the others, and whose stream has ended alone.

use super::client_state::ClientTcpState;
use super::replica_set::ConnectionReplicaSet;
use crate::config::FailureDetectorConfig;
use crate::health::{Lag, ReplicaProgress, ReplicaStreamPosition};
use crate::replica::ConnectionReplica;
use windtunnel_model::Time;

/// Compares how far live replicas are, after each change, and notes it in their health.
pub(super) struct ReplicaProgressMonitor<'a> {
    pub(super) replicas: &'a mut ConnectionReplicaSet,
    pub(super) client: &'a ClientTcpState,
    /// The largest segment that the client sends.
    pub(super) mss: u64,
    pub(super) detection: &'a FailureDetectorConfig,
}

impl ReplicaProgressMonitor<'_> {
    /// Looks which replicas are behind, and whose stream has ended alone.
    pub(super) fn compare(&mut self, now: Time) {
        let best = self.best();
        let is_apart =
            |replica: &ConnectionReplica| replica.position() != best || self.is_shut(replica);
        let are_apart = self.replicas.live().any(is_apart);
        for index in 0..self.replicas.members.len() {
            let replica = &self.replicas.members[index];
            if !replica.is_live() {
                continue;
            }
            let progress = ReplicaProgress {
                mark: replica.position(),
                edge: replica.edge,
                reached: replica.reached,
                segments: replica.segments,
                confirmed: self.client.acked,
            };
            let (lag, is_alone) = (self.lag(replica, best), self.has_finished_alone(index));
            let health = &mut self.replicas.members[index].health;
            health.compare(now, progress, lag, are_apart);
            health.finished = is_alone.then_some(health.finished.unwrap_or(now));
        }
    }

    /// The furthest of each that any live replica has come.
    fn best(&self) -> ReplicaStreamPosition {
        let positions = self.replicas.live().map(ConnectionReplica::position);
        positions.fold(ReplicaStreamPosition::default(), |best, own| ReplicaStreamPosition {
            acked: best.acked.max(own.acked),
            data: best.data.max(own.data),
            end: best.end.max(own.end),
        })
    }

    /// Whether a replica lacks what another has done, and could do it. A FIN alone does not count:
    /// it may be that of a program that was killed.
    ///
    /// What the client has to send again is not the replica's to do, unless it was given that
    /// often; and a replica that has sent something has to bring that to the client before it sends
    /// more.
    fn lag(&self, replica: &ConnectionReplica, best: ReplicaStreamPosition) -> Lag {
        let data_end = replica.output.data_end();
        let refuses = replica.acked < best.acked && replica.offers > self.detection.probes;
        if refuses || self.is_shut(replica) {
            Lag::Idle
        } else if data_end == best.data || self.client.acked < data_end {
            Lag::None
        } else if replica.reached > data_end {
            Lag::Lost
        } else {
            Lag::Idle
        }
    }

    /// Whether the client would send more, a replica has no room, and another has.
    fn is_shut(&self, replica: &ConnectionReplica) -> bool {
        let is_open = |one: &ConnectionReplica| one.is_open(self.client.sent, self.mss);
        self.client.asks && !is_open(replica) && self.replicas.live().any(is_open)
    }

    /// Whether a replica has finished its stream where others stand that have sent no more than
    /// that: those that have not come so far may finish there, too, or go on.
    fn has_finished_alone(&self, index: usize) -> bool {
        let output = &self.replicas.members[index].output;
        let Some(fin) = output.fin else { return false };
        let has_finished = |other: &ConnectionReplica| other.output.fin.is_some();
        let stands =
            |other: &ConnectionReplica| other.output.data_end() >= fin && other.reached <= fin;
        output.end() > fin
            && self.replicas.others(index).any(|other| !has_finished(other))
            && self.replicas.others(index).all(|other| has_finished(other) || stands(other))
    }
}
