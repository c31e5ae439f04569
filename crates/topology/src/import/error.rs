//! Why a file cannot be imported.

use windtunnel_scenario::ScenarioMistake;

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Something is wrong in the file.
    #[error(transparent)]
    Mistake(#[from] ScenarioMistake),
    /// There is no such router.
    #[error("no router is called `{name}`")]
    UnknownRouter {
        /// What was asked.
        name: String,
        /// Some that there are.
        known: Vec<String>,
    },
    /// Only compose files can be laid over each other.
    #[error("{format} has one file: only compose files go over each other")]
    OneFile {
        /// The format's name.
        format: &'static str,
    },
    /// Nodes would be attached to nothing.
    #[error("the network has no node: give its routers nodes with a number of hosts of 1 or more")]
    NoNode,
    /// The network would be larger than a scenario may be.
    #[error("this would make {value} {what}: a scenario has at most {most}")]
    TooLarge {
        /// `nodes` or `links`.
        what: &'static str,
        /// How many.
        value: u64,
        /// The most.
        most: u64,
    },
}

impl ImportError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ImportError::UnknownRouter { known, .. } if !known.is_empty() => {
                Some(format!("there are {}", known.join(", ")))
            }
            _ => None,
        }
    }
}
