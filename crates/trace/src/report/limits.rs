//! Limits of nodes.

use serde::{Deserialize, Serialize};

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
    pub mechanism: String,
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
    pub limit: String,
    /// What held the limit: `cgroup v2`, `cgroup v1`, `watch`, `user namespace` or `rlimit`; `none`:
    /// nothing could.
    pub mechanism: String,
    /// Bytes, processes and threads, descriptors of each process, or bytes a second of each disk in
    /// each direction that were allowed at the end.
    pub asked: u64,
    /// The most that was used; of `disk`, in one second of one disk in one direction. Absent where
    /// that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// How often the limit was met: memory had to be taken back, a process could not be made, one
    /// was ended, or a second brought at least 95 % of what a disk may.
    pub met: u64,
    /// Processes that were ended for it.
    pub ended: u64,
    /// Faults for which a page had to be read from a disk: only of `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<u64>,
    /// Pages that the kernel took back: only of `memory` in a group of version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<u64>,
    /// Pages of files that were taken back and then read again: only of `memory` in a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refaulted: Option<u64>,
    /// Bytes that were read of all disks: only of `disk`. What goes through a disk that stands on
    /// another one, such as a loop device, counts for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Bytes that were written to all disks, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// Why the limit could not be held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
