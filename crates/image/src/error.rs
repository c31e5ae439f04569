//! Why an image cannot be used.

use std::io;
use std::path::PathBuf;

use windtunnel_model::plan::Platform;

use crate::digest::Sha256Digest;

/// Why an image could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    #[error("cannot read the image {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It has none of the files by which an image is known.
    #[error("{} is not an image: {why}", path.display())]
    NotAnImage { path: PathBuf, why: String },
    /// One of its documents does not say what it should.
    #[error("the image {}: {document} {why}", path.display())]
    Document { path: PathBuf, document: String, why: String },
    /// One of its files has another digest than it is named by.
    #[error("the image {}: {what} should have the digest {expected}, and has {found}", path.display())]
    Digest { path: PathBuf, what: String, expected: Sha256Digest, found: Sha256Digest },
    /// It has several images, and which is meant was not said.
    #[error("{} has {} images", path.display(), names.len())]
    Several { path: PathBuf, names: Vec<String> },
    /// None has the name that was asked for.
    #[error("{} has no image `{name}`", path.display())]
    NoSuchName { path: PathBuf, name: String, names: Vec<String> },
    /// None is for the platform that the file names, or for this machine's.
    #[error("{} has no image for {wanted}, only for {}", path.display(), list(found))]
    Platform { path: PathBuf, wanted: Box<Platform>, found: Vec<Platform>, is_own: bool },
}

impl ImageError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let shown = |names: &[String]| names.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        match self {
            ImageError::NotAnImage { .. } => Some(
                "an image is an OCI layout (a folder with `oci-layout`), a tar file of one, or the file that \
                 `docker save` or `podman save` writes"
                    .into(),
            ),
            ImageError::Several { path, names } => {
                Some(format!("write `{}#NAME` with one of: {}", path.display(), shown(names)))
            }
            ImageError::NoSuchName { names, .. } => Some(format!("there are: {}", shown(names))),
            ImageError::Digest { .. } => Some("it is damaged: make or copy it again".into()),
            ImageError::Platform { found, is_own: true, .. } => {
                let other = found.iter().find(|it| it.to_string().parse::<Platform>().is_ok())?;
                Some(format!("`platform: {other}` runs its programs by an emulator, if there is one"))
            }
            ImageError::Read { .. } | ImageError::Document { .. } | ImageError::Platform { .. } => None,
        }
    }
}

fn list(platforms: &[Platform]) -> String {
    platforms.iter().map(Platform::to_string).collect::<Vec<_>>().join(", ")
}

/// Why a layer could not be unpacked. Nothing of it is left in the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    #[error("cannot read layer {layer}")]
    Read { layer: Sha256Digest, source: io::Error },
    /// One of its entries is not for any file system, or for none of ours.
    #[error("layer {layer}: `{entry}` {why}")]
    Entry { layer: Sha256Digest, entry: String, why: String },
    /// One of its entries could not be written.
    #[error("layer {layer}: cannot make `{entry}`")]
    Write { layer: Sha256Digest, entry: String, source: io::Error },
    /// It is not what its image names.
    #[error("layer {expected} has the digest {found}{}", if *stored { " as it is stored" } else { "" })]
    Digest { expected: Sha256Digest, found: Sha256Digest, stored: bool },
    /// The cache's own files.
    #[error("cannot {action} {} in the cache of images", path.display())]
    Cache { action: &'static str, path: PathBuf, source: io::Error },
}

impl UnpackError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            UnpackError::Digest { .. } => Some("the image is damaged: make or copy it again".into()),
            UnpackError::Cache { .. } => {
                Some("WINDTUNNEL_IMAGE_CACHE names another folder for it".into())
            }
            UnpackError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "the cache's disk is full: `windtunnel images --clear` frees what no run uses, and \
                 WINDTUNNEL_IMAGE_CACHE names another folder"
                    .into(),
            ),
            _ => None,
        }
    }
}
