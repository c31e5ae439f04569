//! What a command has used of the machine beside its bandwidth.

use serde::{Deserialize, Serialize};
use windtunnel_budget::processor::{CpuUsageReading, CpuUsageWindow, exceeded};
use windtunnel_limit::supervisor::SupervisedLimit;
use windtunnel_model::{HeldLimit, LimitMechanism, Resource, ResourceAmounts};

/// Of what is asked, what a group can limit for all processes together.
pub(super) fn shared(asked: &ResourceAmounts) -> ResourceAmounts {
    asked.of_those(|resource| resource != Resource::OpenFiles)
}

/// What limits a command, and what it has had of that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResourceUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CommandCpuUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<HeldLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<HeldLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<HeldLimit>,
}

/// Processor time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandCpuUsage {
    /// In words.
    pub mechanism: LimitMechanism,
    /// Processors that it may use now.
    pub asked_cpus: f64,
    /// Processors that it has used, on average.
    pub delivered_cpus: f64,
    /// The same in the last second that is complete, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_cpus: Option<f64>,
    /// Processor time that it has used.
    pub used_ns: u64,
    /// How long it was kept from running.
    pub throttled_ns: u64,
    /// About a second each; the last one is shorter.
    pub windows: usize,
    /// Those in which it was kept from running.
    pub bound_windows: usize,
    /// Those in which it had more than was asked.
    pub exceeded_windows: usize,
    /// The most processors that it has used in one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceeded_max_cpus: Option<f64>,
    /// Processors that the control groups around leave it, where these are fewer than was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around_cpus: Option<f64>,
    /// Why it could not be held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// About a second of a command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommandCpuSample {
    /// When it ended, after the beginning of the command.
    pub time_s: f64,
    pub length_s: f64,
    pub asked_cpus: f64,
    pub delivered_cpus: f64,
    /// How long it was kept from running.
    pub throttled_s: f64,
}

impl CommandCpuUsage {
    pub(super) fn of(limit: &SupervisedLimit) -> CommandCpuUsage {
        let CpuUsageReading { now_ns, used_ns, held_ns } = limit.total();
        let (windows, exceeded) = (&limit.windows, exceeded(&limit.windows));
        CommandCpuUsage {
            mechanism: limit.held.mechanism,
            asked_cpus: f64::from(limit.asked_millis()) / 1000.0,
            delivered_cpus: used_ns as f64 / now_ns.max(1) as f64,
            latest_cpus: windows.last().map(CpuUsageWindow::delivered),
            used_ns,
            throttled_ns: held_ns,
            windows: windows.len(),
            bound_windows: windows.iter().filter(|window| window.is_bound()).count(),
            exceeded_windows: exceeded.len(),
            exceeded_max_cpus: exceeded.iter().map(|window| window.delivered()).reduce(f64::max),
            around_cpus: None,
            failure: limit.held.failure.clone(),
        }
    }
}

impl CommandCpuSample {
    pub(super) fn of(window: &CpuUsageWindow, began_ns: u64) -> CommandCpuSample {
        CommandCpuSample {
            time_s: seconds(window.end_ns.saturating_sub(began_ns)),
            length_s: seconds(window.length_ns),
            asked_cpus: f64::from(window.asked_millis) / 1000.0,
            delivered_cpus: window.delivered(),
            throttled_s: seconds(window.held_ns),
        }
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
