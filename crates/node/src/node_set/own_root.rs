//! File systems of nodes' own.

use std::path::PathBuf;

use windtunnel_sys::process::User;

/// The file system of a node that has one of its own.
#[derive(Debug, Clone)]
pub struct OwnRoot {
    /// Where relative folders of `lower` start.
    pub base: PathBuf,
    /// Folders that are shown as one tree, the topmost first.
    pub lower: Vec<PathBuf>,
    /// Folders of the node that are made if they are not there: where its programs start.
    pub folders: Vec<String>,
    /// A folder for what the node writes, with the empty folders `upper`, `work` and `root`.
    pub place: PathBuf,
    pub volumes: Vec<OwnVolume>,
    /// The user that programs are, by the numbers of the node; `None`: as the plan says.
    pub account: Option<User>,
    /// Its supplementary groups; `None`: as they are.
    pub groups: Option<Vec<u32>>,
    /// The home of that user.
    pub home: String,
}

/// A file or folder from outside of it.
#[derive(Debug, Clone)]
pub struct OwnVolume {
    pub source: PathBuf,
    /// In the node, absolute.
    pub target: String,
    pub read_only: bool,
}

impl OwnRoot {
    /// Where the tree is mounted.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.place.join("root")
    }

    /// What the node writes.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        self.place.join("upper")
    }

    /// overlayfs's own.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.place.join("work")
    }
}
