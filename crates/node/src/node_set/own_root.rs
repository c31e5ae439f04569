//! File systems of nodes' own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windtunnel_sys::process::UserIdentity;

use crate::hint::setting;

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
    pub account: Option<UserIdentity>,
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

    /// The folder nearest above a path of the tree that belongs to a user or group which the user
    /// namespace of this process does not map (user_namespaces(7)).
    pub(crate) fn unmapped_above(&self, path: &str) -> Option<PathBuf> {
        let of = |file| setting(file).unwrap_or(OVERFLOW);
        let user = of("/proc/sys/kernel/overflowuid");
        let group = of("/proc/sys/kernel/overflowgid");
        let is_unmapped = |folder: &PathBuf| {
            let known = fs::symlink_metadata(folder);
            known.is_ok_and(|it| u64::from(it.uid()) == user || u64::from(it.gid()) == group)
        };
        let inside = Path::new(path.trim_start_matches('/'));
        let above = inside.ancestors().skip(1);
        let all = above
            .flat_map(|part| self.lower.iter().map(move |lower| self.base.join(lower).join(part)));
        all.into_iter().find(is_unmapped)
    }

    /// overlayfs's own.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.place.join("work")
    }
}

/// The number that stands for all that is not mapped, where the kernel does not say another one.
const OVERFLOW: u64 = 65_534;
