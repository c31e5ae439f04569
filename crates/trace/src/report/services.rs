//! Services, and what their replicas got.

use serde::{Deserialize, Serialize};
use windtunnel_model::plan::{FailOver, LoadBalancingPolicy};
use windtunnel_model::word::{ReplicaAvailability, StateWord};

/// What routers redirected for a service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Its name.
    pub service: String,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// What is redirected, as in `80/tcp`.
    pub ports: Vec<String>,
    /// Which replica gets what is new.
    pub policy: StateWord<LoadBalancingPolicy>,
    /// What becomes of connections whose replica is lost.
    pub fail_over: StateWord<FailOver>,
    /// Each replica, those among them that were added or removed during the run.
    pub replicas: Vec<ReplicaReport>,
    /// Packets that no replica got: they went to the origin, or nowhere.
    pub unserved_packets: u64,
    /// Connections that were seen first in their middle.
    pub picked_up: u64,
    /// With `pins: per-router`: connections and flows that a router gave another replica than the
    /// router before it.
    #[serde(default)]
    pub moved_flows: u64,
    /// Connections that were open when their replica's node was lost.
    #[serde(default)]
    pub lost_connections: u64,
    /// Packets of connections whose replica is lost; they were dropped.
    pub lost_packets: u64,
    /// Resets that clients were sent because of that.
    pub resets: u64,
    /// Packets that a lost replica still sent in the service's name; they were dropped.
    pub silenced_packets: u64,
    /// SYN-ACKs of replicas whose MSS was lowered.
    pub clamped: u64,
    /// Flows that were forgotten because there were too many.
    pub evicted: u64,
    /// Flows that were forgotten after their time.
    pub expired: u64,
    /// With `fail-over: transparent`: what became of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transparent: Option<FailOverReport>,
}

/// What became of the connections of a service with `fail-over: transparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailOverReport {
    /// Connections that were opened, whose SYN went to two replicas or more.
    pub opened: u64,
    /// Connections to one replica only, since no other was there: they ended with it.
    pub plain: u64,
    /// Connections to one replica only, since the table of those that are kept was full.
    #[serde(default)]
    pub unkept: u64,
    /// Connections that were forgotten before their client had answered the SYN-ACK, because very
    /// many others began.
    #[serde(default)]
    pub half_open_forgotten: u64,
    /// Connections of which another replica took over.
    pub promoted: u64,
    /// Connections that ended because no replica was left.
    pub lost: u64,
    /// Replicas that were expelled from connections, because their node was gone.
    pub expelled_gone: u64,
    /// The same, because they answered no probe.
    pub expelled_silent: u64,
    /// The same, because they did not do what others did.
    pub expelled_stalled: u64,
    /// The same, because they sent other bytes.
    pub expelled_differed: u64,
    /// The same, because they finished where others went on.
    pub expelled_finished_alone: u64,
    /// The same, because they reset the connection.
    pub expelled_reset: u64,
    /// The same, because they refused the connection, or did not answer in time.
    pub expelled_not_opened: u64,
    /// Clients that were sent something again after an expulsion.
    pub resumed: u64,
    /// The longest time of these between the packet before and that, in nanoseconds; what a client
    /// was idle is part of it.
    pub silence_max_ns: u64,
    /// The longest from when a replica fell behind until it was expelled, in nanoseconds.
    pub detection_max_ns: u64,
    /// Bytes that were compared and given to clients.
    pub delivered_bytes: u64,
    /// Probes of replicas that were behind.
    pub probes: u64,
    /// Packets that could not be used: fragments, wrong checksums.
    pub unusable_packets: u64,
    /// Segments of replicas that were dropped because too much waited.
    pub output_dropped: u64,
    /// Packets that were not sent because too many waited, or there was no memory.
    pub unsent: u64,
    /// Events that were counted only.
    pub events_lost: u64,
}

impl FailOverReport {
    /// Replicas that were expelled from connections.
    #[must_use]
    pub fn expelled(&self) -> u64 {
        let causes = [
            self.expelled_gone,
            self.expelled_silent,
            self.expelled_stalled,
            self.expelled_differed,
            self.expelled_finished_alone,
            self.expelled_reset,
            self.expelled_not_opened,
        ];
        causes.into_iter().fold(0, u64::saturating_add)
    }
}

/// What a replica got.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicaReport {
    /// Its node.
    pub replica: String,
    /// Its state at the end: `waiting` (nothing listens), `registered`, `unhealthy`, `draining`,
    /// `lost` or `removed`.
    pub state: StateWord<ReplicaAvailability>,
    /// TCP connections that were given to it.
    pub connections: u64,
    /// UDP flows that were given to it.
    pub flows: u64,
    /// Packets (MTU segments) that were redirected to it.
    pub packets: u64,
    /// Bytes of these, as IP packets without the tunnel's header.
    pub bytes: u64,
    /// How often a program began to listen on a port of the service.
    pub registrations: u64,
    /// How often the last one on a port stopped.
    pub withdrawals: u64,
    /// How often its node was killed or lost.
    pub losses: u64,
    /// The longest from when a socket was seen to when routers redirected to it, in nanoseconds.
    pub registering_max_ns: u64,
    /// The longest from when a socket was seen to be gone, or a node was about to be killed, to when
    /// routers redirected to it no longer, in nanoseconds.
    pub withdrawing_max_ns: u64,
}

impl ServiceReport {
    /// Packets that were redirected.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.replicas.iter().fold(0, |sum, replica| sum.saturating_add(replica.packets))
    }

    /// How often what replicas listen on has changed.
    #[must_use]
    pub fn changes(&self) -> u64 {
        let of = |it: &ReplicaReport| it.registrations + it.withdrawals + it.losses;
        self.replicas.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// How the sockets of replicas were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReplicasWatched {
    /// Looks at a node.
    pub looks: u64,
    /// Time spent on that, in nanoseconds.
    pub spent_ns: u64,
    /// The longest from one look at all replicas to the next, in nanoseconds.
    pub interval_max_ns: u64,
    /// Messages of closed sockets, or answers, that the kernel had no room for.
    pub overruns: u64,
}

impl ReplicasWatched {
    /// Adds how another machine looked at its replicas.
    pub fn add(&mut self, other: &ReplicasWatched) {
        let pairs = [
            (&mut self.looks, other.looks),
            (&mut self.spent_ns, other.spent_ns),
            (&mut self.overruns, other.overruns),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.interval_max_ns = self.interval_max_ns.max(other.interval_max_ns);
    }
}
