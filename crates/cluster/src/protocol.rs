//! Questions to an agent, and its answers: one question and its answer on each stream, as
//! `windtunnel_control::frame` has them. Agents ask each other the same way.

pub mod answers;
pub mod exec;
pub mod questions;
pub mod run;
pub(crate) mod valid;

pub(crate) use valid::AMOUNT_MAX;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use windtunnel_control::ControlRequest;
use windtunnel_control::part::FromPart;
use windtunnel_model::word::ClockSource;
use windtunnel_model::{Bytes, Rate};

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AgentRequest {
    /// The agent and the resources of its machine. Answer: [`AgentReply::Card`].
    Card,
    /// All agents of the cluster, as this one knows them. Answer: [`AgentReply::Hosts`].
    Hosts {
        /// Whether the throughput between each two of them is measured.
        measure: bool,
    },
    /// Bytes follow on the stream until it ends; they are counted and forgotten. Answer:
    /// [`AgentReply::Taken`].
    Take,
    /// Sends bytes to another agent for a while. Answer: [`AgentReply::Throughput`].
    Send {
        /// Where that agent is.
        to: SocketAddr,
    },
    /// Look for another agent. Answer: [`AgentReply::Done`].
    Join {
        /// Where it listens.
        address: SocketAddr,
    },
    /// Do a part of a run. The stream stays open: [`run::PartCommand`]s follow on it, and what the part
    /// says comes back as [`AgentReply::Part`]s. If it closes before the run has begun, there is no
    /// run.
    Part {
        /// The whole run.
        run: Box<run::RunSetup>,
        /// Which of its members the agent is.
        member: u16,
    },
    /// Whether the machine has the programs, folders and images that the nodes of a member need; no
    /// run is begun. Answer: [`AgentReply::Missing`].
    Look {
        /// The whole run, as it would be.
        run: Box<run::RunSetup>,
        /// Which of its members the agent is.
        member: u16,
    },
    /// The runs of which the agent has a part. Answer: [`AgentReply::Runs`].
    Runs,
    /// Watch a run from now on. Answers: [`AgentReply::Run`], then as with [`AgentRequest::Part`].
    Watch {
        /// Number of the run.
        run: u64,
    },
    /// Messages of another agent about its part follow on the stream, as [`run::RunMemberMessage`]s.
    Receive {
        /// Number of the run.
        run: u64,
        /// Which member it comes from.
        member: u16,
    },
    /// The stream is connected with the part's control socket, whose conversation follows after
    /// [`AgentReply::Done`].
    Control {
        /// Number of the run.
        run: u64,
    },
    /// Run a command in a node of the part. After [`AgentReply::Done`], [`exec::ToCommand`]s go one way
    /// and [`exec::FromCommand`]s the other. If the stream closes, the command ends.
    Exec {
        /// Number of the run.
        run: u64,
        /// The command, as the control socket takes it.
        request: Box<ControlRequest>,
        /// Lines and characters in a line of the terminal that it gets, if it gets one.
        size: Option<(u16, u16)>,
    },
    /// The files of a part that is over. Answers: an [`AgentReply::File`] before the bytes of each,
    /// then [`AgentReply::Done`].
    Fetch {
        /// Number of the run.
        run: u64,
    },
    /// The files of a part that is over are not needed any more. Answer: [`AgentReply::Done`].
    Forget {
        /// Number of the run.
        run: u64,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AgentReply {
    /// The agent and its machine.
    Card(Box<AgentDescription>),
    /// All agents.
    Hosts(ClusterHosts),
    /// So many bytes came.
    Taken {
        /// Bytes.
        bytes: u64,
    },
    /// What went through, in bit/s.
    Throughput {
        /// Bit/s.
        bit_per_s: u64,
    },
    /// What a part said.
    Part {
        /// When it was passed on, on the agent's monotonic clock, in nanoseconds.
        now_ns: u64,
        /// What it said.
        said: FromPart,
    },
    /// A run.
    Run(Box<run::RunSetup>),
    /// The runs that are there.
    Runs {
        /// Each of them.
        runs: Vec<run::RunCard>,
    },
    /// A file, whose bytes follow.
    File {
        /// Its name, from the part's folder on.
        path: String,
        /// How many bytes follow.
        bytes: u64,
        /// Whether it may be executed.
        executable: bool,
    },
    /// What nodes need and the machine does not have.
    Missing {
        /// A line for each.
        what: Vec<String>,
    },
    /// It is done.
    Done,
    /// It cannot be answered.
    Error {
        /// Why.
        message: String,
    },
}

/// An agent and its machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentDescription {
    /// The agent's number.
    pub agent: String,
    /// Name of the machine.
    pub host: String,
    /// Where the agent listens.
    pub address: SocketAddr,
    /// What its owner calls it.
    pub labels: BTreeSet<String>,
    /// Version of windtunnel.
    pub windtunnel: String,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that runs may use.
    pub cpus: u32,
    /// Processes that want a processor, on average over the last minute, times 100.
    pub load_hundredths: u64,
    /// Memory that runs may use.
    pub memory: Bytes,
    /// Memory that is free now.
    pub memory_free: Bytes,
    /// What the machine can send to others, where its owner has said so.
    pub uplink: Option<Rate>,
    /// The most nodes that runs may have here, where its owner has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_max: Option<u32>,
    /// Thousandths of a processor that runs may ask for here at the most, where its owner has said
    /// so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis_max: Option<u64>,
    /// What the runs that are there have.
    #[serde(default)]
    pub reserved: AllocatedResources,
    /// Datagrams that ports of runs have refused here since the agent began: of another sender or
    /// run, not whole, or sent twice.
    #[serde(default)]
    pub refused_datagrams: u64,
    /// Why the machine can do no part of a run, if the agent found at its start that it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<MachineIneligibility>,
    /// How the other agents look from here.
    pub peers: Vec<PeerAgent>,
}

/// Why a machine can do no part of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineIneligibility {
    /// What went wrong where one was tried.
    pub why: String,
    /// What its owner can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What runs have of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AllocatedResources {
    /// How many runs.
    pub runs: u32,
    /// Nodes.
    pub nodes: u32,
    /// Thousandths of a processor that nodes ask for.
    pub cpu_millis: u64,
    /// Memory that nodes are expected to use.
    pub memory: Bytes,
    /// The most that nodes send to other machines, in bit/s.
    pub up_bit_per_s: u64,
    /// The most that nodes on other machines send here, in bit/s.
    pub down_bit_per_s: u64,
}

/// Another agent, as it looks from an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAgent {
    /// The other agent's number.
    pub agent: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// How its clock stands; absent: not yet known.
    pub clock: Option<AgentClockOffset>,
}

/// How another machine's monotonic clock stands to one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentClockOffset {
    /// By what that is known.
    #[serde(default)]
    pub by: ClockSource,
    /// Nanoseconds by which it is ahead.
    pub offset_ns: i64,
    /// The offset is wrong by no more than this.
    pub error_ns: u64,
    /// The least round trip of the last seconds.
    pub rtt_ns: u64,
}

/// All agents of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterHosts {
    /// Position of the agent that was asked.
    pub asked: usize,
    /// The agents, by host name and address.
    pub hosts: Vec<AgentDescription>,
    /// Agents that are there but did not answer, and why.
    pub silent: Vec<UnresponsiveAgent>,
    /// What went from one to another, where that was measured, in bit/s.
    pub throughput: Vec<Throughput>,
}

/// An agent that did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnresponsiveAgent {
    /// Where it listens.
    pub address: SocketAddr,
    /// Why there is no answer.
    pub why: String,
}

/// What went through between two agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throughput {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// Bit/s over one encrypted connection; absent where it could not be measured.
    pub bit_per_s: Option<u64>,
}

impl ClusterHosts {
    /// The round trip from one agent to another, in nanoseconds, as the first sees it.
    #[must_use]
    pub fn rtt_ns(&self, from: &AgentDescription, to: &AgentDescription) -> Option<u64> {
        let peer = from.peers.iter().find(|peer| peer.agent == to.agent)?;
        Some(peer.clock?.rtt_ns)
    }
}

/// The longest question: one with the plan of thousands of nodes.
pub(crate) const ASK_BYTES_MAX: usize = 256 << 20;
/// The longest answer: 10 000 agents that know each other are too many for one.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 20;
