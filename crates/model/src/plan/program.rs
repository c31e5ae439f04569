//! Programs of nodes.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::ready::ReadinessCondition;
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
    pub ready: Option<ReadinessCondition>,
    /// How long after its start it may take to be ready; `None`: a minute; for `exit`, and a command
    /// whose failures are counted, as long as it takes.
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

impl Program {
    /// The names of what is run for it: its own, and that of the command that says whether it is ready.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let check = match &self.ready {
            Some(ReadinessCondition::Command(check)) => check.argv.first(),
            Some(ReadinessCondition::OfImage(said)) => said.argv.first(),
            _ => None,
        };
        self.argv.first().into_iter().chain(check).map(String::as_str)
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
pub enum ProgramUser {
    /// The user that runs windtunnel, with no capabilities beyond that user's.
    #[default]
    Invoker,
    /// Root of the node's own user namespace: may configure its network, owns nothing else.
    Root,
    /// The user that the file or the node's image names, of the node's own files; root if neither does.
    Image,
}
