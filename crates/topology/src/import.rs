//! Networks from other tools' files.

mod attach;
mod compose;
mod containerlab;
mod csv;
mod decimal;
mod delay;
mod document;
mod error;
mod format;
mod geography;
mod gml;
mod graph;
mod graphml;
mod input;
mod kollaps;
mod mapping;
mod modelnet;
mod names;
mod options;
mod pair;
mod shadow;
mod units;
mod xml;
mod zoo;

use windtunnel_scenario::ScenarioMistake;

use crate::topology::{ConversionRemark, Topology};
use input::ImportSourceText;

pub use document::{ImportContext, ImportDocument, LARGEST_IMPORT};
pub use error::ImportError;
pub use format::TopologyFormat;
pub use options::ImportOptions;

/// Reads another tool's file, and nothing beside it.
///
/// # Errors
/// The first mistake in the file, with line and column; or options that do not fit it.
pub fn import(
    original: &ImportDocument<'_>,
    options: &ImportOptions,
) -> Result<(TopologyFormat, Topology), ImportError> {
    let read = |_: &str| Err("files beside this one are not read".to_owned());
    import_with(original, options, &ImportContext { over: &[], read: &read })
}

/// Reads another tool's file, with those that belong to it.
///
/// # Errors
/// As [`import()`]; and files for a format that has one only.
pub fn import_with(
    original: &ImportDocument<'_>,
    options: &ImportOptions,
    surroundings: &ImportContext<'_>,
) -> Result<(TopologyFormat, Topology), ImportError> {
    let input = ImportSourceText::new(original)?;
    let format = match options.format {
        Some(format) => format,
        None => detect(&input)?,
    };
    if format != TopologyFormat::Compose && !surroundings.over.is_empty() {
        return Err(ImportError::OneFile { format: format.title() });
    }
    let mut topology = match format {
        TopologyFormat::GraphMl => zoo::convert(&input, &graphml::read(&input)?, options)?,
        TopologyFormat::Gml => zoo::convert(&input, &gml::read(&input)?, options)?,
        TopologyFormat::Shadow => shadow::convert(&input, &gml::read(&input)?, options)?,
        TopologyFormat::ModelNet => modelnet::convert(&input, options)?,
        TopologyFormat::Kollaps => kollaps::convert(&input, options)?,
        TopologyFormat::Containerlab => containerlab::convert(&input, options)?,
        TopologyFormat::Compose => compose::convert(&input, options, surroundings)?,
        TopologyFormat::Csv => zoo::convert(&input, &csv::read(&input)?, options)?,
    };
    let file = original.name.rsplit('/').next().unwrap_or(original.name);
    let origin = format!("Imported from {file} ({}) by `windtunnel import`.", format.title());
    topology.about.insert(0, origin);
    if topology.name.is_empty() {
        topology.name = names::experiment(original.default_name);
    }
    if input.latin1 {
        let text = "The text is not UTF-8: it was read as ISO-8859-1.";
        topology.notes.assumed.push(ConversionRemark { text: text.to_owned(), items: Vec::new() });
    }
    attach::finish(&mut topology, options)?;
    if let Some(bytes) = format.overhead() {
        topology.count_overhead(bytes);
    }
    Ok((format, topology))
}

/// The format, from the content.
fn detect(input: &ImportSourceText<'_>) -> Result<TopologyFormat, ScenarioMistake> {
    let text = input.text.trim_start();
    if text.starts_with('<') {
        let document = xml::parse(input)?;
        let root = document.root_element();
        return match root.tag_name().name() {
            "graphml" => Ok(TopologyFormat::GraphMl),
            "topology" => Ok(TopologyFormat::ModelNet),
            "experiment" => Ok(TopologyFormat::Kollaps),
            other => {
                let message =
                    format!("`<{}>` begins no format that is known", input::shorten(other));
                let hint = "GraphML begins with <graphml>, ModelNet with <topology>, Kollaps with <experiment>";
                Err(input.mistake_with_hint(root.range().start, 1, message, hint))
            }
        };
    }
    let has_key = |key: &str| {
        input
            .text
            .lines()
            .any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')))
    };
    if has_key("network") && (has_key("hosts") || has_key("general")) {
        let message =
            "this is a configuration of Shadow, whose network graph alone can be imported";
        let hint = "import the file that `network.graph.file` names, or put the text of `network.graph.inline` \
                    into a file of its own";
        return Err(input.mistake_with_hint(0, 1, message, hint));
    }
    if has_key("topology") {
        return Ok(TopologyFormat::Containerlab);
    }
    if has_key("services") || has_key("include") {
        return Ok(TopologyFormat::Compose);
    }
    let is_gml = gml::looks_like_gml(&input.text);
    if is_gml {
        let graph = gml::read(input)?;
        return Ok(if shadow::is_shadow(&graph) {
            TopologyFormat::Shadow
        } else {
            TopologyFormat::Gml
        });
    }
    if csv::looks_like_csv(input) {
        return Ok(TopologyFormat::Csv);
    }
    let message = "this is not a known format";
    let hint = "GraphML, GML, Shadow's GML, ModelNet XML, Kollaps XML, containerlab YAML, compose \
                YAML and CSV of edges are read; --format says which it is meant to be";
    Err(input.mistake_with_hint(0, 1, message, hint))
}

/// Feeds arbitrary bytes to every importer; none must panic, and what is imported must be writable.
#[doc(hidden)]
pub fn fuzz_one(bytes: &[u8]) {
    const FORMATS: [TopologyFormat; 8] = [
        TopologyFormat::GraphMl,
        TopologyFormat::Gml,
        TopologyFormat::Shadow,
        TopologyFormat::ModelNet,
        TopologyFormat::Kollaps,
        TopologyFormat::Containerlab,
        TopologyFormat::Compose,
        TopologyFormat::Csv,
    ];
    let original = ImportDocument { name: "fuzz", text: bytes, default_name: "fuzz" };
    for format in std::iter::once(None).chain(FORMATS.map(Some)) {
        let run = (bytes.len() % 2 == 1).then(|| "true".to_owned());
        let options = ImportOptions { format, run, ..ImportOptions::default() };
        match import(&original, &options) {
            Ok((_, topology)) => {
                let text = topology.to_yaml();
                let source = windtunnel_scenario::ScenarioSource {
                    name: "fuzz.yaml",
                    text: text.as_bytes(),
                    default_name: "fuzz",
                    base_dir: "/base",
                };
                if let Err(errors) = windtunnel_scenario::load(&source) {
                    panic!("{errors}\nin\n{text}");
                }
            }
            Err(error) => {
                let _ = error.to_string();
            }
        }
    }
}
