//! Everything counted in a run.

use serde::{Deserialize, Serialize};
use windtunnel_engine::{LaneClassCounters, LaneCounters, LostReports, RouterCounters};
use windtunnel_model::{Lane, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::series::LinkSampleSeries;

use super::meter::NodePairThroughput;
use super::nats::NatTally;
use super::overload::{OverloadSummary, PacketLoopStalls};
use super::phase::LanePhase;
use super::remote::{InterMachineTraffic, PeerTraffic};
use super::services::RedirectionTotals;
use crate::receive_queue::ReceiveQueueCounters;

/// Everything counted in a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// By lane index.
    pub lanes: Vec<LaneResult>,
    pub routers: Vec<RouterCounters>,
    /// What redirectors did.
    #[serde(default)]
    pub services: RedirectionTotals,
    /// What NATs did. A part of a run has none: they need the model of hops.
    #[serde(skip)]
    pub nats: Vec<NatTally>,
    /// What nodes got delivered to each other, where an expectation asks.
    pub flows: Vec<NodePairThroughput>,
    /// Lateness of packets delivered to nodes.
    pub departures: LatenessHistogram,
    /// Of these, later than the bound.
    pub late: u64,
    /// When packets were late, and on which lane most.
    pub late_intervals: Vec<LateInterval>,
    /// Packets that the kernel dropped before the engine saw them, with the time after the
    /// beginning.
    pub kernel_drops: Vec<(Time, u64)>,
    /// Packets too long for the ring or the engine.
    pub truncated: u64,
    /// Reports of the engine that were not read in time.
    #[serde(default)]
    pub lost_reports: LostReports,
    /// Packets that devices did not take.
    pub refused: u64,
    /// What came to nodes that pay for receiving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub received: Vec<ReceiveQueueCounters>,
    /// What the classes did that share lanes. A part of a run has none: shares need the model of
    /// hops.
    #[serde(skip)]
    pub shares: Vec<LaneShares>,
    /// How often, how long and how far the loop fell behind.
    pub overloads: OverloadSummary,
    /// How often and how long it stood still.
    pub stalls: PacketLoopStalls,
    /// Whether it came before all other work of the machine.
    pub real_time: bool,
    /// Time that the thread ran, in nanoseconds.
    pub ran_ns: u64,
    /// Time that it waited for a processor, in nanoseconds.
    pub waited_ns: u64,
    /// What went between this machine and others, where there were any.
    pub remote: Option<InterMachineTraffic>,
    /// The same for each of the others.
    pub peers: Vec<PeerTraffic>,
    /// How long after their start flows of other machines were reckoned with here.
    pub flow_starts: LatenessHistogram,
    /// Why the loop ended early, if it did.
    pub failure: Option<String>,
}

impl Tally {
    pub(super) fn failed(message: &str) -> Self {
        Tally { failure: Some(message.to_owned()), ..Tally::default() }
    }
}

/// One direction's totals.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LaneResult {
    /// The engine's counters.
    pub counters: LaneCounters,
    /// Lateness of what left it.
    pub lateness: LatenessHistogram,
    /// The ends of the first and the last interval in which packets were late.
    pub late: Option<(Time, Time)>,
    /// Packets for which there was no memory before the run was over.
    #[serde(default)]
    pub no_memory: u64,
    /// The times between changes of its properties, where there were any.
    pub phases: Vec<LanePhase>,
    /// All samples, where an expectation needs them.
    pub series: Option<LinkSampleSeries>,
}

/// What the classes of a lane did.
#[derive(Debug)]
pub struct LaneShares {
    pub lane: Lane,
    pub classes: LaneClassCounters,
    /// Flows of sockets that several programs had.
    pub shared_flows: u64,
}

/// An interval in which packets left later than the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateInterval {
    /// End of the interval after the run began.
    pub at: Time,
    /// The lane of the latest packet.
    pub lane: Lane,
    /// How late it was.
    pub max: Span,
}
