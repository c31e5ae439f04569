//! `images`: the cache of unpacked images.

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_host::roots::{RootError, cache_folder};
use windtunnel_image::{Cache, Removed};

use crate::arguments::Format;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::render::quantity::{bytes, count};
use crate::render::table::{Align, Table};
use crate::verb::Outcome;

/// List the layers of images that are unpacked in the cache, or remove them
///
/// A run unpacks the layers of its nodes' images once, into the folder that WINDTUNNEL_IMAGE_CACHE
/// names, or windtunnel/images in $XDG_CACHE_HOME or ~/.cache. Layers are shared by images, and named
/// by the digest of their content.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Remove every layer that no run uses
    #[arg(long, env = "WINDTUNNEL_CLEAR", value_parser = FalseyValueParser::new())]
    clear: bool,
    #[command(flatten)]
    format: Format,
}

/// What is there, or was; for `--json`.
#[derive(Debug, Serialize)]
struct Shown {
    folder: String,
    layers: Vec<ShownLayer>,
    removed: Option<ShownRemoved>,
}

#[derive(Debug, Serialize)]
struct ShownLayer {
    digest: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct ShownRemoved {
    layers: u64,
    bytes: u64,
    in_use: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let folder = cache_folder().ok_or(RootError::NoCache).map_err(|error| failure(&error))?;
    if folder.is_dir() {
        // Files of subordinate identities can be seen and removed in a user namespace only.
        windtunnel_node::enter_for_files().map_err(|error| {
            let hint = error.hint();
            let failure = Failure::caused(Exit::Machine, error);
            hint.into_iter().fold(failure, Failure::hint)
        })?;
    }
    let mut shown =
        Shown { folder: folder.display().to_string(), layers: Vec::new(), removed: None };
    let mut all = Removed::default();
    for cache in Cache::every(&folder).map_err(|error| failure(&RootError::Cache(error)))? {
        if arguments.clear {
            let removed = cache.clear().map_err(|error| failure(&RootError::Cache(error)))?;
            all.layers += removed.layers;
            all.bytes += removed.bytes;
            all.in_use += removed.in_use;
        }
        let layers = cache.layers().map_err(|error| failure(&RootError::Cache(error)))?;
        let layer = |(digest, bytes)| ShownLayer { digest, bytes };
        shown.layers.extend(layers.into_iter().map(layer));
    }
    if arguments.clear {
        let Removed { layers, bytes, in_use, .. } = all;
        shown.removed = Some(ShownRemoved { layers, bytes, in_use });
    }
    match arguments.format.json {
        true => output::json(&shown)?,
        false => output::data(&text(&shown))?,
    }
    Ok(Exit::Fine.code())
}

fn text(shown: &Shown) -> String {
    let layers = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "layer");
    if let Some(removed) = &shown.removed {
        let kept = match removed.in_use {
            0 => String::new(),
            number => format!("; {} in use", layers(number)),
        };
        let (removed, freed) = (layers(removed.layers), bytes(removed.bytes));
        return format!("{removed} removed from {} ({freed}){kept}\n", shown.folder);
    }
    let mut table = Table::new(&[("layer", Align::Left), ("size", Align::Right)]);
    for layer in &shown.layers {
        table.row([layer.digest.clone(), bytes(layer.bytes)]);
    }
    let sum = shown.layers.iter().map(|layer| layer.bytes).sum();
    let number = u64::try_from(shown.layers.len()).unwrap_or(u64::MAX);
    let last = format!("{} in {} ({})", layers(number), shown.folder, bytes(sum));
    let head = if shown.layers.is_empty() { Vec::new() } else { table.lines() };
    [head, vec![last, String::new()]].concat().join("\n")
}

fn failure(error: &RootError) -> Failure {
    let text = windtunnel_control::part::with_causes(error);
    let failure = Failure::new(Exit::Machine, text);
    error.hint().into_iter().fold(failure, Failure::hint)
}
