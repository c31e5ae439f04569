//! The machines of a run.

use serde::{Deserialize, Serialize};
use windtunnel_model::word::{ClockSource, StateWord};

use super::{SchedulePunctuality, is_zero};
use crate::lateness;

/// One machine of a run over several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its name.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// How many nodes it had.
    pub nodes: usize,
    /// What it did.
    pub machine: MachineReport,
    /// Lateness over all packets delivered to its nodes.
    pub lateness: lateness::LatenessSummary,
    /// What was planned for times of the run there.
    #[serde(default)]
    pub planned: SchedulePunctuality,
    /// Packets that it sent to the other machines.
    pub sent_packets: u64,
    /// Bytes of the datagrams that it sent, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Packets that came from the other machines.
    pub received_packets: u64,
    /// Datagrams with packets that were sent to it and have not come.
    pub lost_datagrams: u64,
    /// Datagrams that came to its port and were not of this run, or not whole, or came twice.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_datagrams: u64,
    /// What went between it and each other machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerTrafficReport>,
    /// How soon it knew of flows of the other machines that share a link with one of its own,
    /// since both were there.
    #[serde(default)]
    pub flow_starts: FlowStarts,
}

/// A machine of which nothing is known any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostHost {
    /// Its name.
    pub host: String,
    /// How many nodes it had.
    pub nodes: usize,
    /// Since when, in nanoseconds after the run began; absent if it was lost with its results when
    /// all was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// How that is known.
    pub why: String,
}

/// What went between a machine of a run and another one. What one has sent and the other has not
/// received was lost between the machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerTrafficReport {
    /// Name of the other machine.
    pub host: String,
    /// Datagrams with packets that went to it.
    pub sent_datagrams: u64,
    /// Packets in them.
    pub sent_packets: u64,
    /// Their bytes, without the headers of IP and UDP.
    pub sent_bytes: u64,
    /// Datagrams with packets that came from it.
    pub received_datagrams: u64,
    /// Packets in them.
    pub received_packets: u64,
    /// Their bytes, without the headers of IP and UDP.
    pub received_bytes: u64,
    /// How long it answered no probes, together, in nanoseconds.
    pub silent_ns: u64,
    /// How well its clock was known; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<PeerClockAccuracy>,
}

/// How well a machine knew the clock of another one, at the worst in the run. Packets of the other
/// one may be early or late by so much that no count of lateness has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerClockAccuracy {
    /// Nanoseconds by which the other's monotonic clock was ahead, about.
    pub ahead_ns: i64,
    /// That was wrong by no more than this, in nanoseconds.
    pub error_ns: u64,
    /// By what it was known: `exchanges` (the fastest messages each way), also `synchronised` (the
    /// kernels' NTP or PTP state) or `stated` (`--clock-offsets`).
    pub by: StateWord<ClockSource>,
}

/// How soon a machine reckoned with flows of the other machines that share a link with one of its
/// own, since both were there, with `model: paths`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowStarts {
    /// Flows that began on the other machines and were announced to it.
    #[serde(default)]
    pub announced: u64,
    /// Those of them that shared a link with a flow of its own when they were announced.
    pub flows: u64,
    /// The mean, in nanoseconds, as the others.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What the machine did during the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MachineReport {
    /// Processors that windtunnel may use.
    pub cpus: usize,
    /// Packets that the kernel dropped before the engine saw them.
    pub kernel_drops: u64,
    /// Packets that the kernel dropped after the engine sent them.
    pub kernel_refused: u64,
    /// How often the emulation fell behind for lack of processor time.
    pub overloads: u64,
    /// How long that was, together, in nanoseconds.
    pub overloaded_ns: u64,
    /// How late it was with its oldest work at the worst of these, in nanoseconds.
    pub overload_worst_ns: u64,
    /// How often it stood still for longer than the bound of lateness, and caught up at once.
    #[serde(default)]
    pub stalls: u64,
    /// How long it stood still at the longest, in nanoseconds.
    #[serde(default)]
    pub stall_worst_ns: u64,
    /// How often all programs were paused until it had caught up.
    pub freezes: u64,
    /// How long that was, together, in nanoseconds.
    pub frozen_ns: u64,
    /// Whether the engine's thread came before all other work of the machine (`SCHED_RR`): where
    /// root runs it.
    #[serde(default)]
    pub real_time: bool,
    /// Time that the engine's thread ran, in nanoseconds.
    pub engine_ran_ns: u64,
    /// Time that it was ready but had no processor, in nanoseconds.
    pub engine_waited_ns: u64,
    /// How much of their time the machine's processors ran something, in percent: windtunnel, the
    /// programs and everything else.
    pub busy_percent: u8,
    /// Time that the hypervisor took from the machine's processors, in nanoseconds.
    pub stolen_ns: u64,
    /// Records that were not written because the disk was too slow.
    pub records_lost: u64,
    /// Measurements and events of the engine that the packet loop did not read in time.
    #[serde(default)]
    pub reports_lost: u64,
}
