//! Limits of nodes.

use serde::{Deserialize, Serialize};
use windtunnel_model::{HeldLimit, LimitMechanism, Resource};

/// A node whose programs have a limit of processor time, and what they had in each whole second
/// (`limits.csv` has all of them).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeLimit {
    /// The node.
    pub node: String,
    /// The position of the program whose own limit it is, from 0; absent: it is that of all
    /// programs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<usize>,
    /// Whether `node` names a reservation.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reservation: bool,
    /// What held the limit: `cgroup v2`, `cgroup v1` or `duty cycle`.
    pub mechanism: LimitMechanism,
    /// Processors that its programs might use together, at the end of the run.
    pub asked_cpus: f64,
    /// Seconds that were looked at.
    pub windows: usize,
    /// Those of them in which programs were kept from running: they wanted more.
    pub bound_windows: usize,
    /// Processors that were used in these, on average; 0 if there are none. Programs may have begun
    /// or ended to want more within one, which makes it less.
    pub delivered_mean_cpus: f64,
    /// The median of these.
    pub delivered_median_cpus: f64,
    /// The most of any of these.
    pub delivered_max_cpus: f64,
    /// Processor time that was used in all seconds, in nanoseconds.
    pub used_ns: u64,
    /// How long programs were kept from running, in nanoseconds; control groups add up all
    /// processors.
    pub throttled_ns: u64,
    /// Why the limit could not be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A limit of memory, processes, descriptors or disks (`bounds.csv` has what was used each second,
/// descriptors excepted).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeBound {
    /// The node.
    pub node: String,
    /// The position of the program whose own limit it is, from 0; absent: it is that of all
    /// programs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<usize>,
    /// Whether `node` names a reservation.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reservation: bool,
    /// `memory`, `pids`, `open-files` or `disk`.
    pub limit: Resource,
    /// The limit at the end, and what came of it; what was used then is not said.
    #[serde(flatten)]
    pub held: HeldLimit,
}
