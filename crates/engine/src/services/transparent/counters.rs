//! What was counted of connections that outlive their server.

use serde::{Deserialize, Serialize};
use windtunnel_failover::{
    ConnectionTermination, ReplicaExpulsionCause, ReplicationEvent, ReplicationEventKind,
};
use windtunnel_model::Span;

/// What the redirectors of one service with `fail-over: transparent` counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailOverCounters {
    /// Connections that were opened, whose SYN went to two replicas or more.
    pub opened: u64,
    /// Of these, those that are known now; some may be over, and are remembered for a minute.
    pub held: u64,
    /// Connections that go to one replica only, since no other was there at their SYN, or their
    /// options do not allow more. They end with it.
    pub plain: u64,
    /// Connections that go to one replica only, since the table of those that are kept was full.
    pub unkept: u64,
    /// Connections that were forgotten before their client had answered the SYN-ACK, because very
    /// many others began.
    pub half_open_forgotten: u64,
    /// Connections of which another replica took over.
    pub promoted: u64,
    /// Connections that ended because no replica was left.
    pub lost: u64,
    /// Replicas that were expelled from connections.
    pub expelled: ExpelledCounts,
    /// Clients that were sent something again after an expulsion.
    pub resumed: u64,
    /// The longest time of these between the packet before and that, in ns; what a client was idle
    /// is part of it.
    pub silence_max_ns: u64,
    /// The longest time from when a replica fell behind until it was expelled, in ns.
    pub detection_max_ns: u64,
    /// Bytes that were compared and given to clients.
    pub delivered_bytes: u64,
    /// Probes of replicas that were behind.
    pub probes: u64,
    /// Packets of such connections that cannot be used: fragments, wrong checksums.
    pub unusable: u64,
    /// Output of replicas that was dropped for one of the protocol's bounds, in segments.
    pub output_dropped: u64,
    /// Packets that were not sent because there was no memory, or too many waited.
    pub no_memory: u64,
    /// News of connections for which there was no room.
    pub news_lost: u64,
}

/// Expulsions by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExpelledCounts {
    /// The host said that its node is gone.
    pub gone: u64,
    /// It answered no probe.
    pub silent: u64,
    /// It answered, but did not do what others did.
    pub stalled: u64,
    /// It sent other bytes.
    pub differed: u64,
    /// It finished its stream where another goes on.
    pub finished_alone: u64,
    /// It reset the connection.
    pub reset: u64,
    /// It refused the connection, or did not answer in time.
    pub not_opened: u64,
}

impl FailOverCounters {
    /// Adds what another part of the network counted of the same service.
    pub fn add(&mut self, other: &FailOverCounters) {
        let pairs = [
            (&mut self.opened, other.opened),
            (&mut self.held, other.held),
            (&mut self.plain, other.plain),
            (&mut self.unkept, other.unkept),
            (&mut self.half_open_forgotten, other.half_open_forgotten),
            (&mut self.promoted, other.promoted),
            (&mut self.lost, other.lost),
            (&mut self.resumed, other.resumed),
            (&mut self.delivered_bytes, other.delivered_bytes),
            (&mut self.probes, other.probes),
            (&mut self.unusable, other.unusable),
            (&mut self.output_dropped, other.output_dropped),
            (&mut self.no_memory, other.no_memory),
            (&mut self.news_lost, other.news_lost),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.silence_max_ns = self.silence_max_ns.max(other.silence_max_ns);
        self.detection_max_ns = self.detection_max_ns.max(other.detection_max_ns);
        self.expelled.add(&other.expelled);
    }

    /// Counts what happened to a connection.
    pub(super) fn note(&mut self, event: &ReplicationEvent) {
        match event.what {
            ReplicationEventKind::Expelled { cause, after, .. } => {
                *self.expelled.of(cause) += 1;
                raise(&mut self.detection_max_ns, after);
            }
            ReplicationEventKind::Promoted { .. } => self.promoted += 1,
            ReplicationEventKind::Resumed { silence } => {
                self.resumed += 1;
                raise(&mut self.silence_max_ns, silence);
            }
            ReplicationEventKind::Closed(ConnectionTermination::Lost) => self.lost += 1,
            _ => {}
        }
    }
}

impl ExpelledCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let parts = [
            self.gone,
            self.silent,
            self.stalled,
            self.differed,
            self.finished_alone,
            self.reset,
            self.not_opened,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    fn of(&mut self, cause: ReplicaExpulsionCause) -> &mut u64 {
        match cause {
            ReplicaExpulsionCause::Withdrawn => &mut self.gone,
            ReplicaExpulsionCause::Silent => &mut self.silent,
            ReplicaExpulsionCause::Differed { .. } => &mut self.differed,
            ReplicaExpulsionCause::FinishedAlone => &mut self.finished_alone,
            ReplicaExpulsionCause::Reset => &mut self.reset,
            ReplicaExpulsionCause::Refused | ReplicaExpulsionCause::NoAnswer => {
                &mut self.not_opened
            }
            // The only one that is left.
            _ => &mut self.stalled,
        }
    }

    fn add(&mut self, other: &ExpelledCounts) {
        let pairs = [
            (&mut self.gone, other.gone),
            (&mut self.silent, other.silent),
            (&mut self.stalled, other.stalled),
            (&mut self.differed, other.differed),
            (&mut self.finished_alone, other.finished_alone),
            (&mut self.reset, other.reset),
            (&mut self.not_opened, other.not_opened),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

fn raise(most: &mut u64, span: Span) {
    *most = (*most).max(span.as_nanos());
}
