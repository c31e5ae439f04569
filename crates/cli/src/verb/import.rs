//! `import`: networks from other tools' files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_model::Span;
use windtunnel_scenario::ScenarioSource;
use windtunnel_topology::{
    ConversionRemark, ImportContext, ImportDocument, ImportError, ImportOptions, LARGEST_IMPORT,
    Topology,
};

use crate::arguments::{self, node_command};
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::{self, OutputDestination};
use crate::progress::{ProgressIndicator, ProgressUnit};

/// Write the scenario of a network that another tool's file describes
///
/// Reads GraphML and GML of the Internet Topology Zoo, Shadow's GML, ModelNet's XML, Kollaps' XML,
/// containerlab's YAML, compose files (with their `.env`, `env_file`, `include` and `extends`) and lists
/// of edges as CSV. The scenario goes to standard output.
/// Assumptions, and elements that could not be carried over, are listed on standard error and in
/// comments at the head of the scenario.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArguments {
    /// The file; - for standard input
    #[arg(required_unless_present = "over")]
    file: Option<PathBuf>,
    /// A compose file whose values go over those of the files before; may be given several times
    #[arg(short = 'f', value_name = "FILE")]
    over: Vec<PathBuf>,
    /// Import the services of this profile of a compose file as well
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_PROFILE", value_delimiter = ',')]
    profile: Vec<String>,
    /// Format of the file [default: detected from its content]
    #[arg(long, value_name = "FORMAT", env = "WINDTUNNEL_FORMAT")]
    format: Option<ImportFormat>,
    /// Nodes to attach to each router [default: 1 where the file has no end hosts of its own, else
    /// 0]
    #[arg(long, value_name = "N", env = "WINDTUNNEL_HOSTS")]
    hosts: Option<u32>,
    /// Attach nodes to these routers only: names, or labels of the file
    #[arg(long, value_name = "ROUTER", env = "WINDTUNNEL_HOSTS_AT", value_delimiter = ',')]
    hosts_at: Vec<String>,
    /// Latency of links for which the file has neither a latency nor coordinates
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_LATENCY", default_value = "1ms")]
    latency: Span,
    /// The command of every node [default: none; nodes are there for exec and shell]
    #[arg(long, value_name = "COMMAND", env = "WINDTUNNEL_NODE_COMMAND", value_parser = node_command)]
    run: Option<String>,
    /// Fail if anything could not be carried over, and write nothing
    #[arg(long, env = "WINDTUNNEL_STRICT", value_parser = FalseyValueParser::new())]
    strict: bool,
    #[command(flatten)]
    destination: OutputDestination,
    #[command(flatten)]
    answer: arguments::OutputFormat,
}

/// The formats that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ImportFormat {
    /// GraphML, as of the Internet Topology Zoo
    Graphml,
    /// GML, as of the Internet Topology Zoo
    Gml,
    /// GML of a Shadow network graph
    Shadow,
    /// ModelNet's and SPLAY's XML
    Modelnet,
    /// Kollaps' XML
    Kollaps,
    /// containerlab's YAML
    Containerlab,
    /// A compose file of Docker or Podman
    Compose,
    /// A list of edges as CSV
    Csv,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct ImportOutput<'a> {
    format: &'static str,
    /// `null`: it is not in a file.
    path: Option<&'a Path>,
    scenario: &'a str,
    assumed: Vec<ImportNote<'a>>,
    left_out: Vec<ImportNote<'a>>,
    not_carried_over: Vec<ImportNote<'a>>,
}

/// A note.
#[derive(Debug, Serialize)]
struct ImportNote<'a> {
    text: &'a str,
    items: &'a [String],
}

impl<'a> ImportOutput<'a> {
    fn new(
        format: windtunnel_topology::TopologyFormat,
        topology: &'a Topology,
        path: Option<&'a Path>,
        scenario: &'a str,
    ) -> Self {
        let notes_of = |notes: &'a [ConversionRemark]| -> Vec<ImportNote<'a>> {
            notes.iter().map(|note| ImportNote { text: &note.text, items: &note.items }).collect()
        };
        let notes = &topology.notes;
        ImportOutput {
            format: format.title(),
            path,
            scenario,
            assumed: notes_of(&notes.assumed),
            left_out: notes_of(&notes.left_out),
            not_carried_over: notes_of(&notes.lost),
        }
    }
}

pub(crate) fn run(arguments: &ImportArguments) -> Outcome {
    let files: Vec<&PathBuf> = arguments.file.iter().chain(&arguments.over).collect();
    let files: Vec<ImportSourceFile> =
        files.into_iter().map(|file| ImportSourceFile::read(file)).collect::<Result<_, _>>()?;
    let originals: Vec<ImportDocument<'_>> = files.iter().map(ImportSourceFile::original).collect();
    let (original, over) = originals.split_first().expect("clap requires a file");
    let name = original.name;
    let folder = files.first().and_then(|file| file.path.parent()).unwrap_or(Path::new(""));
    let beside = |path: &str| read(&folder.join(path)).map_err(|error| error.to_string());
    let surroundings = ImportContext { over, read: &beside };
    let text_of = |text: std::ffi::OsString| text.into_string().ok();
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((text_of(name)?, text_of(value)?)));
    let options = ImportOptions {
        format: arguments.format.map(ImportFormat::known),
        hosts: arguments.hosts,
        hosts_at: arguments.hosts_at.clone(),
        run: arguments.run.clone(),
        latency: arguments.latency,
        variables: variables.collect(),
        profiles: arguments.profile.clone(),
    };
    let mut progress =
        ProgressIndicator::timed("importing", ProgressUnit::Things, arguments.answer.json);
    progress.set(0, STEPS);
    let (format, topology) =
        windtunnel_topology::import_with(original, &options, &surroundings).map_err(refused)?;
    progress.set(1, STEPS);
    if !arguments.answer.json {
        print_notes(&topology);
    }
    if arguments.strict && !topology.notes.lost.is_empty() {
        let text = format!("{name} ({}) cannot be carried over whole", format.title());
        let hint = "without --strict the rest is written, with a list of what is missing";
        return Err(VerbFailure::new(ExitCategory::Scenario, text).hint(hint));
    }
    let yaml = topology.to_yaml();
    let source = ScenarioSource {
        name: "the scenario",
        text: yaml.as_bytes(),
        default_name: "imported",
        base_dir: "/",
    };
    progress.set(2, STEPS);
    windtunnel_scenario::load(&source)?;
    drop(progress);
    let destination = &arguments.destination;
    destination.write(&yaml)?;
    if arguments.answer.json {
        let path = destination.path();
        output::json(&ImportOutput::new(format, &topology, path, &yaml))?;
    } else if destination.path().is_none() {
        output::data(&yaml)?;
    }
    Ok(ExitCategory::Fine.code())
}

/// A file that was read.
struct ImportSourceFile {
    path: PathBuf,
    name: String,
    stem: Option<String>,
    text: Vec<u8>,
}

impl ImportSourceFile {
    fn read(path: &Path) -> Result<ImportSourceFile, VerbFailure> {
        let name = path.display().to_string();
        let text = read(path).map_err(|error| {
            VerbFailure::new(ExitCategory::Scenario, format!("cannot read {name}: {error}"))
        })?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(ImportSourceFile { path: path.to_owned(), name, stem, text })
    }

    fn original(&self) -> ImportDocument<'_> {
        let default_name = self.stem.as_deref().unwrap_or("imported");
        ImportDocument { name: &self.name, text: &self.text, default_name }
    }
}

/// Reading the file, writing the scenario, and reading that.
const STEPS: u64 = 3;

impl ImportFormat {
    fn known(self) -> windtunnel_topology::TopologyFormat {
        match self {
            ImportFormat::Graphml => windtunnel_topology::TopologyFormat::GraphMl,
            ImportFormat::Gml => windtunnel_topology::TopologyFormat::Gml,
            ImportFormat::Shadow => windtunnel_topology::TopologyFormat::Shadow,
            ImportFormat::Modelnet => windtunnel_topology::TopologyFormat::ModelNet,
            ImportFormat::Kollaps => windtunnel_topology::TopologyFormat::Kollaps,
            ImportFormat::Containerlab => windtunnel_topology::TopologyFormat::Containerlab,
            ImportFormat::Compose => windtunnel_topology::TopologyFormat::Compose,
            ImportFormat::Csv => windtunnel_topology::TopologyFormat::Csv,
        }
    }
}

/// At most one byte more than is allowed: enough for the importer to refuse it.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let most = u64::try_from(LARGEST_IMPORT).unwrap_or(u64::MAX).saturating_add(1);
    match file.as_os_str() == "-" {
        true => io::stdin().lock().take(most).read_to_end(&mut text)?,
        false => File::open(file)?.take(most).read_to_end(&mut text)?,
    };
    Ok(text)
}

/// Prints the notes, a line each; the file's head has them in full.
fn print_notes(topology: &Topology) {
    /// Items of a list that are printed at most.
    const SHOWN: usize = 8;
    let notes = &topology.notes;
    for (what, notes) in [
        ("assumed", &notes.assumed),
        ("left out", &notes.left_out),
        ("not carried over", &notes.lost),
    ] {
        for note in notes {
            output::talk(&format!("{what}: {}", ConversionRemark::shown(note, SHOWN)));
        }
    }
}

fn refused(error: ImportError) -> VerbFailure {
    let code = match error {
        ImportError::Mistake(mistake) => {
            return VerbFailure::Mistake(Box::new(mistake));
        }
        ImportError::UnknownRouter { .. } | ImportError::OneFile { .. } => ExitCategory::Usage,
        _ => ExitCategory::Scenario,
    };
    let hint = error.hint();
    let failure = VerbFailure::caused(code, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
