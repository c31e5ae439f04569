//! Why nodes cannot have the file systems that their plan gives them.

use std::io;
use std::path::PathBuf;

use windtunnel_image::{AccountError, ImageError, UnpackError};
use windtunnel_registry::RegistryError;

use super::emulator::NotExecutable;

/// Why a node cannot have a file system of its own; nothing has been started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    #[error("node {node}: there is no folder {} to be its root", path.display())]
    NoFolder { node: String, path: PathBuf },
    #[error("node {node}: its image cannot be used")]
    Image { node: String, source: ImageError },
    #[error("node {node}: {source}")]
    Foreign { node: String, source: Box<NotExecutable> },
    #[error("node {node}")]
    Fetch { node: String, source: Box<RootError> },
    #[error(transparent)]
    Registry { source: Box<RegistryError> },
    /// A plan names what it was made of, and no tag.
    #[error("the reference {reference} does not name an image by its digest")]
    Unpinned { reference: String },
    /// The machines of a run must have the same image at the same place.
    #[error("node {node}: {} is the image {found} here, and the run is of {expected}", path.display())]
    Other { node: String, path: PathBuf, expected: String, found: String },
    #[error("cannot unpack {}", path.display())]
    Layer { path: PathBuf, source: UnpackError },
    #[error(transparent)]
    Cache(#[from] UnpackError),
    #[error("no folder is known in which images could be unpacked")]
    NoCache,
    #[error("node {node}: {source}")]
    Account { node: String, source: AccountError },
    #[error(
        "node {node}: the user {uid}:{gid} of its image is beyond the subordinate identities here"
    )]
    Beyond { node: String, uid: u32, gid: u32 },
    #[error("cannot make {} for the files of a node", path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("node {node}: there is no {} for its volume", path.display())]
    NoVolume { node: String, path: PathBuf },
    #[error("cannot make the volume {name}: {}", path.display())]
    Volume { name: String, path: PathBuf, source: io::Error },
    /// A named volume is a folder of one machine.
    #[error(
        "nodes on several machines have the volume {name}, which cannot be shared between machines"
    )]
    Spread { name: String },
}

impl RootError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            RootError::Image { source, .. } => source.hint(),
            RootError::Foreign { source, .. } => Some(source.hint()),
            RootError::Fetch { source, .. } => source.hint(),
            RootError::Registry { source } => source.hint(),
            RootError::Layer { source, .. } | RootError::Cache(source) => source.hint(),
            RootError::Other { .. } => {
                Some("copy the image to the same place on every machine".into())
            }
            RootError::NoCache => {
                Some("set HOME, or WINDTUNNEL_IMAGE_CACHE to an absolute path".into())
            }
            RootError::Beyond { .. } => {
                Some("give the user a longer range in /etc/subuid and /etc/subgid".into())
            }
            RootError::Spread { .. } => Some("`pin` puts its nodes on one machine".into()),
            _ => None,
        }
    }
}
