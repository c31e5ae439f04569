//! Replicas that leave a connection, and what becomes of it.

use super::ReplicatedConnection;
use super::lifecycle::ConnectionPhase;
use crate::config::{LastReplicaLossPolicy, RESET_LINGER};
use crate::context::ReplicationContext;
use crate::event::{ConnectionTermination, ReplicaExpulsionCause, ReplicaId};
use crate::replica::ReplicaLifecycleStage;
use windtunnel_model::Time;

impl ReplicatedConnection {
    /// A replica is gone: the caller says so.
    pub(crate) fn lose(&mut self, cx: &mut ReplicationContext<'_>, id: ReplicaId) {
        let Some(index) = self.replicas.index_of(id) else { return };
        if self.life.is_over() {
            return;
        }
        self.expel(cx, index, ReplicaExpulsionCause::Withdrawn, cx.now);
        match self.life.phase {
            ConnectionPhase::Opening { .. } => self.open_if_all_answered(cx),
            ConnectionPhase::Open => self.go_on(cx),
            ConnectionPhase::Over { .. } => {}
        }
    }

    /// Takes a replica out of the connection and resets its side, so that a server that lives does
    /// not keep a connection that leads nowhere. What it kept back from the client is for
    /// [`ReplicatedConnection::go_on`], afterwards.
    pub(super) fn expel(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        index: usize,
        cause: ReplicaExpulsionCause,
        since: Time,
    ) {
        if cause != ReplicaExpulsionCause::Reset {
            self.replica_sender().reset(cx, index);
        }
        self.replicas.leave(cx, &self.life.key, index, cause, since);
        if self.life.is_opening() {
            return;
        }
        self.server.is_resuming = true;
        if self.replicas.live_count() == 0 {
            self.lost(cx, cause);
        } else if index == self.replicas.primary {
            self.replicas.promote(cx, &self.life.key);
            self.server.cwr = false;
        }
    }

    /// The last replica is gone.
    fn lost(&mut self, cx: &mut ReplicationContext<'_>, cause: ReplicaExpulsionCause) {
        let is_reset = cause == ReplicaExpulsionCause::Reset;
        if is_reset || cx.config.on_loss == LastReplicaLossPolicy::Reset {
            self.client_sender().reset(cx);
        }
        let ending = if is_reset {
            ConnectionTermination::ReplicaReset
        } else {
            ConnectionTermination::Lost
        };
        self.life.end(cx, ending, RESET_LINGER);
    }

    /// This connection is forgotten at once: replicas that wait for the client are reset, so that
    /// they do not answer it themselves.
    pub(crate) fn abandon(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        ending: ConnectionTermination,
    ) {
        let is_half_open = self.is_half_open();
        for index in 0..self.replicas.members.len() {
            let waits = match self.replicas.members[index].status {
                ReplicaLifecycleStage::Asked | ReplicaLifecycleStage::Answered => true,
                ReplicaLifecycleStage::Live => is_half_open,
                ReplicaLifecycleStage::Out => false,
            };
            if waits {
                self.replica_sender().reset(cx, index);
            }
        }
        self.life.end(cx, ending, RESET_LINGER);
    }
}
