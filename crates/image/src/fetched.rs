//! Images that registries gave, in the cache: layouts that share their blobs.
//!
//! | below `registry/` of the cache's folder | |
//! | --- | --- |
//! | `blobs/sha256/DIGEST` | a document or a layer, as it is stored; there when it is whole and checked |
//! | `blobs/sha256/DIGEST.partial` | one that is being fetched, or was when something interrupted that |
//! | `DIGEST/` | an OCI layout: the first 32 digits of the digest of its manifest or index |
//! | `fetch.lock` | locked by the process that fetches |
//! | `use.lock` | locked, shared, by processes whose nodes are of these images |

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::Deserialize;

use crate::cache::{ImageCacheClearOutcome, bytes, lock, remove};
use crate::digest::Sha256Digest;
use crate::document::{INDEX_TYPES, ImageIndex};
use crate::error::UnpackError;

/// The images from registries in a cache. As long as this is there, they stay.
#[derive(Debug)]
pub struct RegistryImageCache {
    folder: PathBuf,
    _using: File,
}

/// One of them, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedImage {
    /// The digest of its manifest or index.
    pub digest: Sha256Digest,
    /// The reference by which it was fetched first.
    pub reference: String,
}

impl RegistryImageCache {
    /// Opens those of the cache in `folder`, which is made if there is none.
    ///
    /// # Errors
    /// If folders or locks cannot be made.
    pub fn open(cache: &Path) -> Result<RegistryImageCache, UnpackError> {
        let folder = cache.join(FOLDER);
        fs::create_dir_all(folder.join(BLOBS))
            .and_then(|()| fs::set_permissions(cache, Permissions::from_mode(0o700)))
            .map_err(failed("make", &folder))?;
        let using = locked(&folder, "use.lock", FlockOperation::LockShared)?;
        Ok(RegistryImageCache { folder, _using: using })
    }

    /// Where an image is or will be, by the digest of its manifest or index.
    #[must_use]
    pub fn place(&self, root: &Sha256Digest) -> PathBuf {
        place(&self.folder, root)
    }

    /// Where a blob is when it is whole.
    #[must_use]
    pub fn blob(&self, digest: &Sha256Digest) -> PathBuf {
        self.folder.join(BLOBS).join(digest.hex())
    }

    /// Waits until no other process fetches. As long as the file is open, none begins to.
    ///
    /// # Errors
    /// If the lock cannot be taken.
    pub fn alone(&self) -> Result<File, UnpackError> {
        locked(&self.folder, "fetch.lock", FlockOperation::LockExclusive)
    }

    /// Makes the layout of an image of which the manifest or index is known; its folder. The caller
    /// has checked the digest, and is [alone](Self::alone).
    ///
    /// # Errors
    /// If its files cannot be written.
    pub fn begin(
        &self,
        root: &Sha256Digest,
        document: &[u8],
        reference: &str,
    ) -> Result<PathBuf, UnpackError> {
        let place = self.place(root);
        let entry = serde_json::json!({
            "mediaType": media_type(document),
            "digest": root.to_string(),
            "size": document.len(),
            "annotations": { REFERENCE: reference },
        });
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [entry] });
        let write = || {
            write_whole(&self.blob(root), document)?;
            remove(&place)?;
            fs::create_dir(&place)?;
            symlink("../blobs", place.join("blobs"))?;
            fs::write(place.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
            write_whole(&place.join("index.json"), index.to_string().as_bytes())
        };
        write().map_err(failed("write", &place))?;
        Ok(place)
    }

    /// Keeps a document whose digest has been checked.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, digest: &Sha256Digest, document: &[u8]) -> Result<(), UnpackError> {
        let path = self.blob(digest);
        write_whole(&path, document).map_err(failed("write", &path))
    }

    /// The images that a cache has, by reference.
    ///
    /// # Errors
    /// If its folder cannot be read.
    pub fn list(cache: &Path) -> Result<Vec<FetchedImage>, UnpackError> {
        let folder = cache.join(FOLDER);
        let mut found: Vec<FetchedImage> =
            entries(&folder)?.iter().filter_map(|path| read(path)).collect();
        found.sort_by(|one, other| one.reference.cmp(&other.reference));
        Ok(found)
    }

    /// Removes all of a cache's, unless a process fetches or uses some.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn clear(cache: &Path) -> Result<ImageCacheClearOutcome, UnpackError> {
        let folder = cache.join(FOLDER);
        let mut removed = ImageCacheClearOutcome::default();
        let images = entries(&folder)?.iter().filter_map(|path| read(path)).count();
        let images = u64::try_from(images).unwrap_or(u64::MAX);
        if !folder.is_dir() {
            return Ok(removed);
        }
        let locks = [lock_file(&folder, "fetch.lock")?, lock_file(&folder, "use.lock")?];
        let alone = FlockOperation::NonBlockingLockExclusive;
        if locks.iter().any(|lock| rustix::fs::flock(lock, alone).is_err()) {
            removed.in_use = images;
            return Ok(removed);
        }
        removed.bytes = bytes(&folder);
        removed.layers = images;
        for path in entries(&folder)? {
            remove(&path).map_err(failed("remove", &path))?;
        }
        Ok(removed)
    }
}

/// Where the image with this manifest or index is, in a cache.
#[must_use]
pub fn fetched_place(cache: &Path, root: &Sha256Digest) -> PathBuf {
    place(&cache.join(FOLDER), root)
}

fn place(folder: &Path, root: &Sha256Digest) -> PathBuf {
    folder.join(&root.hex()[..32])
}

/// The folders in it.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, UnpackError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("read", folder))?,
    };
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_dir()).collect())
}

fn read(layout: &Path) -> Option<FetchedImage> {
    let index: ImageIndex =
        serde_json::from_slice(&fs::read(layout.join("index.json")).ok()?).ok()?;
    let entry = index.manifests.first()?;
    let reference = entry.annotations.get(REFERENCE)?.clone();
    Some(FetchedImage { digest: Sha256Digest::parse(&entry.digest)?, reference })
}

/// What a manifest or index says it is; Docker's and OCI's differ in nothing that matters here.
fn media_type(document: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        media_type: Option<String>,
        manifests: Option<serde::de::IgnoredAny>,
    }
    let said: Option<Said> = serde_json::from_slice(document).ok();
    let is_index = said.as_ref().is_some_and(|said| said.manifests.is_some());
    let default = if is_index { INDEX_TYPES[0] } else { MANIFEST_TYPE };
    said.and_then(|said| said.media_type).unwrap_or_else(|| default.to_owned())
}

/// A file is whole if its name is there, also after a power failure.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    let mut file = File::create(&partial)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    fs::rename(&partial, path)
}

fn locked(folder: &Path, name: &str, how: FlockOperation) -> Result<File, UnpackError> {
    let file = lock_file(folder, name)?;
    lock(&file, how).map_err(failed("lock", &folder.join(name)))?;
    Ok(file)
}

fn lock_file(folder: &Path, name: &str) -> Result<File, UnpackError> {
    let path = folder.join(name);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    file.map_err(failed("make", &path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> UnpackError {
    let path = path.to_owned();
    move |source| UnpackError::Cache { action, path, source }
}

/// Below the cache's folder, beside the folders of unpacked layers.
pub(crate) const FOLDER: &str = "registry";
const BLOBS: &str = "blobs/sha256";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Source: OCI Image Specification, annotations.md.
const REFERENCE: &str = "org.opencontainers.image.ref.name";

#[cfg(test)]
mod tests;
