//! Programs of nodes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::id::NodeId;
use crate::time::Span;

/// One program of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Words of the command, at least one; none before an image has been looked at: its own command.
    pub argv: Vec<String>,
    /// Whether the run goes on without it and ends it.
    pub daemon: bool,
    /// When it counts as ready; `None`: as soon as it has started.
    pub ready: Option<Ready>,
    /// How long after its start it may take to be ready; `None`: a minute, or for `exit` as long
    /// as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_within: Option<Span>,
    /// Nodes all of whose programs must be ready first.
    pub after: Vec<NodeId>,
    /// It starts no earlier than this after the run began.
    pub start: Span,
    /// Working directory, absolute; `None`: where the file is.
    pub cwd: Option<String>,
    /// Variables on top of windtunnel's own environment.
    pub env: BTreeMap<String, String>,
    /// What happens when it exits.
    pub restart: Restart,
    /// Its own limits, within those of its node.
    #[serde(default, skip_serializing_if = "Demand::is_unknown")]
    pub demand: Demand,
}

/// What makes a program ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// Something in the node listens on this TCP port.
    Tcp(u16),
    /// Something in the node listens on some TCP port, or has bound some UDP port.
    Listen,
    /// Something in the node listens on this Unix socket.
    Unix(String),
    /// A line of its output matches this regular expression.
    Log(String),
    /// It has exited with 0.
    Exit,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ready::Tcp(port) => write!(f, "tcp:{port}"),
            Ready::Listen => f.write_str("listen"),
            Ready::Unix(path) => write!(f, "unix:{path}"),
            Ready::Log(pattern) => write!(f, "log:{pattern}"),
            Ready::Exit => f.write_str("exit"),
        }
    }
}

/// Whether a program that exited is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// It is not.
    #[default]
    Never,
    /// After an exit code other than 0, or a signal.
    OnFailure,
    /// Always.
    Always,
}

/// The user that programs of a node run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum User {
    /// The user that runs windtunnel, with no capabilities beyond that user's.
    #[default]
    Invoker,
    /// Root of the node's own user namespace: may configure its network, owns nothing else.
    Root,
    /// The user that the file or the node's image names, of the node's own files; root if neither does.
    Image,
}
