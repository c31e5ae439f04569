//! `images`: the cache of unpacked images.

use std::path::Path;

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_host::roots::{RootError, cache_folder};
use windtunnel_image::{
    Cache, FetchedImage, ImageCacheClearOutcome, RegistryImageCache, UnpackError,
};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::images::root_failure;
use crate::output;
use crate::render::quantity::{bytes, count};
use crate::render::table::{ColumnAlignment, TextTable};

/// List what the cache has of images, or remove it
///
/// A run unpacks the layers of its nodes' images once, into the folder that WINDTUNNEL_IMAGE_CACHE
/// names, or windtunnel/images in $XDG_CACHE_HOME or ~/.cache. Layers are shared by images, and named
/// by the digest of their content. Images from registries (`image: oci://...`) are kept there, too, as
/// they were fetched.
#[derive(Debug, clap::Args)]
pub(crate) struct ImagesArguments {
    /// Remove every layer that no run uses, and the images from registries if no run uses any
    #[arg(long, env = "WINDTUNNEL_CLEAR", value_parser = FalseyValueParser::new())]
    clear: bool,
    #[command(flatten)]
    format: OutputFormat,
}

/// What is there, or was; for `--json`.
#[derive(Debug, Serialize)]
struct ImageCacheListing {
    folder: String,
    /// From registries.
    images: Vec<ShownImage>,
    layers: Vec<ShownLayer>,
    removed: Option<ShownRemoved>,
}

#[derive(Debug, Serialize)]
struct ShownImage {
    reference: String,
    digest: String,
}

#[derive(Debug, Serialize)]
struct ShownLayer {
    digest: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct ShownRemoved {
    images: u64,
    layers: u64,
    bytes: u64,
    in_use: u64,
    images_in_use: u64,
}

pub(crate) fn run(arguments: &ImagesArguments) -> Outcome {
    let folder = cache_folder().ok_or(RootError::NoCache).map_err(|error| root_failure(&error))?;
    if folder.is_dir() {
        // Files of subordinate identities can be seen and removed in a user namespace only.
        windtunnel_node::enter_for_files().map_err(|error| {
            let hint = error.hint();
            let failure = VerbFailure::caused(ExitCategory::Machine, error);
            hint.into_iter().fold(failure, VerbFailure::hint)
        })?;
    }
    let shown = shown(&folder, arguments.clear).map_err(|error| root_failure(&error.into()))?;
    match arguments.format.json {
        true => output::json(&shown)?,
        false => output::data(&text(&shown))?,
    }
    Ok(ExitCategory::Fine.code())
}

/// What is in the cache, after it has been cleared where that is asked for.
fn shown(folder: &Path, clear: bool) -> Result<ImageCacheListing, UnpackError> {
    let (mut all, mut layers) = (ImageCacheClearOutcome::default(), Vec::new());
    let images =
        if clear { RegistryImageCache::clear(folder)? } else { ImageCacheClearOutcome::default() };
    for cache in Cache::every(folder)? {
        if clear {
            let removed = cache.clear()?;
            all.layers += removed.layers;
            all.bytes += removed.bytes;
            all.in_use += removed.in_use;
        }
        let layer = |(digest, bytes)| ShownLayer { digest, bytes };
        layers.extend(cache.layers()?.into_iter().map(layer));
    }
    let removed = clear.then(|| ShownRemoved {
        images: images.layers,
        layers: all.layers,
        bytes: all.bytes + images.bytes,
        in_use: all.in_use,
        images_in_use: images.in_use,
    });
    let image =
        |it: FetchedImage| ShownImage { reference: it.reference, digest: it.digest.to_string() };
    let images = RegistryImageCache::list(folder)?.into_iter().map(image).collect();
    Ok(ImageCacheListing { folder: folder.display().to_string(), images, layers, removed })
}

fn text(shown: &ImageCacheListing) -> String {
    let counted = |number: u64, noun| count(usize::try_from(number).unwrap_or(usize::MAX), noun);
    if let Some(removed) = &shown.removed {
        let kept: String = [("layer", removed.in_use), ("image", removed.images_in_use)]
            .iter()
            .filter(|(_, number)| *number > 0)
            .map(|(noun, number)| format!("; {} in use", counted(*number, noun)))
            .collect();
        let images = match removed.images {
            0 => String::new(),
            number => format!(" and {} from registries", counted(number, "image")),
        };
        let (removed, freed) = (counted(removed.layers, "layer"), bytes(removed.bytes));
        return format!("{removed}{images} removed from {} ({freed}){kept}\n", shown.folder);
    }
    let mut images =
        TextTable::new(&[("image", ColumnAlignment::Left), ("digest", ColumnAlignment::Left)]);
    for image in &shown.images {
        images.row([image.reference.clone(), image.digest.clone()]);
    }
    let mut table =
        TextTable::new(&[("layer", ColumnAlignment::Left), ("size", ColumnAlignment::Right)]);
    for layer in &shown.layers {
        table.row([layer.digest.clone(), bytes(layer.bytes)]);
    }
    let sum = shown.layers.iter().map(|layer| layer.bytes).sum();
    let number = u64::try_from(shown.layers.len()).unwrap_or(u64::MAX);
    let last = format!("{} in {} ({})", counted(number, "layer"), shown.folder, bytes(sum));
    let images = if shown.images.is_empty() { Vec::new() } else { images.lines() };
    let layers = if shown.layers.is_empty() { Vec::new() } else { table.lines() };
    [images, layers, vec![last, String::new()]].concat().join("\n")
}
