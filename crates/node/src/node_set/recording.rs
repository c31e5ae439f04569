//! By what programs of nodes leave records.

use std::collections::BTreeSet;
use std::path::PathBuf;

use windtunnel_model::id::NodeId;

use crate::init::record;

/// By what the programs of a node leave records and declarations: files in memory, at the same place
/// in each node.
#[derive(Debug, Clone)]
pub struct ProgramRecordingSetup {
    /// The folder that they cover: [`ProgramRecordingSetup::place`].
    pub place: PathBuf,
    /// The library that programs load (`LD_PRELOAD`).
    pub library: &'static [u8],
    /// Whether they leave records of their calls, in all nodes.
    pub calls: bool,
    /// Nodes whose programs declare what they send on sockets that several of them have.
    pub senders: BTreeSet<NodeId>,
}

impl ProgramRecordingSetup {
    /// A folder that can be covered in every node without hiding anything; `None`: this machine has
    /// none.
    #[must_use]
    pub fn place() -> Option<PathBuf> {
        record::place()
    }

    /// Whether a node's programs declare what they send.
    #[must_use]
    pub fn has_senders(&self, node: NodeId) -> bool {
        self.senders.contains(&node)
    }

    /// Where programs find the library.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        record::library(&self.place)
    }
}
