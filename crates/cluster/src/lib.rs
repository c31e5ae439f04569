//! Agents on many machines: keys, encrypted connections between them, who is there and what they
//! have.
//!
//! Promises: nobody joins, reads or is answered who lacks the cluster's key, and that costs an
//! agent no more than a refused handshake; what agents agree on is the room `mesh`, fed and carried
//! here; agents need no root and no configuration beyond the key and one address. Refuses: deciding
//! what agents agree on; running programs itself; packets of emulated nodes, which never go over
//! these connections.
//!
//! | module | what |
//! | --- | --- |
//! | [`key`] | [`ClusterKey`]: made, kept and read |
//! | [`agent`] | [`Agent`]: one for each machine |
//! | [`client`] | [`Client`]: asks an agent |
//! | `attend` (private) | what those who start or watch a run do with an agent |
//! | `background` (private) | keeps connections alive while nobody asks anything |
//! | `double` (private) | an agent that says what a test wants; with the feature of that name |
//! | `fetch` (private) | the files of a part, into a folder and nowhere else |
//! | [`parts`] | all parts of a run, as who starts or watches it sees them |
//! | [`protocol`] | what is asked and answered |
//! | [`machine`] | what this machine has |
//! | `tls` (private) | both ends authenticate each other by the key |
//! | `hello` (private) | both ends tell each other their version first |
//! | `admission` (private) | how many handshakes may be under way |
//! | `refusal` (private) | what the end of a connection says |
//! | `carrier` (private) | datagrams over connections that come and go |
//! | `stream` (private) | messages on a stream |

mod admission;
pub mod agent;
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
pub mod protocol;
mod refusal;
mod stream;
mod stream_limit;
#[cfg(test)]
mod tests;
mod tls;

pub use agent::{Agent, AgentError, AgentNotice, Limits, Worker};
pub use client::{Client, ClientError};
#[cfg(any(test, feature = "double"))]
pub use double::FakeAgent;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_one;
pub use key::{ClusterKey, KeyError};
pub use parts::Parts;

/// The port of agents, unless they are told otherwise.
pub const PORT: u16 = 7447;

/// What stands before an agent's address on its standard output, for those who start agents.
pub const ANNOUNCED: &str = "windtunnel agent at ";

/// The first and the last of the UDP ports for packets of runs on a machine whose agent hears at
/// `port`: those behind it. Each run takes one.
#[must_use]
pub fn part_ports(port: u16) -> (u16, u16) {
    let first = port.saturating_add(1);
    (first, first.saturating_add(PART_PORTS - 1))
}

/// How many runs can be on a machine at the same time.
const PART_PORTS: u16 = 100;
