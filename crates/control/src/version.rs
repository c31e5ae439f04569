//! Which windtunnel a process is. Agents, commands that ask them and the parts of runs say it to
//! each other before anything else, and go no further if it differs: what follows may not mean the
//! same to both.

use std::fmt;

use serde::{Deserialize, Serialize};
use windtunnel_model::name;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure};

/// Number of what agents, commands and parts say to each other. It changes with every message that
/// an earlier windtunnel would not read as it is meant.
pub const PROTOCOL: u32 = 2;

/// A version of windtunnel. Its form never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareVersion {
    /// [`PROTOCOL`] of it.
    pub protocol: u32,
    /// The release.
    pub windtunnel: String,
}

impl SoftwareVersion {
    /// That of this program.
    #[must_use]
    pub fn own() -> Self {
        SoftwareVersion { protocol: PROTOCOL, windtunnel: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl fmt::Display for SoftwareVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "windtunnel {} (protocol {})", self.windtunnel, self.protocol)
    }
}

impl Validate for SoftwareVersion {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_machine(&self.windtunnel), || "a release has another name".to_owned())
    }
}
