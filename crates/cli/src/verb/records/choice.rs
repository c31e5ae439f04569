//! Which records of a run are wanted.

use windtunnel_evidence::export::CaptureLocation;
use windtunnel_evidence::filter::{CompiledRecordFilter, RecordFilter, UnknownName};
use windtunnel_evidence::{AttributedRecord, RecordedRun};
use windtunnel_model::Span;
use windtunnel_model::record::Kind;
use windtunnel_model::record::kind::RecordSource;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::records::RunFolder;

/// The records of a run, or some of them.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordSelection {
    #[command(flatten)]
    run: RunFolder,
    #[command(flatten)]
    which: RecordFilterOptions,
    /// Only from this time after the run began on
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_FROM")]
    from: Option<Span>,
    /// Only before this time after the run began
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_TO")]
    to: Option<Span>,
}

/// Of which layers, nodes, flows, links and kinds.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordFilterOptions {
    /// Only these layers: engine, calls, tcp, kernel
    #[arg(
        long = "layer",
        value_name = "LAYER",
        env = "WINDTUNNEL_LAYER",
        value_delimiter = ',',
        value_parser = layer
    )]
    layers: Vec<RecordSource>,
    /// Only what these nodes recorded, and packets on lanes from or to them
    #[arg(long = "node", value_name = "NODE", env = "WINDTUNNEL_NODE", value_delimiter = ',')]
    nodes: Vec<String>,
    /// Only these flows, by the numbers that `stats` lists
    #[arg(
        long = "flow",
        value_name = "NUMBER",
        env = "WINDTUNNEL_FLOW_NUMBER",
        value_delimiter = ','
    )]
    flows: Vec<usize>,
    /// Only packets on these links
    #[arg(long = "link", value_name = "LINK", env = "WINDTUNNEL_LINK", value_delimiter = ',')]
    links: Vec<String>,
    /// Only these kinds, such as call, offered, dropped, lost
    #[arg(
        long = "kind",
        value_name = "KIND",
        env = "WINDTUNNEL_KIND",
        value_delimiter = ',',
        value_parser = kind
    )]
    kinds: Vec<Kind>,
}

impl RecordSelection {
    /// The run's records, and which of them are wanted.
    pub(crate) fn load(&self) -> Result<(RecordedRun, CompiledRecordFilter), VerbFailure> {
        let evidence = self.run.load()?;
        let ns = |time: Option<Span>| {
            time.map(|time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
        };
        let filter =
            RecordFilter { from_ns: ns(self.from), to_ns: ns(self.to), ..self.which.filter() };
        let sieve = filter.prepare(&evidence).map_err(|error| unknown(&error))?;
        Ok((evidence, sieve))
    }

    /// The links that are named, else the nodes.
    pub(crate) fn place(&self) -> CaptureLocation {
        match (self.which.links.as_slice(), self.which.nodes.as_slice()) {
            ([], []) => CaptureLocation::All,
            ([], nodes) => CaptureLocation::Nodes(nodes.to_vec()),
            (links, _) => CaptureLocation::Links(links.to_vec()),
        }
    }

    /// Whether only some kinds are wanted.
    pub(crate) fn has_kinds(&self) -> bool {
        !self.which.kinds.is_empty()
    }
}

impl RecordFilterOptions {
    /// As a filter without times.
    pub(crate) fn filter(&self) -> RecordFilter {
        RecordFilter {
            layers: self.layers.clone(),
            kinds: self.kinds.clone(),
            nodes: self.nodes.clone(),
            flows: self.flows.clone(),
            links: self.links.clone(),
            ..RecordFilter::default()
        }
    }
}

/// The records that a sieve lets through.
pub(crate) fn wanted<'e>(
    evidence: &'e RecordedRun,
    sieve: &'e CompiledRecordFilter,
) -> impl Iterator<Item = &'e AttributedRecord> + Clone {
    evidence.records().iter().filter(|entry| sieve.passes(evidence, entry))
}

pub(crate) fn unknown(error: &UnknownName) -> VerbFailure {
    let known = error.known.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = if error.known.len() > NAMES_SHOWN { ", …" } else { "" };
    let hint = format!("there are: {known}{more}");
    let failure = VerbFailure::new(ExitCategory::Usage, error.to_string());
    if error.known.is_empty() { failure } else { failure.hint(hint) }
}

fn layer(text: &str) -> Result<RecordSource, String> {
    let found = RecordSource::ALL.into_iter().find(|layer| layer.name() == text);
    let names = || RecordSource::ALL.map(RecordSource::name).join(", ");
    found.ok_or_else(|| format!("layers are: {}", names()))
}

fn kind(text: &str) -> Result<Kind, String> {
    let shown = || Kind::ALL.iter().filter(|kind| !kind.is_definition() && **kind != Kind::Batch);
    let names = || shown().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let found = shown().find(|kind| kind.name() == text).copied();
    found.ok_or_else(|| format!("kinds are: {}", names()))
}

const NAMES_SHOWN: usize = 12;
