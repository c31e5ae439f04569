//! Settings, fixed at the start, and the bounds.

use windtunnel_model::Span;

/// Replicas of one connection at the most; of a longer list the first are taken.
pub const REPLICAS_MAX: usize = 8;
/// Packets that wait to be taken at the most, and events; what comes beyond is dropped and counted.
pub const WAITING_MAX: usize = 65_536;
/// The state of a connection that has ended normally is kept this long, to answer segments that
/// were sent again: Linux's TIME-WAIT (`TCP_TIMEWAIT_LEN`).
pub const LINGER: Span = Span::from_secs(60);
/// That of one which was reset.
pub const RESET_LINGER: Span = Span::from_secs(2);
/// A connection whose client has not answered the SYN-ACK is forgotten after this time, in which
/// Linux sends a SYN-ACK again three times (after 1, 3 and 7 s). A SYN that is sent again later
/// begins anew.
pub const OPENING_MAX: Span = Span::from_secs(10);

/// Everything that [`crate::ConnectionReplicator`] is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// How a replica's failure is noticed.
    pub detection: FailureDetectorConfig,
    /// How much is kept.
    pub limits: ReplicationLimits,
    /// The largest segment that the way between here and the replicas carries, as MSS: both ends'
    /// MSS options are lowered to it. Default 65 535: not at all.
    pub mss_max: u16,
    /// Whether packets to the client may be trains, with `gso_size` in their header. Default yes.
    pub trains: bool,
    /// What the client gets when the last replica is gone. Default [`LastReplicaLossPolicy::Reset`].
    pub on_loss: LastReplicaLossPolicy,
}

/// What the client gets when the last replica of its connection is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastReplicaLossPolicy {
    /// A reset.
    #[default]
    Reset,
    /// Nothing.
    Silent,
}

/// How a failure is noticed. The sum for a replica that is silent, once another has done something
/// that it has not, is [`FailureDetectorConfig::silent_within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureDetectorConfig {
    /// A replica that is behind another for this time and one round trip to it is probed.
    /// Default 40 ms, the delay of an acknowledgement in Linux (`TCP_DELACK_MIN`).
    pub patience: Span,
    /// Time between two probes. Default 20 ms.
    pub probe_interval: Span,
    /// A replica that answers none of so many probes in a row is taken for dead, one and a half
    /// round trips, at least one interval, after the last. Default 4.
    pub probes: u32,
    /// A replica that answers probes and is behind without any progress for this time is expelled.
    /// Default 800 ms: two retransmissions at Linux's shortest timeout (200 ms and 400 ms) fit.
    pub stall: Span,
    /// The same where it has sent something, by its sequence numbers, that did not come: it is to send
    /// that again, and its timer doubles with each loss. Default 4 s: four retransmissions at
    /// Linux's shortest timeout, 3 s, fit.
    pub recovery: Span,
    /// A client that has sent data again this often since anything was acknowledged has replicas
    /// that are behind probed at once. Default 1.
    pub retransmissions: u32,
    /// A FIN that no other replica has sent is held for this time; then its replica is expelled.
    /// Default 1 s.
    pub finish_grace: Span,
    /// A replica that has not answered SYN this long after the first answer is left out of the
    /// connection. Default 250 ms.
    pub answer: Span,
}

/// How much is kept. What would be more is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicationLimits {
    /// Connections at the most, those that have ended and linger included. A new one beyond is not
    /// taken ([`crate::ReplicationRefusal::TableFull`]). Default 65 536.
    pub connections: usize,
    /// Of these, those whose client has not answered the SYN-ACK, at the most. A new one beyond takes
    /// the place of the oldest, which is counted. Default 4096.
    pub half_open: usize,
    /// Bytes of one replica's output that is ahead of what the client was given, for each
    /// connection. The window that replicas see ends there. Default 4 MiB.
    pub output: u32,
    /// The same of all connections together. What would be more is dropped like a lost packet.
    /// Default 256 MiB.
    pub output_total: usize,
    /// A connection without any packet for this time is forgotten. Default 5 days, as of Linux's
    /// `nf_conntrack_tcp_timeout_established`.
    pub idle: Span,
}

impl FailureDetectorConfig {
    /// The longest time from when a silent replica falls behind until it is expelled, for a round
    /// trip to it, if the caller is never late.
    #[must_use]
    pub fn silent_within(&self, round_trip: Span) -> Span {
        let probes = u64::from(self.probes.saturating_sub(1));
        let probing = Span::from_nanos(self.probe_interval.as_nanos().saturating_mul(probes));
        self.patience + round_trip + probing + self.last_wait(round_trip)
    }

    /// How long the answer to the last probe is waited for.
    pub(crate) fn last_wait(&self, round_trip: Span) -> Span {
        let half_more = Span::from_nanos(round_trip.as_nanos().saturating_mul(3) / 2);
        half_more.max(self.probe_interval)
    }
}

impl Default for FailureDetectorConfig {
    fn default() -> Self {
        Self {
            patience: Span::from_millis(40),
            probe_interval: Span::from_millis(20),
            probes: 4,
            stall: Span::from_millis(800),
            recovery: Span::from_secs(4),
            retransmissions: 1,
            finish_grace: Span::from_secs(1),
            answer: Span::from_millis(250),
        }
    }
}

impl Default for ReplicationLimits {
    fn default() -> Self {
        Self {
            connections: 65_536,
            half_open: 4_096,
            output: 4 << 20,
            output_total: 256 << 20,
            idle: Span::from_secs(5 * 24 * 3600),
        }
    }
}

impl Default for ReplicationConfig {
    fn default() -> Self {
        Self {
            detection: FailureDetectorConfig::default(),
            limits: ReplicationLimits::default(),
            mss_max: u16::MAX,
            trains: true,
            on_loss: LastReplicaLossPolicy::Reset,
        }
    }
}
