//! What programs did with their connections, so that it can be done again over another network.
//!
//! A workload is JSON lines, one [`WorkloadConnection`] each. Both sides of a connection are a list of
//! [`WorkloadStep`]s, done one after the other: a step begins [`WorkloadStep::think_ns`] after the one before has
//! ended, and a read ends when all of its bytes have come. So a response waits for its request, and
//! time that was spent waiting for the network is not in the file.
//!
//! What is thinking, and what waiting: the time from the end of a call to the begin of the next
//! write is thinking, unless the write before had found the socket full. The time before a read is
//! thinking if its bytes were there already when the call before ended, or more than
//! [`WAKING_NS`] before it began; else the program was waiting for them, in `poll` or the like.

mod build;
#[cfg(test)]
mod tests;

pub use build::{Workload, workload};

use serde::{Deserialize, Serialize};

/// A connection, or the datagrams between two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadConnection {
    /// Its number, from 1.
    pub connection: u32,
    pub protocol: WorkloadProtocol,
    /// Names of nodes.
    pub client: String,
    pub server: String,
    /// The server's port.
    pub port: u16,
    pub start: ConnectionStart,
    pub client_steps: Vec<WorkloadStep>,
    pub server_steps: Vec<WorkloadStep>,
}

/// How it moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadProtocol {
    Tcp,
    Udp,
}

/// When the client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConnectionStart {
    /// So long after the client of another connection, of the same node, has done so many steps;
    /// 0: has connected.
    After { connection: u32, steps: usize, think_ns: u64 },
    /// So long after the workload began.
    AtNs(u64),
}

/// What a program does, so long after its step before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadStep {
    #[serde(flatten)]
    pub action: WorkloadAction,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub think_ns: u64,
}

/// What a program does with its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadAction {
    /// Writes so many bytes; of datagrams: sends one with so many.
    Write(u32),
    /// Reads until so many more bytes have come; of datagrams: receives one, of so many bytes.
    Read(u32),
    /// Reads until the other side has closed.
    ReadEnd(PresenceMarker),
    /// Sends no more.
    Shutdown(PresenceMarker),
    Close(PresenceMarker),
}

/// Stands where an action needs no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub struct PresenceMarker;

impl From<bool> for PresenceMarker {
    fn from(_: bool) -> PresenceMarker {
        PresenceMarker
    }
}

impl From<PresenceMarker> for bool {
    fn from(_: PresenceMarker) -> bool {
        true
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line that is no connection.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct LineError {
    pub line: usize,
    pub error: serde_json::Error,
}

/// The connections of a file.
///
/// # Errors
/// At the first line that is none.
pub fn parse(text: &str) -> Result<Vec<WorkloadConnection>, LineError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(at, line)| {
        serde_json::from_str(line).map_err(|error| LineError { line: at + 1, error })
    });
    parsed.collect()
}

/// As long as it may take from the arrival of bytes until a program that waits for them reads.
pub const WAKING_NS: u64 = 1_000_000;
