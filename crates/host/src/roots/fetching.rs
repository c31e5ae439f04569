//! Images that registries have, before a run's process leaves the machine's network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use windtunnel_image::{RegistryImageCache, fetched_place};
use windtunnel_model::Plan;
use windtunnel_model::plan::{ImageLocation, Node, Platform, RootSource};
use windtunnel_registry::{ImageReference, Progress, RegistryError};

use super::emulator;
use super::error::RootError;
use super::{cache_folder, is_one_of};
use crate::observer::{Observer, ObserverNotice};

/// Makes sure that the images of the nodes that are `here` are on this machine, which can execute them: a part of a run over
/// several machines fetches what the machine that leads has looked at, by its digest.
pub(crate) fn fetch(
    plan: &Plan,
    here: Option<&[bool]>,
    observer: &dyn Observer,
) -> Result<(), RootError> {
    let own = || plan.nodes.iter().enumerate().filter(|(id, _)| is_one_of(here, *id));
    let foreign = emulator::foreign(own().map(|(_, node)| node));
    for (_, node) in own() {
        let Some(root) = &node.root else { continue };
        place_of(&root.source)?;
        if let Some(why) = root.source.platform().and_then(|platform| foreign.get(platform)) {
            let (node, source) = (node.name.clone(), Box::new(why.clone()));
            return Err(RootError::Foreign { node, source });
        }
    }
    let mut progress = |done, total| observer.notice(&ObserverNotice::Fetching { done, total });
    fetch_for(own().map(|(_, node)| node), &mut progress)?;
    Ok(())
}

/// Fetches the images of nodes that are in registries and not in the cache, each once for each platform.
/// The cache keeps them as long as this process is there. By each reference, the one with the digest of
/// its manifest or index, which it leads to now, for all platforms.
///
/// # Errors
/// If one cannot be fetched, or no folder is known for the cache.
pub fn fetch_for<'p>(
    nodes: impl Iterator<Item = &'p Node>,
    progress: &mut Progress<'_>,
) -> Result<BTreeMap<String, ImageReference>, RootError> {
    let mut pinned = BTreeMap::new();
    let mut done = BTreeSet::new();
    for node in nodes {
        let Some(source) = node.root.as_ref().map(|root| &root.source) else { continue };
        let Some(text) = source.reference() else { continue };
        let platform = source.platform();
        if !done.insert((text, platform)) {
            continue;
        }
        let reference = match pinned.get(text) {
            Some(reference) => Ok(ImageReference::clone(reference)),
            None => ImageReference::parse(text).map_err(registry),
        };
        let fetched = reference.and_then(|reference| fetched(&reference, platform, progress));
        let fetched = fetched
            .map_err(|error| RootError::Fetch { node: node.name.clone(), source: error.into() })?;
        pinned.insert(text.to_owned(), fetched);
    }
    Ok(pinned)
}

fn fetched(
    reference: &ImageReference,
    platform: Option<&Platform>,
    progress: &mut Progress<'_>,
) -> Result<ImageReference, RootError> {
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let cache = RegistryImageCache::open(&cache)?;
    let fetched = windtunnel_registry::fetch(reference, platform, &cache, progress);
    let (digest, _) = fetched.map_err(registry)?;
    // Its lock is to be held as long as this process and the nodes are there.
    std::mem::forget(cache);
    Ok(reference.pinned(&digest))
}

fn registry(error: RegistryError) -> RootError {
    RootError::Registry { source: error.into() }
}

/// The file or folder of an image: of one from a registry, that of its layout in the cache.
///
/// # Errors
/// If no folder is known for the cache, or the reference names no digest.
pub fn place_of(source: &RootSource) -> Result<PathBuf, RootError> {
    let reference = match source {
        RootSource::Folder(path)
        | RootSource::Image { location: ImageLocation::Path(path), .. } => return Ok(path.into()),
        RootSource::Image { location: ImageLocation::Registry(reference), .. } => reference,
    };
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let reference = ImageReference::parse(reference).map_err(registry)?;
    let unpinned = || RootError::Unpinned { reference: reference.to_string() };
    Ok(fetched_place(&cache, reference.digest().ok_or_else(unpinned)?))
}
