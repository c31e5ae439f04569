//! `events.jsonl`: what happened in a run, one JSON object a line, in the order in which it
//! happened.

use serde::{Deserialize, Serialize};
use windtunnel_model::Resource;
use windtunnel_model::word::{ExpulsionCause, NodeProgramsAction, StateWord};

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLogEntry {
    /// Nanoseconds after the run began, when it happened.
    pub at_ns: u64,
    /// Nanoseconds after the run began, when it was to happen; absent for what was not planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub what: EventLogEntryKind,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventLogEntryKind {
    /// The network is up; the clock of the run starts.
    RunBegan,
    /// The run is over.
    RunEnded {
        /// Why.
        reason: String,
    },
    /// A program was started.
    ProgramStarted {
        /// Its node.
        node: String,
        /// Its position among the node's programs, from 0.
        program: usize,
        /// Its words.
        argv: Vec<String>,
    },
    /// A program could not be started.
    ProgramFailed {
        /// Its node.
        node: String,
        /// Its position among the node's programs, from 0.
        program: usize,
        /// Why.
        message: String,
    },
    /// A program has not become ready yet, which is waited for.
    ProgramAwaited {
        /// Its node.
        node: String,
        /// Its position among the node's programs, from 0.
        program: usize,
        /// What is waited for, in the words of `ready`.
        condition: String,
    },
    /// A program became ready.
    ProgramReady {
        /// Its node.
        node: String,
        /// Its position among the node's programs, from 0.
        program: usize,
    },
    /// A program exited.
    ProgramExited {
        /// Its node.
        node: String,
        /// Its position among the node's programs, from 0.
        program: usize,
        /// The exit code, or 128+n for a signal n.
        code: u8,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
    /// Something was done to the programs of a node.
    Node {
        /// The node.
        node: String,
        /// `kill`, `stop`, `pause`, `resume`, `restart`, or what churn does: `leave`, `join`.
        verb: StateWord<NodeProgramsAction>,
    },
    /// Nodes are outside the population that churn makes, until they join.
    Absent {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// The processor time of a node's programs is limited, or limited anew.
    CpuSet {
        /// The node.
        node: String,
        /// Processors that its programs may use together.
        cpus: f64,
    },
    /// A node or reservation has another minimum or weight of processors.
    ShareSet {
        /// The node or reservation.
        node: String,
        /// Processors that are reserved for it from now on; absent: as before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpus: Option<f64>,
        /// Its weight from now on; absent: as before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<u32>,
    },
    /// Another limit of a node's programs changed.
    LimitSet {
        /// The node.
        node: String,
        /// `memory`, `pids` or `disk`.
        limit: StateWord<Resource>,
        /// Bytes, processes and threads that its programs may have together, or bytes a second that
        /// they may read of each disk, and write.
        value: u64,
    },
    /// Programs met a limit, and something was refused or ended for it.
    LimitReached {
        /// The node.
        node: String,
        /// The position among the node's programs, from 0, of the program that was ended or whose
        /// limit it is, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<usize>,
        /// `memory` or `pids`.
        limit: StateWord<Resource>,
        /// What is allowed.
        asked: String,
        /// Processes that were ended for it; 0: one could not be made.
        ended: u64,
        /// Names of some of these, where they are known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
    /// Properties of a link direction changed.
    LinkSet {
        /// The link.
        link: String,
        /// `from-to`.
        direction: String,
        /// The properties that changed.
        set: serde_json::Value,
    },
    /// A link direction was taken down or up.
    LinkState {
        /// The link.
        link: String,
        /// `from-to`.
        direction: String,
        /// Whether it carries packets now.
        up: bool,
    },
    /// A flap cut a link direction or mended it.
    LinkFlap {
        /// The link.
        link: String,
        /// `from-to`.
        direction: String,
        /// Whether it was mended.
        up: bool,
    },
    /// The network was divided.
    Partitioned {
        /// The groups, by names.
        groups: Vec<Vec<String>>,
        /// Whether only what leads from the first group to the second is cut.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        one_way: bool,
        /// Whether each two groups are a pair, and only what leads between the two of a pair is cut.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pairs: bool,
    },
    /// A partition ended.
    Healed,
    /// A route was fixed.
    RouteFixed {
        /// The names along it, from node to node.
        path: Vec<String>,
    },
    /// A route that was fixed is the shortest again.
    RouteFreed {
        /// The node that it leads from.
        from: String,
        /// The node that it leads to.
        to: String,
    },
    /// The shortest routes were computed again.
    Rerouted {
        /// Why.
        why: WhyRerouted,
    },
    /// Packets take other ways than before. Those under way may arrive out of order, and may cross
    /// a loop that old and new routes make together.
    RoutesChanged {
        /// Pairs of a router and a destination for which the router has another way, and routes
        /// that are fixed otherwise.
        places: usize,
        /// Nodes with several interfaces whose kernels get other routes.
        nodes: Vec<String>,
    },
    /// A program of a replica listens on a port of a service: the replica gets new connections.
    ServiceRegistered {
        /// The service.
        service: String,
        /// The replica's node.
        replica: String,
        /// The port, as in `80/tcp`.
        port: String,
        /// When the socket was seen, in nanoseconds after the run began; `at_ns` is when the routers
        /// knew.
        seen_ns: u64,
    },
    /// No program of a replica listens on a port of a service any longer: the replica gets no new
    /// connections.
    ServiceWithdrawn {
        /// The service.
        service: String,
        /// The replica's node.
        replica: String,
        /// The port, as in `80/tcp`.
        port: String,
        /// When that was seen, in nanoseconds after the run began; `at_ns` is when the routers knew.
        seen_ns: u64,
    },
    /// A replica's node was killed or left, or its machine is lost.
    ServiceLost {
        /// The service.
        service: String,
        /// The replica's node.
        replica: String,
        /// When that was known, in nanoseconds after the run began; `at_ns` is when the routers
        /// knew.
        seen_ns: u64,
    },
    /// A probe found that a replica is healthy again, or no longer.
    ServiceHealth {
        /// The service.
        service: String,
        /// The replica's node.
        replica: String,
        /// Whether it is healthy.
        healthy: bool,
        /// What the probe found; absent if it went well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// When the probe ended, in nanoseconds after the run began; `at_ns` is when the routers
        /// knew.
        seen_ns: u64,
    },
    /// Something was asked of a replica.
    ServiceSet {
        /// The service.
        service: String,
        /// The replica's node.
        replica: String,
        /// What.
        set: ServiceSetting,
    },
    /// A router redirects new connections to another replica than before.
    Redirected {
        /// The service.
        service: String,
        /// Its address.
        address: String,
        /// The port, as in `80/tcp`.
        port: String,
        /// The router.
        router: String,
        /// The replica's node.
        replica: String,
    },
    /// A replica takes no part any more in a connection of a service with `fail-over: transparent`.
    ReplicaExpelled {
        /// The service.
        service: String,
        /// Its end of the connection.
        address: String,
        /// The client's end.
        client: String,
        /// The replica's node.
        replica: String,
        /// Why: `gone` (its node), `silent`, `stalled`, `differed`, `finished-alone`, `reset`,
        /// `refused` or `no-answer`.
        cause: StateWord<ExpulsionCause>,
        /// The first byte of the server's stream that differed, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// Time from when it fell behind, or sent what was wrong, in nanoseconds.
        after_ns: u64,
        /// How many replicas are left.
        left: u32,
    },
    /// The client of such a connection gets the output of another replica from now on.
    ReplicaPromoted {
        /// The service.
        service: String,
        /// Its end of the connection.
        address: String,
        /// The client's end.
        client: String,
        /// The replica's node.
        replica: String,
    },
    /// The client of such a connection was sent the first packet since a replica was expelled.
    ConnectionResumed {
        /// The service.
        service: String,
        /// Its end of the connection.
        address: String,
        /// The client's end.
        client: String,
        /// Time since the packet before, in nanoseconds; what the connection was idle is part of it.
        silence_ns: u64,
    },
    /// No replica is left of such a connection.
    ConnectionLost {
        /// The service.
        service: String,
        /// Its end of the connection.
        address: String,
        /// The client's end.
        client: String,
    },
    /// The table of such connections is full: this one goes to one replica and ends with it, and so
    /// may others after it, until there is room.
    ConnectionUnkept {
        /// The service.
        service: String,
        /// Its end of the connection.
        address: String,
        /// The client's end.
        client: String,
    },
    /// A command was run in a node from outside.
    Executed {
        /// The node.
        node: String,
        /// Its words.
        argv: Vec<String>,
    },
    /// Packets left later than the bound allows, in one sampling interval.
    Late {
        /// The link.
        link: String,
        /// `from-to`.
        direction: String,
        /// The largest lateness, in nanoseconds.
        lateness_max_ns: u64,
    },
    /// The emulation has fallen behind: the machine has less processor time than it and the
    /// programs need.
    Overloaded {
        /// How late it was with its oldest work, in nanoseconds.
        behind_ns: u64,
        /// Whether all programs were paused for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        frozen: bool,
    },
    /// The emulation has caught up; programs that were paused for that go on.
    CaughtUp {
        /// How long it was behind, in nanoseconds.
        lasted_ns: u64,
    },
    /// A machine of the run does not answer the agents of others. It is lost when it has not for
    /// `host-timeout`.
    HostSilent {
        /// Its name.
        host: String,
        /// When its last answer came, in nanoseconds after the run began.
        since_ns: u64,
    },
    /// A machine that was silent answers again, and the run goes on with it.
    HostAnswers {
        /// Its name.
        host: String,
        /// For how long it was silent, in nanoseconds.
        lasted_ns: u64,
    },
    /// A machine of the run is lost, and its nodes with it.
    HostLost {
        /// Its name.
        host: String,
        /// Its nodes.
        nodes: Vec<String>,
        /// How that is known.
        why: String,
    },
    /// The run has begun on a machine after its time: programs and events there are late.
    BeganLate {
        /// The machine's name.
        host: String,
        /// How late, in nanoseconds.
        late_ns: u64,
    },
    /// A machine of the run has got no answer of another one for a while: packets between the two
    /// are lost.
    PeerSilent {
        /// The machine's name.
        host: String,
        /// The other one's.
        peer: String,
        /// Since when, in nanoseconds after the run began.
        since_ns: u64,
    },
    /// The other machine answers again.
    PeerAnswers {
        /// The machine's name.
        host: String,
        /// The other one's.
        peer: String,
        /// How long it had not, in nanoseconds.
        lasted_ns: u64,
    },
    /// Something to look at before trusting the results.
    Warning {
        /// What.
        message: String,
    },
}

/// Why shortest routes were computed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyRerouted {
    /// An event or a command asked for it.
    Event,
    /// Lanes went down or up, as long ago as `routing` says.
    Lanes,
}

/// What was asked of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceSetting {
    /// The node became a replica.
    Add,
    /// The node is a replica no longer.
    Remove,
    /// It gets nothing new.
    Drain,
    /// It gets new connections again.
    Undrain,
    /// Its weight is this from now on.
    Weight(u32),
}

impl EventLogEntry {
    /// Adds the event as a line.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        // Texts and numbers can always be written, and memory takes them.
        if serde_json::to_writer(&mut *out, self).is_ok() {
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_flat_json_and_reads_back() {
        let event = EventLogEntry {
            at_ns: 5_000_120_000,
            intended_ns: Some(5_000_000_000),
            what: EventLogEntryKind::LinkState {
                link: "ocean".into(),
                direction: "a-b".into(),
                up: false,
            },
        };
        let mut line = Vec::new();
        event.write_line(&mut line);
        assert_eq!(
            String::from_utf8(line.clone()).unwrap(),
            "{\"at_ns\":5000120000,\"intended_ns\":5000000000,\"event\":\"link-state\",\
             \"link\":\"ocean\",\"direction\":\"a-b\",\"up\":false}\n"
        );
        assert_eq!(serde_json::from_slice::<EventLogEntry>(&line).unwrap(), event);
    }
}
