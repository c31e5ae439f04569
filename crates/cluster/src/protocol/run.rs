//! Messages about runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use windtunnel_control::part::{SharedOptions, StopWhy};
use windtunnel_model::Plan;

use super::AllocatedResources;

/// A run over several machines, as all of them know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSetup {
    /// Its number, random.
    pub run: u64,
    /// The whole plan.
    pub plan: Plan,
    /// SHA-256 of the plan, 64 hexadecimal digits.
    pub plan_hash: String,
    /// The machines.
    pub members: Vec<RunMember>,
    /// By node: on which member it is.
    pub placement: Vec<u16>,
    /// The key that packets between machines are sealed with, 64 hexadecimal digits; absent: they
    /// are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where programs start that name no folder of their own.
    pub base_dir: PathBuf,
    /// How the run is done.
    pub shared: SharedOptions,
    /// Which user of which machine wants it, as the command that begins it says.
    #[serde(default)]
    pub by: String,
}

/// A machine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMember {
    /// The agent's number.
    pub agent: String,
    /// Name of the machine.
    pub host: String,
    /// Where the agent listens.
    pub address: SocketAddr,
    /// What the run has of the machine.
    #[serde(default)]
    pub has: AllocatedResources,
}

/// An order of a watcher of a run to one of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PartCommand {
    /// Where the parts' packets go, by member; `None` for the part itself.
    Peers {
        /// By member.
        addresses: Vec<Option<SocketAddr>>,
    },
    /// Measure what is to be measured before the run.
    Measure,
    /// The run begins.
    Begin {
        /// By which agent's clock.
        agent: String,
        /// When, on that clock, in nanoseconds.
        at_ns: u64,
    },
    /// The run is to end.
    Stop {
        /// Why.
        why: StopWhy,
    },
}

/// A message of an agent to the others of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunMemberMessage {
    /// Its part says something.
    News {
        /// In the part's own words.
        news: String,
    },
    /// Its part has failed: it is as lost as if the machine were.
    Failed {
        /// Why.
        why: String,
    },
}

/// A run of which an agent has a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCard {
    /// Its number.
    pub run: u64,
    /// Name of the experiment.
    pub name: String,
    /// How many nodes the agent's part has.
    pub nodes: usize,
    /// Whether it is over, and waits for its results to be fetched.
    pub over: bool,
}

impl RunSetup {
    /// How many nodes a member has.
    #[must_use]
    pub fn nodes_of(&self, member: u16) -> usize {
        self.placement.iter().filter(|place| **place == member).count()
    }
}

/// A run's number as people read and write it.
#[must_use]
pub fn text_of(run: u64) -> String {
    format!("{run:016x}")
}
