//! What the owner of a machine sees of what others have it do: an entry for each run that begins
//! and each command.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use windtunnel_control::ControlRequest;

use crate::protocol::run::RunSetup;

/// A run that is to begin here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAuditRecord {
    /// Its number.
    pub run: u64,
    /// Name of the experiment.
    pub name: String,
    /// Where the command is that wants it.
    pub from: SocketAddr,
    /// The user and the machine that this command names. Every holder of the key can name any.
    pub by: String,
    /// How many nodes are here.
    pub nodes: usize,
    /// The programs that nodes here have, each once.
    pub programs: BTreeSet<String>,
}

/// A command in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAuditRecord {
    /// Number of the run.
    pub run: u64,
    /// The node.
    pub node: String,
    /// Where it comes from.
    pub from: SocketAddr,
    /// Its words.
    pub argv: Vec<String>,
}

impl RunAuditRecord {
    pub(super) fn of(setup: &RunSetup, member: u16, from: SocketAddr) -> Self {
        let here = setup.plan.nodes.iter().zip(&setup.placement);
        let here = here.filter(|(_, place)| **place == member).map(|(node, _)| node);
        let programs = here.flat_map(|node| &node.programs);
        RunAuditRecord {
            run: setup.run,
            name: setup.plan.name.clone(),
            from,
            by: setup.by.clone(),
            nodes: setup.nodes_of(member),
            programs: programs.flat_map(|program| program.names().map(str::to_owned)).collect(),
        }
    }
}

impl CommandAuditRecord {
    pub(super) fn of(run: u64, request: &ControlRequest, from: SocketAddr) -> Option<Self> {
        match request {
            ControlRequest::Exec { node, argv, .. } => {
                Some(CommandAuditRecord { run, node: node.clone(), from, argv: argv.clone() })
            }
            _ => None,
        }
    }
}
