//! File systems of nodes' own.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::platform::Platform;

/// A file system of a node's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFilesystem {
    pub source: RootSource,
    /// The image's variables, which programs have on top of nothing else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where programs start that name no folder, in the node; `None`: `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The user of [`ProgramUser::Image`](super::ProgramUser), `999`, `redis` or `redis:redis` in terms of its own files:
    /// that of the file, or else of the image; `None`: root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Files from outside of it, in the order in which they are mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Whether what programs write there stays in the run folder.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keep: bool,
}

/// Where the files are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RootSource {
    /// A folder of the machine, absolute.
    Folder(String),
    /// An image.
    Image {
        #[serde(rename = "path")]
        location: ImageLocation,
        /// Which of several in a file, by its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Which of its platforms: what the file says, and once the image has been looked at what it is
        /// for. `None`: the machine's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<Platform>,
        /// `sha256:` and 64 hexadecimal digits of its configuration, which names its layers by
        /// their digests; `None`: the image has not been looked at.
        digest: Option<String>,
        /// Words for its entry point in place of its own; only until it has been looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Vec<String>>,
    },
}

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ImageLocation {
    /// Its file or folder on the machine, absolute.
    Path(String),
    /// In a registry, by its reference there, which ends with the digest of its manifest once the
    /// image has been looked at. Files have `oci://` before it.
    Registry(String),
}

/// Files that a node has from outside of its own file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub source: VolumeSource,
    /// Where they are in the node, absolute, without `..`.
    pub target: String,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub read_only: bool,
}

/// Where they are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeSource {
    /// A file or folder of the machine, absolute.
    Path(String),
    /// A folder of the run, which all nodes that name it share.
    Named(String),
}

impl RootSource {
    /// What names an image in a registry, without `oci://`; `None`: it is a folder, or in a file.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        match self {
            RootSource::Folder(_) => None,
            RootSource::Image { location: ImageLocation::Path(_), .. } => None,
            RootSource::Image { location: ImageLocation::Registry(reference), .. } => {
                Some(reference)
            }
        }
    }

    /// What an image is for, if that is known.
    #[must_use]
    pub fn platform(&self) -> Option<&Platform> {
        match self {
            RootSource::Folder(_) => None,
            RootSource::Image { platform, .. } => platform.as_ref(),
        }
    }
}

impl From<String> for ImageLocation {
    fn from(text: String) -> Self {
        match text.strip_prefix(REGISTRY) {
            Some(reference) => ImageLocation::Registry(reference.to_owned()),
            None => ImageLocation::Path(text),
        }
    }
}

impl From<ImageLocation> for String {
    fn from(location: ImageLocation) -> Self {
        location.to_string()
    }
}

impl fmt::Display for ImageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageLocation::Path(path) => f.write_str(path),
            ImageLocation::Registry(reference) => write!(f, "{REGISTRY}{reference}"),
        }
    }
}

/// What is before references to registries in files.
const REGISTRY: &str = "oci://";

impl NodeFilesystem {
    /// Whether it is an image that has not been looked at yet.
    #[must_use]
    pub fn is_unread_image(&self) -> bool {
        matches!(&self.source, RootSource::Image { digest: None, .. })
    }

    /// Whether the image's programs are root: it names no other user.
    #[must_use]
    pub fn is_for_root(&self) -> bool {
        let user = self.user.as_deref().unwrap_or("");
        matches!(user.split(':').next(), None | Some("" | "0" | "root"))
    }

    /// Whether `text` may name a user of the files, and perhaps a group: `999`, `redis:redis`.
    #[must_use]
    pub fn is_account(text: &str) -> bool {
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-$@".contains(&byte);
        let is_name = |part: &str| !part.is_empty() && part.bytes().all(of_name);
        let (user, group) = text.split_once(':').map_or((text, None), |(u, g)| (u, Some(g)));
        text.len() <= 200 && is_name(user) && group.is_none_or(is_name)
    }

    /// Whether a volume may be called so: as a container's, `[a-zA-Z0-9][a-zA-Z0-9_.-]*`.
    #[must_use]
    pub fn is_volume_name(name: &str) -> bool {
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        name.len() <= 200
            && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
            && name.bytes().all(of_name)
    }

    /// Whether something can be mounted there: an absolute path below the root, without `..`.
    #[must_use]
    pub fn is_target(path: &str) -> bool {
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
        path.starts_with('/')
            && !path.contains('\0')
            && parts.peek().is_some()
            && parts.all(|part| part != "..")
    }
}
