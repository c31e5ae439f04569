//! Time: replicas that are behind, streams that end alone, connections that are forgotten.

use super::{ConnectionPhase, ReplicatedConnection, ReplicationContext};
use crate::config::{FailureDetectorConfig, OPENING_MAX, RESET_LINGER};
use crate::event::{ConnectionTermination, ReplicaExpulsionCause};
use crate::health::{Lag, ReplicaHealthVerdict, ReplicaProgress, ReplicaStreamPosition};
use crate::replica::ConnectionReplica;
use windtunnel_model::Time;

impl ReplicatedConnection {
    /// After replicas have left: what they kept back is delivered and acknowledged.
    pub(super) fn go_on(&mut self, cx: &mut ReplicationContext<'_>) {
        self.deliver(cx, None);
        if self.live_count() > 0 {
            self.acknowledge(cx, None);
            self.watch(cx);
            self.end_if_finished(cx);
        }
    }

    /// Looks which replicas are behind, and whose stream has ended alone.
    pub(super) fn watch(&mut self, cx: &ReplicationContext<'_>) {
        let live = || self.replicas.iter().filter(|replica| replica.is_live());
        let best = live().map(mark).fold(ReplicaStreamPosition::default(), |best, mark| {
            ReplicaStreamPosition {
                acked: best.acked.max(mark.acked),
                data: best.data.max(mark.data),
                end: best.end.max(mark.end),
            }
        });
        let are_apart = live().any(|replica| mark(replica) != best || self.is_shut(replica));
        for index in 0..self.replicas.len() {
            let replica = &self.replicas[index];
            if !replica.is_live() {
                continue;
            }
            let progress = ReplicaProgress {
                mark: mark(replica),
                edge: replica.edge,
                reached: replica.reached,
                segments: replica.segments,
                confirmed: self.client.acked,
            };
            let (lag, is_alone) = (self.lag(cx, replica, best), self.is_alone(index));
            let health = &mut self.replicas[index].health;
            health.compare(cx.now, progress, lag, are_apart);
            health.finished = is_alone.then_some(health.finished.unwrap_or(cx.now));
        }
    }

    /// Whether a replica lacks what another has done, and could do it. A FIN alone does not count: it
    /// may be that of a program that was killed.
    ///
    /// What the client has to send again is not the replica's to do, unless it was given that often;
    /// and a replica that has sent something has to bring that to the client before it sends more.
    fn lag(
        &self,
        cx: &ReplicationContext<'_>,
        replica: &ConnectionReplica,
        best: ReplicaStreamPosition,
    ) -> Lag {
        let data_end = replica.output.data_end();
        let refuses = replica.acked < best.acked && replica.offers > cx.config.detection.probes;
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
        let mss = u64::from(self.server.syn.mss.unwrap_or(u16::MAX));
        let is_open = |one: &ConnectionReplica| one.is_open(self.client.sent, mss);
        let mut live = self.replicas.iter().filter(|one| one.is_live());
        self.client.asks && !is_open(replica) && live.any(is_open)
    }

    /// Whether a replica has finished its stream where others stand that have sent no more than that:
    /// those that have not come so far may finish there, too, or go on.
    fn is_alone(&self, index: usize) -> bool {
        let Some(fin) = self.replicas[index].output.fin else { return false };
        let has_finished = |other: &ConnectionReplica| other.output.fin.is_some();
        let stands =
            |other: &ConnectionReplica| other.output.data_end() >= fin && other.reached <= fin;
        self.replicas[index].output.end() > fin
            && self.others(index).any(|other| !has_finished(other))
            && self.others(index).all(|other| has_finished(other) || stands(other))
    }

    /// Does what is due. `false` if the connection is to be forgotten.
    pub(crate) fn handle_timeout(&mut self, cx: &mut ReplicationContext<'_>) -> bool {
        match self.phase {
            ConnectionPhase::Over { until, .. } => return until > cx.now,
            ConnectionPhase::Opening { first_answer } => self.opening_timeout(cx, first_answer),
            ConnectionPhase::Open => self.open_timeout(cx),
        }
        if self.is_half_open() && self.opened + OPENING_MAX <= cx.now {
            // Nothing is kept to refuse a SYN that is sent again.
            self.abandon(cx, ConnectionTermination::Idle);
            return false;
        }
        let is_idle = self.active + cx.config.limits.idle <= cx.now;
        if !self.is_over() && is_idle {
            self.end(cx, ConnectionTermination::Idle, RESET_LINGER);
        }
        true
    }

    fn open_timeout(&mut self, cx: &mut ReplicationContext<'_>) {
        let mut has_expelled = false;
        for index in 0..self.replicas.len() {
            // The last one is never given up.
            if !self.replicas[index].is_live() || self.live_count() < 2 {
                continue;
            }
            if let Some((cause, since)) = self.judge(cx, index) {
                self.expel(cx, index, cause, since);
                has_expelled = true;
            }
        }
        if has_expelled {
            self.go_on(cx);
        }
    }

    /// Whether a replica is to be expelled, why, and since when that was to be seen.
    fn judge(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
    ) -> Option<(ReplicaExpulsionCause, Time)> {
        let detection = &cx.config.detection;
        let late = [self.alone(index, detection), self.stalled(index, detection)];
        let due = late.into_iter().flatten().find(|(_, _, until)| *until <= cx.now);
        if let Some((cause, since, _)) = due {
            return Some((cause, since));
        }
        let health = self.replicas[index].health;
        match health.verdict(cx.now, detection) {
            ReplicaHealthVerdict::Silent if self.another_lives_since(index, health.silent) => {
                return Some((ReplicaExpulsionCause::Silent, health.apart.unwrap_or(cx.now)));
            }
            // Where all are silent the fault may be on the way to them.
            ReplicaHealthVerdict::Silent | ReplicaHealthVerdict::Probe => {
                self.replicas[index].health.probe(cx.now);
                self.probe(cx, index);
            }
            ReplicaHealthVerdict::Wait => {}
        }
        None
    }

    /// A stream that ended alone: since when, and until when that is borne.
    fn alone(
        &self,
        index: usize,
        detection: &FailureDetectorConfig,
    ) -> Option<(ReplicaExpulsionCause, Time, Time)> {
        let since = self.replicas[index].health.finished?;
        let until = since + detection.finish_grace;
        self.all_others_live_since(index, since).then_some((
            ReplicaExpulsionCause::FinishedAlone,
            since,
            until,
        ))
    }

    /// A replica that does nothing: since when, and until when that is borne. Where each lacks what
    /// another has done, the one that did something last is the best that there is.
    fn stalled(
        &self,
        index: usize,
        detection: &FailureDetectorConfig,
    ) -> Option<(ReplicaExpulsionCause, Time, Time)> {
        let health = &self.replicas[index].health;
        let (since, until) = health.stall(detection)?;
        let goes_on = |other: &ConnectionReplica| {
            !other.health.is_lagging() || other.health.moved > health.moved
        };
        let is_worse = self.others(index).any(goes_on) && self.all_others_live_since(index, since);
        is_worse.then_some((ReplicaExpulsionCause::Stalled, since, until))
    }

    /// Whether all others have been seen since a time. If not, they may be the dead ones, and are
    /// being probed.
    fn all_others_live_since(&self, index: usize, since: Time) -> bool {
        self.others(index).all(|other| other.health.seen > since)
    }

    fn another_lives_since(&self, index: usize, since: Time) -> bool {
        self.others(index).any(|other| other.health.seen > since)
    }

    fn others(&self, index: usize) -> impl Iterator<Item = &ConnectionReplica> {
        let others = self.replicas.iter().enumerate().filter(move |(other, _)| *other != index);
        others.map(|(_, replica)| replica).filter(|replica| replica.is_live())
    }

    /// When something is due next.
    pub(crate) fn deadline(&self, cx: &ReplicationContext<'_>) -> Time {
        let idle = self.active + cx.config.limits.idle;
        match self.phase {
            ConnectionPhase::Over { until, .. } => until,
            ConnectionPhase::Opening { first_answer } => {
                self.opening_deadline(cx, first_answer).min(idle)
            }
            ConnectionPhase::Open => {
                let opening = self.opened + OPENING_MAX;
                let end = if self.is_half_open() { idle.min(opening) } else { idle };
                self.live_deadline(cx).map_or(end, |at| at.min(end))
            }
        }
    }

    fn live_deadline(&self, cx: &ReplicationContext<'_>) -> Option<Time> {
        if self.live_count() < 2 {
            return None;
        }
        let detection = &cx.config.detection;
        let live = (0..self.replicas.len()).filter(|index| self.replicas[*index].is_live());
        let due = live.flat_map(|index| {
            let late = [self.alone(index, detection), self.stalled(index, detection)];
            let until = late.into_iter().flatten().map(|(_, _, until)| until).min();
            [self.replicas[index].health.deadline(detection), until]
        });
        due.flatten().min()
    }
}

fn mark(replica: &ConnectionReplica) -> ReplicaStreamPosition {
    let output = &replica.output;
    ReplicaStreamPosition { acked: replica.acked, data: output.data_end(), end: output.end() }
}
