//! The first message on a connection, from both ends: the version of each. If they differ, neither
//! goes on, and both know both versions.

use std::io;

use quinn::{Connection, ConnectionError, VarInt};
use serde::{Deserialize, Serialize};
use windtunnel_control::SoftwareVersion;
use windtunnel_model::name;
use windtunnel_model::valid::{PlanValidationError, Validate, ensure, plain, shown};

use crate::stream;

/// One end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentHello {
    /// Its version.
    pub(crate) version: SoftwareVersion,
    /// Name of its machine.
    pub(crate) host: String,
}

/// Why a connection is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelloError {
    /// The ends are of different versions, in words that name both.
    #[error("{0}")]
    Version(String),
    /// It broke, or the other end sent an invalid message.
    #[error("{0}")]
    Broken(#[from] io::Error),
}

impl AgentHello {
    /// That of this program, on the machine of that name.
    pub(crate) fn own(host: String) -> Self {
        AgentHello { version: SoftwareVersion::own(), host }
    }

    /// How two ends differ.
    fn differs_from(&self, other: &AgentHello) -> String {
        format!("{} has {}, and {} has {}", self.host, self.version, other.host, other.version)
    }
}

impl Validate for AgentHello {
    fn validate(&self) -> Result<(), PlanValidationError> {
        ensure(name::is_machine(&self.host), || {
            format!("`{}` cannot name a machine", shown(&self.host))
        })?;
        self.version.validate()
    }
}

/// Sends the hello of this end, and receives that of the other.
///
/// # Errors
/// If it is of another version, which both ends report; and if the connection breaks.
pub(crate) async fn exchange(
    connection: &Connection,
    own: &AgentHello,
) -> Result<AgentHello, HelloError> {
    match swap_hellos(connection, own).await {
        Ok(theirs) if theirs.version == own.version => Ok(theirs),
        Ok(theirs) => {
            let why = theirs.differs_from(own);
            connection.close(OTHER_VERSION, why.as_bytes());
            Err(HelloError::Version(why))
        }
        Err(error) => Err(match connection.close_reason() {
            Some(ConnectionError::ApplicationClosed(close))
                if close.error_code == OTHER_VERSION =>
            {
                let why = String::from_utf8_lossy(&close.reason);
                HelloError::Version(plain(&why, REASON_MAX))
            }
            _ => HelloError::Broken(error),
        }),
    }
}

async fn swap_hellos(connection: &Connection, own: &AgentHello) -> io::Result<AgentHello> {
    let mut to = connection.open_uni().await?;
    stream::send(&mut to, own).await?;
    to.finish().map_err(io::Error::other)?;
    let mut from = connection.accept_uni().await?;
    stream::receive(&mut from, HELLO_BYTES_MAX).await
}

/// What a connection is closed with, then.
const OTHER_VERSION: VarInt = VarInt::from_u32(1);
const HELLO_BYTES_MAX: usize = 4096;
/// Characters of a reason that are shown.
const REASON_MAX: usize = 600;
