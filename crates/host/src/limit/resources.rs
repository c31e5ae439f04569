//! What a command may use of the machine beside its bandwidth, and what it has used.

use serde::{Deserialize, Serialize};
use windtunnel_limit::CgroupResource;
use windtunnel_verdict::evidence::CpuAccountWindow;

/// What a command and all that it starts may use; `None`: as much as there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Thousandths of a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u32>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Descriptors, of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

impl Resources {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Resources::default()
    }

    /// What can be limited of these for all processes together.
    pub(super) fn shared(&self) -> Vec<CgroupResource> {
        let asked = [self.cpu_millis.is_some(), self.memory.is_some(), self.pids.is_some()];
        let asked = CgroupResource::ALL.into_iter().zip(asked).filter(|(_, asked)| *asked);
        asked.map(|(resource, _)| resource).collect()
    }

    /// What `newer` says holds, the rest stays as it is.
    pub(super) fn replace(&mut self, newer: &Resources) {
        self.cpu_millis = newer.cpu_millis.or(self.cpu_millis);
        self.memory = newer.memory.or(self.memory);
        self.pids = newer.pids.or(self.pids);
        self.open_files = newer.open_files.or(self.open_files);
    }
}

/// What limits a command, and what it has had of that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResourceUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<ProcessorUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<AmountUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<AmountUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<AmountUse>,
}

/// Processor time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// In words.
    pub mechanism: String,
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

/// What is counted: bytes of memory, processes, descriptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmountUse {
    /// In words.
    pub mechanism: String,
    /// What is allowed now.
    pub asked: u64,
    /// What is used, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The most that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// How often the limit was met: memory had to be taken back, or a process could not be made.
    pub met: u64,
    /// Processes that were ended for it.
    pub ended: u64,
    /// The names of some of these, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
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

impl CommandCpuSample {
    pub(super) fn of(window: &CpuAccountWindow, began_ns: u64) -> CommandCpuSample {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_values_replace_older_ones_and_leave_the_rest() {
        let mut asked = Resources { cpu_millis: Some(250), pids: Some(9), ..Resources::default() };
        assert_eq!(asked.shared(), [CgroupResource::Processor, CgroupResource::Processes]);
        asked.replace(&Resources {
            cpu_millis: Some(500),
            memory: Some(1),
            ..Resources::default()
        });
        let expected =
            Resources { cpu_millis: Some(500), memory: Some(1), pids: Some(9), open_files: None };
        assert_eq!(asked, expected);
    }
}
