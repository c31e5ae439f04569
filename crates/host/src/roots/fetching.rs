//! Images that registries have, before a run's process leaves the machine's network.

use std::collections::BTreeMap;
use std::path::PathBuf;

use windtunnel_image::{Fetched, fetched_place};
use windtunnel_model::Plan;
use windtunnel_model::plan::{Node, RootSource};
use windtunnel_registry::{Progress, Reference, RegistryError};

use super::error::RootError;
use super::{cache_folder, is_one_of};
use crate::observer::{Notice, Observer};

/// Makes sure that the images of the nodes that are `here` are on this machine: a part of a run over
/// several machines fetches what the machine that leads has looked at, by its digest.
pub(crate) fn fetch(
    plan: &Plan,
    here: Option<&[bool]>,
    observer: &dyn Observer,
) -> Result<(), RootError> {
    let own = || plan.nodes.iter().enumerate().filter(|(id, _)| is_one_of(here, *id));
    for root in own().filter_map(|(_, node)| node.root.as_ref()) {
        place_of(&root.source)?;
    }
    let mut progress = |done, total| observer.notice(&Notice::Fetching { done, total });
    fetch_for(own().map(|(_, node)| node), &mut progress)?;
    Ok(())
}

/// Fetches the images of nodes that are in registries and not in the cache, each once. The cache keeps
/// them as long as this process is there. By each reference, the one with the digest of its manifest or
/// index, which it leads to now.
///
/// # Errors
/// If one cannot be fetched, or no folder is known for the cache.
pub fn fetch_for<'p>(
    nodes: impl Iterator<Item = &'p Node>,
    progress: &mut Progress<'_>,
) -> Result<BTreeMap<String, Reference>, RootError> {
    let mut pinned = BTreeMap::new();
    for node in nodes {
        let Some(text) = node.root.as_ref().and_then(|root| root.source.reference()) else {
            continue;
        };
        if !pinned.contains_key(text) {
            let fetched = fetched(text, progress).map_err(|error| RootError::Fetch {
                node: node.name.clone(),
                source: error.into(),
            })?;
            pinned.insert(text.to_owned(), fetched);
        }
    }
    Ok(pinned)
}

fn fetched(reference: &str, progress: &mut Progress<'_>) -> Result<Reference, RootError> {
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let reference = Reference::parse(reference).map_err(registry)?;
    let cache = Fetched::open(&cache)?;
    let (digest, _) = windtunnel_registry::fetch(&reference, &cache, progress).map_err(registry)?;
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
    let (RootSource::Folder(path) | RootSource::Image { path, .. }) = source;
    let Some(reference) = source.reference() else { return Ok(path.into()) };
    let cache = cache_folder().ok_or(RootError::NoCache)?;
    let reference = Reference::parse(reference).map_err(registry)?;
    let unpinned = || RootError::Unpinned { reference: reference.to_string() };
    Ok(fetched_place(&cache, reference.digest().ok_or_else(unpinned)?))
}
