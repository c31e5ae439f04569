//! Networks from other tools' files.

mod attach;
mod compose;
mod containerlab;
mod csv;
mod decimal;
mod delay;
mod geography;
mod gml;
mod graph;
mod graphml;
mod input;
mod kollaps;
mod modelnet;
mod names;
mod pair;
mod shadow;
mod units;
mod xml;
mod zoo;

use std::collections::BTreeMap;

use windtunnel_model::Span;
use windtunnel_scenario::{ScenarioMistake, yaml};

use crate::topology::{ConversionRemark, Topology};
use input::ImportSourceText;

/// The largest file that is read.
pub const LARGEST_IMPORT: usize = 16 << 20;

/// A file to import.
#[derive(Debug, Clone, Copy)]
pub struct ImportDocument<'a> {
    /// The file as it is named in errors and comments.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
    /// The experiment's name where the file has none: the file's stem.
    pub default_name: &'a str,
}

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyFormat {
    /// GraphML, as of the Internet Topology Zoo.
    GraphMl,
    /// GML, as of the Internet Topology Zoo.
    Gml,
    /// GML of a Shadow network graph.
    Shadow,
    /// ModelNet's and SPLAY's XML.
    ModelNet,
    /// Kollaps' XML.
    Kollaps,
    /// containerlab's YAML.
    Containerlab,
    /// A compose file of Docker or Podman.
    Compose,
    /// A list of edges as CSV.
    Csv,
}

/// How to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// The format; `None`: recognised by the content.
    pub format: Option<TopologyFormat>,
    /// Nodes at each router; `None`: one where the file has no end hosts of its own, else none.
    pub hosts: Option<u32>,
    /// Only these routers (by their new names or their labels) get nodes; all if empty.
    pub hosts_at: Vec<String>,
    /// Every node's command.
    pub run: Option<String>,
    /// Latency of links for which the file has neither latency nor coordinates.
    pub latency: Span,
    /// Variables that a compose file may name, before those of its `.env`.
    pub variables: BTreeMap<String, String>,
    /// Profiles of a compose file whose services are wanted.
    pub profiles: Vec<String>,
}

/// What is around a file and belongs to it.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    /// Compose files whose values go over those of the file, each over those before.
    pub over: &'a [ImportDocument<'a>],
    /// Reads a file by its path from the file's folder, or says why it cannot.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
}

impl std::fmt::Debug for ImportContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Default for ImportOptions {
    fn default() -> Self {
        let latency = Span::from_millis(1);
        ImportOptions {
            format: None,
            hosts: None,
            hosts_at: Vec::new(),
            run: None,
            latency,
            variables: BTreeMap::new(),
            profiles: Vec::new(),
        }
    }
}

/// Why a file cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Something is wrong in the file.
    #[error(transparent)]
    Mistake(#[from] ScenarioMistake),
    /// There is no such router.
    #[error("no router is called `{name}`")]
    UnknownRouter {
        /// What was asked.
        name: String,
        /// Some that there are.
        known: Vec<String>,
    },
    /// Only compose files can be laid over each other.
    #[error("{format} has one file: only compose files go over each other")]
    OneFile {
        /// The format's name.
        format: &'static str,
    },
    /// Nodes would be attached to nothing.
    #[error("the network has no node: give its routers nodes with a number of hosts of 1 or more")]
    NoNode,
    /// The network would be larger than a scenario may be.
    #[error("this would make {value} {what}: a scenario has at most {most}")]
    TooLarge {
        /// `nodes` or `links`.
        what: &'static str,
        /// How many.
        value: u64,
        /// The most.
        most: u64,
    },
}

impl ImportError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ImportError::UnknownRouter { known, .. } if !known.is_empty() => {
                Some(format!("there are {}", known.join(", ")))
            }
            _ => None,
        }
    }
}

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

impl TopologyFormat {
    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            TopologyFormat::GraphMl => "GraphML",
            TopologyFormat::Gml => "GML",
            TopologyFormat::Shadow => "Shadow's GML",
            TopologyFormat::ModelNet => "ModelNet XML",
            TopologyFormat::Kollaps => "Kollaps XML",
            TopologyFormat::Containerlab => "containerlab YAML",
            TopologyFormat::Compose => "compose YAML",
            TopologyFormat::Csv => "CSV of edges",
        }
    }
}

impl TopologyFormat {
    /// What the tool's rates count for each packet beside the IP packet, where that is known and not
    /// Ethernet's whole framing.
    const fn overhead(self) -> Option<u32> {
        match self {
            // HTB and netem: the frame as it is in the queue, with its header (`qdisc_pkt_len` of
            // include/net/sch_generic.h), without checksum, preamble and gap.
            TopologyFormat::Kollaps | TopologyFormat::Containerlab => Some(ETHERNET_HEADER),
            // The packets of its own model, which have no link layer.
            TopologyFormat::Shadow => Some(0),
            _ => None,
        }
    }
}

/// Two addresses and a type (IEEE 802.3, 3.1.1).
const ETHERNET_HEADER: u32 = 14;

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

/// The value of a key of a map in YAML.
fn find<'v>(
    keys: &'v [(yaml::YamlKey, yaml::YamlValue)],
    name: &str,
) -> Option<&'v yaml::YamlValue> {
    keys.iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
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
