//! Images that registries have, before a run's process leaves the machine's network.

use std::collections::BTreeSet;
use std::path::PathBuf;

use windtunnel_image::{Digest, Fetched, fetched_place};
use windtunnel_model::Plan;
use windtunnel_model::plan::RootSource;
use windtunnel_registry::{Progress, Reference, RegistryError};

use super::error::RootError;
use super::{cache_folder, is_one_of};
use crate::observer::{Notice, Observer};

/// Makes sure that the images of the nodes that are `here` are on this machine: a part of a run over
/// several machines fetches what the machine that leads has looked at.
pub(crate) fn fetch(
    plan: &Plan,
    here: Option<&[bool]>,
    observer: &dyn Observer,
) -> Result<(), RootError> {
    let own = plan.nodes.iter().enumerate().filter(|(id, _)| is_one_of(here, *id));
    let mut known = BTreeSet::new();
    for (_, node) in own {
        let Some(root) = &node.root else { continue };
        let Some(text) = root.source.reference() else { continue };
        place_of(&root.source)?;
        if !known.insert(text) {
            continue;
        }
        let mut progress = |done, total| observer.notice(&Notice::Fetching { done, total });
        fetched(text, &mut progress)
            .map_err(|error| RootError::Fetch { node: node.name.clone(), source: error.into() })?;
    }
    Ok(())
}

/// Fetches an image that is not in the cache, which keeps it as long as this process is there. The
/// reference with the digest of the manifest or index, and the folder of its layout.
///
/// # Errors
/// If it cannot be fetched, or there is no place for it.
pub fn fetched(
    reference: &str,
    progress: &mut Progress<'_>,
) -> Result<(Reference, PathBuf), RootError> {
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let failed = |error: RegistryError| RootError::Registry { source: error.into() };
    let reference = Reference::parse(reference).map_err(failed)?;
    let cache = Fetched::open(&cache)?;
    let (digest, place) =
        windtunnel_registry::fetch(&reference, &cache, progress).map_err(failed)?;
    // Its lock is to be held as long as this process and the nodes are there.
    std::mem::forget(cache);
    Ok((reference.pinned(&digest), place))
}

/// The file or folder of an image: of one from a registry, that of its layout in the cache.
///
/// # Errors
/// If there is no cache, or the reference does not name an image by its digest.
pub fn place_of(source: &RootSource) -> Result<PathBuf, RootError> {
    let (RootSource::Folder(path) | RootSource::Image { path, .. }) = source;
    let Some(reference) = source.reference() else { return Ok(path.into()) };
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let digest = reference.rsplit_once('@').and_then(|(_, digest)| Digest::parse(digest));
    let digest = digest.ok_or_else(|| RootError::Unpinned { reference: reference.to_owned() })?;
    Ok(fetched_place(&cache, &digest))
}
