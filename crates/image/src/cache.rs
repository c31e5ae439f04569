//! Layers by their digests, each unpacked once.
//!
//! | below the cache's folder | |
//! | --- | --- |
//! | `IDS/DIGEST/` | a layer: the first 32 digits of the digest of it and those below it ([`ImageLayer::chain`]) |
//! | `IDS/DIGEST.json` | what of it was left out |
//! | `IDS/DIGEST.lock` | locked: exclusively by the process that unpacks it, shared by runs that use it |
//! | `IDS/DIGEST.partial/` | a layer that is being unpacked, or was when something interrupted that |
//!
//! `IDS` says which owners files have. The folder can be entered by its owner only: a layer may have
//! programs that give rights (setuid).

use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use rustix::fs::FlockOperation;

use crate::digest::HashingReader;
use crate::error::UnpackError;
use crate::ids::ImageOwnerMapping;
use crate::image::{Image, ImageLayer};
use crate::unpack::{EntryError, LeftOut, unpack};

/// A folder of unpacked layers.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    ids: ImageOwnerMapping,
}

/// An unpacked layer. As long as this is there, it stays.
#[derive(Debug)]
pub struct CachedImageLayer {
    pub folder: PathBuf,
    pub left_out: LeftOut,
    /// Whether it was unpacked now.
    pub is_new: bool,
    _lock: File,
}

/// What [`Cache::clear`] has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageCacheClearOutcome {
    pub layers: u64,
    /// Bytes on the disk that are free now.
    pub bytes: u64,
    /// Layers that runs use: they stay.
    pub in_use: u64,
}

impl Cache {
    /// Opens a cache, for files with these owners, and makes it if there is none.
    ///
    /// # Errors
    /// If its folders cannot be made.
    pub fn open(folder: &Path, ids: ImageOwnerMapping) -> Result<Cache, UnpackError> {
        let own = folder.join(ids.key());
        fs::create_dir_all(&own)
            .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
            .map_err(|source| UnpackError::Cache { action: "make", path: own.clone(), source })?;
        Ok(Cache { folder: own, ids })
    }

    /// The parts of a cache that are there, whatever owners their files have.
    ///
    /// # Errors
    /// If its folder cannot be read.
    pub fn every(folder: &Path) -> Result<Vec<Cache>, UnpackError> {
        let failed = |source| UnpackError::Cache { action: "read", path: folder.into(), source };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let folder = entry.map_err(failed)?.path();
            if folder.is_dir() && !folder.ends_with(crate::fetched::FOLDER) {
                found.push(Cache { folder, ids: ImageOwnerMapping::One });
            }
        }
        found.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(found)
    }

    /// The folder in which layers are folders with short names.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a layer is there.
    #[must_use]
    pub fn has(&self, layer: &ImageLayer) -> bool {
        self.folder.join(key(layer)).is_dir()
    }

    /// Makes sure that a layer is there: unpacks it, or waits until another process has. `below` are the
    /// folders of those below it, the topmost first. `progress` is called with bytes of the layer as it
    /// is stored, as they are read.
    ///
    /// # Errors
    /// What is wrong with the layer; nothing of it is left.
    pub fn layer(
        &self,
        image: &Image,
        layer: &ImageLayer,
        below: &[PathBuf],
        progress: &mut dyn FnMut(u64),
    ) -> Result<CachedImageLayer, UnpackError> {
        let folder = self.folder.join(key(layer));
        let lock = self.lock_file(layer)?;
        let mut is_new = false;
        self.lock(&lock, FlockOperation::LockShared)?;
        if !folder.is_dir() {
            // Between the two locks another process may unpack it, or clear the cache.
            self.lock(&lock, FlockOperation::LockExclusive)?;
            if !folder.is_dir() {
                self.unpack(image, layer, below, progress)?;
                is_new = true;
            }
            // Without a moment in between: the kernel converts it if no other process waits.
            self.lock(&lock, FlockOperation::LockShared)?;
            if !folder.is_dir() {
                return self.layer(image, layer, below, progress);
            }
        }
        let left_out = fs::read(folder.with_extension("json")).ok();
        let left_out = left_out.and_then(|text| serde_json::from_slice(&text).ok());
        let left_out = left_out.unwrap_or_default();
        Ok(CachedImageLayer { folder, left_out, is_new, _lock: lock })
    }

    fn unpack(
        &self,
        image: &Image,
        layer: &ImageLayer,
        below: &[PathBuf],
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), UnpackError> {
        let folder = &self.folder.join(key(layer));
        let partial = folder.with_extension("partial");
        let failed = |action| {
            let path = partial.clone();
            move |source| UnpackError::Cache { action, path, source }
        };
        remove(&partial).map_err(failed("remove"))?;
        fs::create_dir(&partial)
            .and_then(|()| fs::set_permissions(&partial, Permissions::from_mode(0o755)))
            .map_err(failed("make"))?;
        let unpacked = self.unpack_into(image, layer, &partial, below, progress);
        let unpacked = unpacked.and_then(|left_out| {
            let text = serde_json::to_vec(&left_out).map_err(io::Error::from);
            text.and_then(|text| fs::write(folder.with_extension("json"), text))
                // What is there after the name is there must be whole, also after a power failure.
                .and_then(|()| Ok(rustix::fs::syncfs(File::open(&partial)?)?))
                .and_then(|()| fs::rename(&partial, folder))
                .map_err(failed("finish"))
        });
        if unpacked.is_err() {
            // What is left is removed before the next attempt.
            let _ = remove(&partial);
        }
        unpacked
    }

    fn unpack_into(
        &self,
        image: &Image,
        layer: &ImageLayer,
        partial: &Path,
        below: &[PathBuf],
        progress: &mut dyn FnMut(u64),
    ) -> Result<LeftOut, UnpackError> {
        let read = |source| UnpackError::Read { layer: layer.id.clone(), source };
        let (file, _) = image.read(layer).map_err(read)?;
        let mut stored = HashingReader::new(ProgressReader { inner: file, progress });
        let mut content = HashingReader::new(
            decoder(BufReader::with_capacity(READ_BYTES, &mut stored)).map_err(read)?,
        );
        let left_out = unpack(&mut content, partial, below, &self.ids);
        let (digest, _) = match (content.finish(), &left_out) {
            (Err(error), Ok(_)) => return Err(read(error)),
            (Err(_), Err(_)) => return Err(entry_failure(layer, left_out)),
            (Ok(finished), _) => finished,
        };
        let (stored_digest, _) = stored.finish().map_err(read)?;
        if let Some(expected) = layer.stored.clone().filter(|it| *it != stored_digest) {
            return Err(UnpackError::Digest { expected, found: stored_digest, stored: true });
        }
        if digest != layer.id {
            let expected = layer.id.clone();
            return Err(UnpackError::Digest { expected, found: digest, stored: false });
        }
        left_out.map_err(|error| entry_failure(layer, Err(error)))
    }

    fn lock_file(&self, layer: &ImageLayer) -> Result<File, UnpackError> {
        let path = self.folder.join(key(layer)).with_extension("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        file.map_err(|source| UnpackError::Cache { action: "make", path, source })
    }

    fn lock(&self, file: &File, how: FlockOperation) -> Result<(), UnpackError> {
        let failed =
            |source| UnpackError::Cache { action: "lock", path: self.folder.clone(), source };
        lock(file, how).map_err(failed)
    }

    /// Removes the layers that no run uses, and what was interrupted.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn clear(&self) -> Result<ImageCacheClearOutcome, UnpackError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| UnpackError::Cache { action, path, source }
        };
        let mut removed = ImageCacheClearOutcome::default();
        for entry in fs::read_dir(&self.folder).map_err(failed("read", &self.folder))? {
            let path = entry.map_err(failed("read", &self.folder))?.path();
            if path.extension().is_none_or(|extension| extension != "lock") {
                continue;
            }
            let lock = File::open(&path).map_err(failed("open", &path))?;
            if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                removed.in_use += 1;
                continue;
            }
            let folder = path.with_extension("");
            for there in [folder.clone(), folder.with_extension("partial")] {
                if there.is_dir() {
                    removed.bytes += bytes(&there);
                    removed.layers += 1;
                }
                // Its name goes first, so that it is never there in part.
                let gone = folder.with_extension("partial");
                if there != gone && there.is_dir() {
                    remove(&gone)
                        .and_then(|()| fs::rename(&there, &gone))
                        .map_err(failed("remove", &there))?;
                }
                remove(&gone).map_err(failed("remove", &gone))?;
            }
            let _ = fs::remove_file(folder.with_extension("json"));
        }
        Ok(removed)
    }

    /// The layers that are there: names and bytes on the disk.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn layers(&self) -> Result<Vec<(String, u64)>, UnpackError> {
        let path = self.folder.clone();
        let failed = |source| UnpackError::Cache { action: "read", path: path.clone(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() && path.extension().is_none() {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.push((name, bytes(&path)));
            }
        }
        found.sort();
        Ok(found)
    }
}

fn entry_failure(layer: &ImageLayer, result: Result<LeftOut, EntryError>) -> UnpackError {
    let layer = layer.id.clone();
    match result {
        Err(EntryError::Refused(entry, why)) => UnpackError::Entry { layer, entry, why },
        Err(EntryError::Failed(entry, source)) => UnpackError::Write { layer, entry, source },
        Err(EntryError::Read(source)) => UnpackError::Read { layer, source },
        Ok(_) => UnpackError::Read { layer, source: io::ErrorKind::UnexpectedEof.into() },
    }
}

fn key(layer: &ImageLayer) -> &str {
    &layer.chain.hex()[..32]
}

struct ProgressReader<'a, R> {
    inner: R,
    progress: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.progress)(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(read)
    }
}

/// Uncompresses what is compressed: by its first bytes, because media types are wrong at times.
fn decoder<'a, R: Read + 'a>(mut stored: BufReader<R>) -> io::Result<Box<dyn Read + 'a>> {
    let beginning = io::BufRead::fill_buf(&mut stored)?;
    if beginning.starts_with(b"\x1f\x8b") {
        return Ok(Box::new(MultiGzDecoder::new(stored)));
    }
    if beginning.starts_with(b"\x28\xb5\x2f\xfd") {
        let decoder = ruzstd::decoding::StreamingDecoder::new(stored);
        return Ok(Box::new(decoder.map_err(io::Error::other)?));
    }
    if beginning.starts_with(b"BZh") || beginning.starts_with(b"\xfd7zXZ\0") {
        return Err(io::Error::other("it is compressed by bzip2 or xz, which OCI does not know"));
    }
    Ok(Box::new(stored))
}

/// Waits for a lock (flock(2)), through signals.
pub(crate) fn lock(file: &File, how: FlockOperation) -> io::Result<()> {
    loop {
        match rustix::fs::flock(file.as_fd(), how) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// What a folder takes on the disk.
pub(crate) fn bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let each = entries.flatten().filter_map(|entry| {
        let about = entry.metadata().ok()?;
        let below = if about.is_dir() { bytes(&entry.path()) } else { 0 };
        Some(about.blocks() * 512 / about.nlink().max(1) + below)
    });
    each.sum()
}

const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
