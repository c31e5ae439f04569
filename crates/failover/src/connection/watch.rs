//! Time: what is due, and connections that are forgotten.

use super::ReplicatedConnection;
use super::detector::{ReplicaFailureDetector, ReplicaJudgement};
use super::lifecycle::ConnectionPhase;
use super::monitor::ReplicaProgressMonitor;
use crate::config::{OPENING_MAX, RESET_LINGER};
use crate::context::ReplicationContext;
use crate::event::ConnectionTermination;
use windtunnel_model::Time;

impl ReplicatedConnection {
    /// After replicas have left: what they kept back is delivered and acknowledged.
    pub(super) fn go_on(&mut self, cx: &mut ReplicationContext<'_>) {
        self.deliver(cx, None);
        if self.replicas.live_count() > 0 {
            self.client_sender().acknowledge(cx, None);
            self.watch(cx);
            self.end_if_finished(cx);
        }
    }

    /// Looks which replicas are behind, and whose stream has ended alone.
    pub(super) fn watch(&mut self, cx: &ReplicationContext<'_>) {
        let mut monitor = ReplicaProgressMonitor {
            replicas: &mut self.replicas,
            client: &self.client,
            mss: u64::from(self.server.syn.mss.unwrap_or(u16::MAX)),
            detection: &cx.config.detection,
        };
        monitor.compare(cx.now);
    }

    /// Does what is due. `false` if the connection is to be forgotten.
    pub(crate) fn handle_timeout(&mut self, cx: &mut ReplicationContext<'_>) -> bool {
        match self.life.phase {
            ConnectionPhase::Over { until, .. } => return until > cx.now,
            ConnectionPhase::Opening { first_answer } => self.opening_timeout(cx, first_answer),
            ConnectionPhase::Open => self.open_timeout(cx),
        }
        if self.is_half_open() && self.life.opened + OPENING_MAX <= cx.now {
            // Nothing is kept to refuse a SYN that is sent again.
            self.abandon(cx, ConnectionTermination::Idle);
            return false;
        }
        if !self.life.is_over() && self.life.idle_until(cx) <= cx.now {
            self.life.end(cx, ConnectionTermination::Idle, RESET_LINGER);
        }
        true
    }

    fn open_timeout(&mut self, cx: &mut ReplicationContext<'_>) {
        let detection = &cx.config.detection;
        let mut has_expelled = false;
        for index in 0..self.replicas.members.len() {
            // The last one is never given up.
            if !self.replicas.members[index].is_live() || self.replicas.live_count() < 2 {
                continue;
            }
            let detector = ReplicaFailureDetector { replicas: &self.replicas, detection };
            match detector.judge(cx.now, index) {
                ReplicaJudgement::Wait => {}
                ReplicaJudgement::Probe => {
                    self.replicas.members[index].health.probe(cx.now);
                    self.replica_sender().probe(cx, index);
                }
                ReplicaJudgement::Expel { cause, since } => {
                    self.expel(cx, index, cause, since);
                    has_expelled = true;
                }
            }
        }
        if has_expelled {
            self.go_on(cx);
        }
    }

    /// When something is due next.
    pub(crate) fn deadline(&self, cx: &ReplicationContext<'_>) -> Time {
        let idle = self.life.idle_until(cx);
        match self.life.phase {
            ConnectionPhase::Over { until, .. } => until,
            ConnectionPhase::Opening { first_answer } => {
                self.opening_deadline(cx, first_answer).min(idle)
            }
            ConnectionPhase::Open => {
                let opening = self.life.opened + OPENING_MAX;
                let end = if self.is_half_open() { idle.min(opening) } else { idle };
                let detection = &cx.config.detection;
                let detector = ReplicaFailureDetector { replicas: &self.replicas, detection };
                detector.deadline().map_or(end, |at| at.min(end))
            }
        }
    }
}
