//! Why nodes could not be made.

use std::io;
use std::path::PathBuf;

use crate::channel::ChannelError;
use crate::hint;
use crate::message::NodeSetupFailure;
use crate::netlink::NetlinkError;

/// Why the nodes of a plan could not be made. Whatever was made is gone again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A file in the run folder.
    #[error("cannot write {path}")]
    File { path: PathBuf, source: io::Error },
    /// A node's first process or its namespaces.
    #[error("cannot make the namespaces of node {node}")]
    Fork { node: String, source: io::Error },
    /// The fabric's devices.
    #[error("cannot make the fabric's devices")]
    Fabric(#[from] NetlinkError),
    /// A node said what is wrong.
    #[error("node {node}: {}", failure.message)]
    Node { node: String, failure: NodeSetupFailure },
    /// A node's init has ended without a word, or cannot be talked to.
    #[error("node {node} was lost during set-up")]
    Lost { node: String, source: ChannelError },
    /// A node has not answered.
    #[error("node {node} did not answer in {seconds} s")]
    Silent {
        node: String,
        /// For how long it was waited for.
        seconds: u64,
    },
}

impl CreateError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            CreateError::Fork { source, .. } => hint::too_many(source),
            CreateError::Node { failure, .. } => failure.hint.clone(),
            CreateError::Fabric(error) => hint::too_many(&error.source),
            CreateError::Silent { .. } => Some("the machine is overloaded: try fewer nodes".into()),
            CreateError::File { .. } | CreateError::Lost { .. } => None,
        }
    }
}
