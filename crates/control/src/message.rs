//! What is asked of a live run, and what it answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windtunnel_model::demand::Demand;
use windtunnel_model::plan::{FlowPattern, RecordDirection, RecordLayerSet, ScheduledEvent};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::word::{LaneOperationalState, LayerRecordingState, ProgramState, StateWord};
use windtunnel_model::{Bytes, LinkPatch, ResourceUsage};
use windtunnel_trace::event::EventLogEntry as RunEvent;

use crate::nats::NatStatus;
use crate::services::{ServiceList, ServiceStatus};

/// Version of the messages. The run greets each connection with it; a client of another version
/// stops. A new request does not change it: a run that does not know the request says so.
pub const VERSION: u32 = 3;

/// The first line on a connection, from the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGreeting {
    /// [`VERSION`] of the run.
    pub version: u32,
    pub name: String,
    /// Why the run takes no more connections; it has closed this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What a command asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ControlRequest {
    /// The state of every program. Answer: [`ControlReply::Ps`].
    Ps,
    /// What links do and the state of every program. Answer: [`ControlReply::Snapshot`].
    Snapshot,
    /// The properties of every link, and what has changed since the run began. Answer:
    /// [`ControlReply::Links`].
    Links,
    /// Runs a command in a node; the message carries three descriptors (standard input, output,
    /// error). Answers: [`ControlReply::Started`], then [`ControlReply::Exited`]. If the connection closes
    /// first, the command gets SIGHUP and then SIGKILL.
    Exec {
        node: String,
        /// The words of the command.
        argv: Vec<String>,
        cwd: Option<String>,
        /// Variables on top of the node's.
        env: BTreeMap<String, String>,
        /// Whether descriptor 0 is a terminal that becomes the command's own.
        terminal: bool,
    },
    /// Sends a signal to the command that this connection runs.
    Signal { signal: i32 },
    /// Changes properties of a link, all at one instant. Answer: [`ControlReply::Done`].
    Set {
        #[serde(flatten)]
        lanes: LaneChoice,
        patch: Box<LinkPatch>,
    },
    /// Changes limits of what all programs of a node use together, of each node of a group or of a
    /// reservation, or what it has of processors that are divided: those that are named, one after the
    /// other until one is refused. Answer: [`ControlReply::Done`].
    Limit {
        /// The node, group or reservation.
        who: String,
        /// What can change while programs run ([`Demand::live`]).
        demand: Demand,
    },
    /// Answer: [`ControlReply::Reservations`].
    Reservations,
    /// What services do. Answer: [`ControlReply::Services`].
    Services {
        /// Only this one, with where routers redirect to and what they know of its flows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<String>,
    },
    /// Takes a link down or up. Answer: [`ControlReply::Done`].
    State {
        #[serde(flatten)]
        lanes: LaneChoice,
        /// Whether it carries packets from now on.
        up: bool,
    },
    /// Lets events happen, each at its time from now on. Answer: [`ControlReply::Happened`], when those
    /// that are due at once have been done.
    Do {
        /// The events; `at` counts from the moment in which the run reads them.
        events: Vec<ScheduledEvent>,
    },
    /// Records events from now on, or others than before. Answer: [`ControlReply::Records`].
    RecordStart(RecordOrder),
    /// Records nothing from now on. Answer: [`ControlReply::Records`].
    RecordStop,
    /// What is recorded. Answer: [`ControlReply::Records`].
    RecordStatus,
    /// Writes frames of a node or link, as pcapng, to the descriptor that the message carries, until
    /// it is ended or the connection closes. Answers: [`ControlReply::Done`], when it has begun, and
    /// [`ControlReply::Captured`] when it is over.
    Capture {
        /// A node, or a link with a node at an end.
        place: String,
        /// Bytes of each packet that are kept; 0: all.
        snap_bytes: u32,
    },
    /// Ends the capture of this connection. Answer: [`ControlReply::Captured`], when all is written.
    CaptureEnd,
    /// Ends the run as if it had finished. Answer: [`ControlReply::Done`], before it has ended.
    Stop,
}

/// What is to be recorded. What is empty excludes nothing; if all is, that is recorded which the file
/// names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordOrder {
    /// Names of layers.
    #[serde(default, skip_serializing_if = "RecordLayerSet::is_empty")]
    pub layers: RecordLayerSet,
    /// Names of nodes or groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowPattern>,
    /// `None`: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<RecordDirection>,
    /// The most bytes of records on the disk, instead of that before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
}

/// A link, or one direction of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneChoice {
    pub link: String,
    /// `up`, `down` or `from-to`; absent for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
}

/// What the run answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ControlReply {
    Done,
    Happened(EventInjectionResult),
    Error {
        /// Why, naming the object.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The state of the run.
    Ps(Box<RunStatus>),
    /// What links do, and the state of the run.
    Snapshot(Box<Snapshot>),
    /// The properties of the links.
    Links(LinkList),
    /// What is recorded.
    Records(RecordStatus),
    /// What nodes and reservations have, each after the one around it.
    Reservations {
        parts: Vec<ReservationStatus>,
    },
    /// What services do.
    Services(ServiceList),
    /// What is named is on another machine of the run.
    Elsewhere,
    /// A capture is over.
    Captured(CaptureResult),
    Started {
        /// Its process id inside the node.
        pid: i32,
    },
    /// The command could not be started.
    NotRun {
        /// Why, naming it.
        message: String,
        /// The exit code that says this, where it was the command itself: 127 if it was not found,
        /// else 126.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<u8>,
    },
    Exited {
        /// Its exit code, or 128+n for a signal n.
        code: u8,
    },
}

impl ControlReply {
    /// Whether it is the last one to [`ControlRequest::Exec`].
    #[must_use]
    pub fn ends_command(&self) -> bool {
        matches!(
            self,
            ControlReply::Exited { .. } | ControlReply::NotRun { .. } | ControlReply::Error { .. }
        )
    }
}

/// What events have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventInjectionResult {
    /// What was done, and when.
    pub events: Vec<RunEvent>,
    /// How many events are still to come.
    pub later: usize,
    /// When the last of them is, in nanoseconds after the run began; when there is none, now.
    pub until_ns: u64,
}

/// What a capture holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureResult {
    /// Packets that came by.
    pub packets: u64,
    /// Those of them that are missing in the capture.
    pub lost: u64,
    /// Whether its reader has closed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reader_gone: bool,
    /// Why it cannot be written any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What is recorded of a live run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordStatus {
    /// Whether anything is recorded now.
    pub on: bool,
    /// Every layer.
    pub layers: Vec<RecordedLayer>,
    /// Bytes that were written.
    pub bytes: u64,
    /// Bytes that lie on the disk.
    pub kept_bytes: u64,
    /// Files that were begun.
    pub files: u32,
    /// Events in files that were removed, because only the newest are kept.
    pub removed_events: u64,
    /// Records that were read from their sources.
    pub read: u64,
    /// Processor time for reading and writing them, in nanoseconds.
    pub read_ns: u64,
    /// Why records could not be written at some time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl RecordStatus {
    /// Adds what another machine of the same run records.
    pub fn add(&mut self, other: RecordStatus) {
        self.on |= other.on;
        for (ours, theirs) in self.layers.iter_mut().zip(other.layers) {
            ours.events += theirs.events;
            ours.records += theirs.records;
            ours.lost += theirs.lost;
            ours.fill_permille = ours.fill_permille.max(theirs.fill_permille);
            ours.fill_max_permille = ours.fill_max_permille.max(theirs.fill_max_permille);
            if theirs.state == LayerRecordingState::On {
                ours.state = theirs.state;
            }
            ours.why = ours.why.take().or(theirs.why);
        }
        self.bytes += other.bytes;
        self.kept_bytes += other.kept_bytes;
        self.files += other.files;
        self.removed_events += other.removed_events;
        self.read += other.read;
        self.read_ns += other.read_ns;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// A layer of a live run. Events are records and lost together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedLayer {
    pub layer: StateWord<RecordSource>,
    pub state: StateWord<LayerRecordingState>,
    /// Why it is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub events: u64,
    pub records: u64,
    pub lost: u64,
    /// The most that a source has waiting, in thousandths of its room, lately.
    pub fill_permille: u32,
    /// The same since recording began.
    pub fill_max_permille: u32,
}

/// The state of a live run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    pub name: String,
    /// Time since the run began, in nanoseconds.
    pub elapsed_ns: u64,
    pub nodes: Vec<NodeStatus>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceStatus>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nats: Vec<NatStatus>,
}

/// What a live run does at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The state of every program.
    #[serde(flatten)]
    pub status: RunStatus,
    /// When the newest sample of the links was taken, after the run began, in nanoseconds; zero
    /// before the first. Samples are those of `links.csv`, one each 100 ms.
    pub sampled_ns: u64,
    /// How far back rates and the fields `recent_*` reach from then, in nanoseconds: a second, or
    /// less at the beginning of the run.
    pub window_ns: u64,
    /// Every direction of every link: first up, then down, links in the order of the file.
    pub links: Vec<LaneStatus>,
}

/// What one direction of a link is like and does. Bytes are IP bytes but for `wire`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaneStatus {
    pub link: String,
    /// The direction, `from-to`.
    pub direction: String,
    pub state: StateWord<LaneOperationalState>,
    /// Latency as it is now asked for, in nanoseconds.
    pub latency_ns: u64,
    /// Rate as it is now asked for; absent for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bit_per_s: Option<u64>,
    /// Loss as it is now asked for, in the long run, in parts per billion.
    pub loss_ppb: u32,
    /// Which of `latency`, `rate` and `loss` follow a trace; the fields have the mean then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traced: Vec<String>,
    /// What was offered in the window, in bit/s.
    pub offered_bit_per_s: u64,
    /// What was delivered in the window, in bit/s.
    pub delivered_bit_per_s: u64,
    /// The same with framing overhead: what the rate bounds.
    pub delivered_wire_bit_per_s: u64,
    /// Packets waiting at the newest sample.
    pub queue_packets: u64,
    /// Bytes waiting at the newest sample.
    pub queue_bytes: u64,
    /// The most packets that waited at any time of the window.
    pub recent_queue_max_packets: u64,
    /// Packets dropped in the window, for any reason.
    pub recent_dropped_packets: u64,
    /// Packets marked with ECN congestion experienced in the window.
    pub recent_marked_packets: u64,
    /// The largest lateness in the window, in nanoseconds.
    pub recent_lateness_max_ns: u64,
    /// Packets offered since the run began.
    pub offered_packets: u64,
    /// Packets delivered since the run began.
    pub delivered_packets: u64,
    /// Packets dropped since the run began.
    pub dropped_packets: u64,
    /// Packets marked since the run began.
    pub marked_packets: u64,
    /// The largest lateness since the run began, in nanoseconds.
    pub lateness_max_ns: u64,
}

/// The properties of the links of a live run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkList {
    /// Name of the experiment.
    pub name: String,
    /// Time since the run began, in nanoseconds.
    pub elapsed_ns: u64,
    /// Every direction of every link: first up, then down, links in the order of the file.
    pub links: Vec<LaneProperties>,
}

/// What one direction of a link is asked to be like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneProperties {
    pub link: String,
    /// The direction, `from-to`.
    pub direction: String,
    pub state: StateWord<LaneOperationalState>,
    /// Every property as `plan.json` has it; one that follows a trace is `trace FILE`.
    pub properties: BTreeMap<String, serde_json::Value>,
    /// The properties that are not as they were when the run began: what they were.
    pub changed_from: BTreeMap<String, serde_json::Value>,
}

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    pub node: String,
    pub addresses: Vec<String>,
    /// Process id of its init, outside.
    pub init_pid: i32,
    /// Whether churn has it outside the population.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// What limits it now, and what it has of that.
    #[serde(default, skip_serializing_if = "ResourceUsage::is_none")]
    pub limits: ResourceUsage,
    pub programs: Vec<ProgramStatus>,
}

/// A node or a reservation: what is reserved for it, and what it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationStatus {
    pub name: String,
    /// Whether it is a node.
    pub node: bool,
    /// The reservation that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Thousandths of a processor that are reserved for it by its own words.
    pub cpu_min_millis: u64,
    pub cpu_weight: u32,
    /// Thousandths of a processor that it has when all want as much as they can get; absent where
    /// processors are not divided by weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share_millis: Option<u32>,
    /// Bytes that are reserved for it by its own words.
    pub memory_min: u64,
    /// What limits it, and what it has of that.
    #[serde(default, skip_serializing_if = "ResourceUsage::is_none")]
    pub limits: ResourceUsage,
    /// What it sends; absent for a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<NodeEgressStatus>,
}

/// What a node sends on its links, all of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEgressStatus {
    /// The rates of its links; absent if one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bit_per_s: Option<u64>,
    /// What was delivered in the last second, with framing overhead: what a rate bounds.
    pub used_bit_per_s: u64,
    /// Bytes that wait for a link.
    pub backlog_bytes: u64,
    /// Packets that were dropped since the run began, for any reason.
    pub dropped_packets: u64,
}

impl NodeEgressStatus {
    /// What all of these directions of links do.
    #[must_use]
    pub fn of<'a>(lanes: impl Iterator<Item = &'a LaneStatus>) -> NodeEgressStatus {
        let none = NodeEgressStatus { rate_bit_per_s: Some(0), ..NodeEgressStatus::default() };
        lanes.fold(none, |sum, lane| {
            let rates = sum.rate_bit_per_s.zip(lane.rate_bit_per_s);
            NodeEgressStatus {
                rate_bit_per_s: rates.map(|(a, b)| a.saturating_add(b)),
                used_bit_per_s: sum.used_bit_per_s.saturating_add(lane.delivered_wire_bit_per_s),
                backlog_bytes: sum.backlog_bytes.saturating_add(lane.queue_bytes),
                dropped_packets: sum.dropped_packets.saturating_add(lane.dropped_packets),
            }
        })
    }
}

/// The state of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Its words.
    pub argv: Vec<String>,
    pub state: StateWord<ProgramState>,
    /// Its process id inside the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Its exit code, or 128+n for a signal n.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<u8>,
}
