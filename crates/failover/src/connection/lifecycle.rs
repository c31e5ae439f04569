//! Where a connection is in its life, and the times that end it.

use super::replica_set::ConnectionReplicaSet;
use crate::context::ReplicationContext;
use crate::event::{ConnectionTermination, ReplicatedConnectionKey, ReplicationEventKind};
use windtunnel_model::{Span, Time};

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// The client has not been given a SYN-ACK. Since when the first replica has answered.
    Opening { first_answer: Option<Time> },
    /// It has.
    Open,
    /// The connection is over, and its state is kept until then to answer what still comes.
    Over { ending: ConnectionTermination, until: Time },
}

/// The phase of a connection, and since when it goes on.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLifecycle {
    pub(super) key: ReplicatedConnectionKey,
    pub(super) phase: ConnectionPhase,
    /// When the client's SYN came.
    pub(crate) opened: Time,
    /// When the last packet of either side came.
    pub(crate) active: Time,
}

impl ConnectionLifecycle {
    /// The client's SYN has come.
    pub(super) fn new(key: ReplicatedConnectionKey, now: Time) -> Self {
        let phase = ConnectionPhase::Opening { first_answer: None };
        Self { key, phase, opened: now, active: now }
    }

    /// Whether another connection may take its place in a full table.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Over { .. })
    }

    /// Until when it is kept, if it is over.
    pub(crate) fn over_until(&self) -> Option<Time> {
        match self.phase {
            ConnectionPhase::Over { until, .. } => Some(until),
            ConnectionPhase::Opening { .. } | ConnectionPhase::Open => None,
        }
    }

    /// Whether the client has not been given a SYN-ACK.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Opening { .. })
    }

    /// Whether replicas' packets are still translated.
    pub(super) fn is_translating(&self, replicas: &ConnectionReplicaSet) -> bool {
        match self.phase {
            ConnectionPhase::Opening { .. } => false,
            ConnectionPhase::Open => true,
            ConnectionPhase::Over { ending, .. } => {
                matches!(
                    ending,
                    ConnectionTermination::Finished | ConnectionTermination::ClientReset
                ) && replicas.live_count() > 0
            }
        }
    }

    /// A replica has answered the SYN.
    pub(super) fn note_answer(&mut self, now: Time) {
        if let ConnectionPhase::Opening { first_answer: first @ None } = &mut self.phase {
            *first = Some(now);
        }
    }

    /// When the connection has been without any packet for too long.
    pub(super) fn idle_until(&self, cx: &ReplicationContext<'_>) -> Time {
        self.active + cx.config.limits.idle
    }

    /// The connection is over.
    pub(super) fn end(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        ending: ConnectionTermination,
        linger: Span,
    ) {
        if !self.is_over() {
            cx.sink.event(self.key, ReplicationEventKind::Closed(ending));
        }
        self.phase = ConnectionPhase::Over { ending, until: cx.now + linger };
    }
}
