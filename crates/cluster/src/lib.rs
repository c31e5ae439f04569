//! Agents on many machines: keys, encrypted connections between them, membership and resources.
//!
//! Promises: without the cluster's key no stranger joins, reads or gets an answer, and trying costs
//! an agent no more than a refused handshake; what agents agree on is the room `mesh`, fed and
//! carried here; agents need no root and no configuration beyond the key and one address. Refuses:
//! deciding what agents agree on; running programs itself; packets of emulated nodes, which never
//! go over these connections.
//!
//! | module | what |
//! | --- | --- |
//! | [`key`] | [`ClusterKey`]: made, kept and read |
//! | [`agent`] | [`AgentConfiguration`]: one for each machine |
//! | [`client`] | [`AgentClient`]: asks an agent |
//! | `attend` (private) | conversations of a client that starts or watches a run |
//! | `background` (private) | keeps connections alive between questions |
//! | `double` (private) | an agent that answers as a test wants; with the feature of that name |
//! | `fetch` (private) | the files of a part, into a folder and nowhere else |
//! | [`parts`] | all parts of a run, for the process that starts or watches it |
//! | `run_agents` (private) | the agents of a run's machines, asked one question at a time |
//! | `plain_path` (private) | which paths a part of a run may name |
//! | [`protocol`] | what is asked and answered |
//! | [`machine`] | what this machine has |
//! | `tls` (private) | both ends authenticate each other by the key |
//! | `hello` (private) | both ends send their version first |
//! | `admission` (private) | how many handshakes may be under way |
//! | `refusal` (private) | what the end of a connection means |
//! | `carrier` (private) | datagrams over connections that come and go |
//! | `stream` (private) | messages on a stream |

mod admission;
pub mod agent;
mod answer_stream;
mod attend;
mod background;
mod carrier;
pub mod client;
#[cfg(any(test, feature = "double"))]
mod double;
mod fetch;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod hello;
pub mod key;
pub mod machine;
pub mod parts;
mod plain_path;
mod ports;
pub mod protocol;
mod refusal;
mod run_agents;
mod stream;
mod stream_limit;
#[cfg(test)]
mod tests;
mod tls;

pub use agent::{
    AgentConfiguration, AgentError, AgentNotice, AgentResourceLimits, CommandAuditRecord,
    LimitLapseLog, PartWorkerCommand, RunAuditRecord,
};
pub use client::{AgentClient, AgentClientError};
#[cfg(any(test, feature = "double"))]
pub use double::FakeAgent;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use key::{ClusterKey, KeyError};
pub use parts::PartSessions;
pub use ports::{PORT, part_ports};
pub use run_agents::RunAgents;

/// The text before an agent's address on its standard output, for programs that start agents.
pub const ANNOUNCED: &str = "windtunnel agent at ";
