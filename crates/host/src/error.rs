//! Why a run could not be done.

use windtunnel_folder::FolderError;
use windtunnel_resource::ResourceError;

use crate::machine::presence::MissingPrerequisite;

/// Why a run could not be done. What happens once the network is up is not an error but a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Leaving the machine's network.
    #[error("cannot leave the machine's network")]
    Enter(#[from] windtunnel_node::EnterError),
    #[error("cannot set up the nodes")]
    Create(#[from] windtunnel_node::CreateError),
    /// This machine has not what programs need; nothing has been started.
    #[error("{}", lacks(missing))]
    Missing {
        /// What, by the name of the node; at least one.
        missing: Vec<(String, MissingPrerequisite)>,
    },
    /// A node cannot get its packets; it is named.
    #[error("{0}")]
    Receive(String),
    /// It cannot be seen whether programs of a replica listen.
    #[error("cannot see whether programs of {node} listen for services")]
    Replica {
        node: String,
        #[source]
        source: std::io::Error,
    },
    /// What nodes or reservations ask of this machine; nothing has been started.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// Something that a file asks for and its user has not allowed; nothing has been started.
    #[error("{what}, and nothing has allowed that")]
    NotAllowed {
        /// What the file asks for.
        what: String,
        /// How it is allowed.
        hint: &'static str,
    },
    /// The way to the machine's outside.
    #[error("the node `internet` cannot be made")]
    Gateway(#[from] windtunnel_gateway::StartError),
    /// A node cannot have its own file system; nothing has been started.
    #[error(transparent)]
    Root(#[from] crate::roots::RootError),
    /// Another step; it is named.
    #[error("cannot {step}")]
    Step {
        step: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// All UDP ports for packets between machines are taken.
    #[error(
        "all UDP ports from {first} to {last} at {address} are taken: each run on a machine has one"
    )]
    NoPort { address: std::net::IpAddr, first: u16, last: u16 },
    /// The agent wanted no more before the run had begun.
    #[error("stopped before the run began: {0}")]
    Stopped(String),
    /// A signal came before the network was up.
    #[error("interrupted by signal {0} while the network was set up")]
    Interrupted(i32),
}

impl RunError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Folder(error) => Some(error.hint()),
            RunError::NotAllowed { hint, .. } => Some((*hint).to_owned()),
            RunError::Gateway(error) => error.hint(),
            RunError::Enter(error) => error.hint(),
            RunError::Create(error) => error.hint(),
            RunError::Root(error) => error.hint(),
            RunError::NoPort { .. } => {
                Some("end other runs, or start the agent with another port: --listen".to_owned())
            }
            RunError::Missing { missing } => {
                missing.first().and_then(|(_, missing)| missing.hint())
            }
            RunError::Resource(error) => Some(error.hint().to_owned()),
            RunError::Step { .. } | RunError::Receive(_) | RunError::Replica { .. } => {
                Some("`windtunnel doctor` shows what this machine allows".into())
            }
            _ => None,
        }
    }

    /// The exit code that says this: 4, the machine cannot do it; 3, it has not what the file
    /// names; 2, an option of the command is missing; 128+n for a signal.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            RunError::NotAllowed { .. } => 2,
            RunError::Missing { .. } | RunError::Root(_) => 3,
            _ => 4,
        }
    }
}

/// What is missing where, of which the first few are named.
fn lacks(missing: &[(String, MissingPrerequisite)]) -> String {
    let named = missing.iter().take(MISSING_NAMED);
    let named = named.map(|(node, missing)| format!("node {node}: {}", missing.message()));
    let more = missing.len().saturating_sub(MISSING_NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    named.chain(more).collect::<Vec<_>>().join("; ")
}

const MISSING_NAMED: usize = 5;

pub(crate) fn step(step: &'static str) -> impl FnOnce(std::io::Error) -> RunError {
    move |source| RunError::Step { step, source }
}

pub(crate) fn io(step: &'static str) -> impl FnOnce(serde_json::Error) -> RunError {
    move |error| RunError::Step { step, source: error.into() }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    fn missing(count: usize) -> RunError {
        let node = windtunnel_model::NodeId(0);
        let plan = windtunnel_dataplane::testing::plan(
            "nodes: {a: {run: /no/such/program}, b: {}}\nlinks: [{between: [a, b]}]",
        );
        let first = crate::machine::presence::missing(&plan, "/".as_ref(), None).remove(0);
        assert_eq!(first.node, node);
        RunError::Missing { missing: vec![("a".to_owned(), first); count] }
    }

    #[test]
    fn a_missing_program_is_named_with_its_node_and_the_rest_is_counted() {
        let text = missing(1).to_string();
        assert!(text.starts_with("node a: ") && text.contains("/no/such/program"), "{text}");
        assert!(!text.contains("; "), "{text}");
        let many = missing(7).to_string();
        assert_eq!(many.matches("node a: ").count(), 5);
        assert!(many.ends_with("; and 2 more"), "{many}");
    }

    #[test]
    fn exit_codes_distinguish_file_machine_and_signal() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let step = step("open the packet socket")(denied);
        assert_eq!(step.exit_code(), 4);
        assert_eq!(step.to_string(), "cannot open the packet socket");
        assert!(
            step.source().is_some_and(|source| source.to_string().contains("permission denied"))
        );
        assert!(step.hint().is_some_and(|hint| hint.contains("doctor")));
        assert_eq!(missing(1).exit_code(), 3);
        assert_eq!(RunError::Interrupted(15).exit_code(), 143);
        assert_eq!(RunError::Stopped("by command".into()).hint(), None);
    }
}
