//! The file a person writes, and the plan that it means.
//!
//! Promises: every mistake is one error with line, column, the offending text and, where that is
//! known, how to repair it; any input is answered quickly and within bounded memory (16 MB of
//! text, 10 000 nodes, 50 000 links); the same text always gives the same plan.
//! Refuses: touching the operating system (the text is given), and knowing the engine.
//!
//! | module | what it does |
//! | --- | --- |
//! | `source` | [`ScenarioSource`]: what is read, and the files that it names |
//! | `tree`, `document` | text → tree of values with their places, within bounds |
//! | `decode` | tree → the file's own terms: types and values of single keys |
//! | `resolve` | the file's terms → [`Plan`]: names, groups, defaults, addresses, reachability |
//! | `written` | [`WrittenProgram`], [`WrittenRoot`]: where things are written |
//! | `error` | [`ScenarioErrors`], [`ScenarioMistake`], [`ScenarioNotice`] |
//! | `file`, `schema` | every key with its description, as a JSON Schema: [`schema()`] |
//! | `live` | [`parse_patch`], [`parse_events`]: the same keys on the command line |
//! | `trace` | trace files: mahimahi's format and tables in CSV |
//! | `preset` | [`presets()`]: access links by name |
//! | `churn` | which nodes leave and join when: rates, the churn language, traces |
//! | `added` | reservations that the command line adds to the file's |
//!
//! ```
//! let text = b"nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latencyy: 5ms}]\n";
//! let source = windtunnel_scenario::ScenarioSource {
//!     name: "net.yaml",
//!     text,
//!     default_name: "net",
//!     base_dir: "/tmp",
//! };
//! let errors = windtunnel_scenario::load(&source).unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "net.yaml:2:27: unknown key `latencyy` of a link
//!     2 | links: [{between: [a, b], latencyy: 5ms}]
//!       |                           ^^^^^^^^
//! hint: did you mean `latency`?"
//! );
//! ```

mod added;
mod churn;
mod decode;
mod document;
mod error;
mod grammar;
mod live;
mod position;
mod preset;
mod resolve;
mod schema;
mod source;
mod text;
mod trace;
mod tree;
mod written;

/// The tree of values with places that a YAML text is, for other files in YAML.
pub mod yaml {
    pub use crate::position::SourceLocation;
    pub use crate::tree::{TreeError, YamlKey, YamlValue, YamlValueKind, parse};
}

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use windtunnel_model::{LinkId, Plan, Span};

pub use decode::parse_processors;
pub use error::{ScenarioErrors, ScenarioMistake, ScenarioNotice};
pub use live::{LiveRunMoment, PatchError, check_patch, parse_events, parse_limit, parse_patch};
pub use position::SourceLocation;
pub use preset::{AccessLinkPreset, PresetLane, presets};
pub use schema::schema;
pub use source::{LARGEST_FILE, ReadFile, ScenarioSource};
pub use text::nearest;
pub use written::{WrittenProgram, WrittenRoot};

use error::Diagnostics;

/// What a file means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedScenario {
    /// The resolved experiment.
    pub plan: Plan,
    /// What was chosen for the file, and what it may not have meant.
    pub notices: Vec<ScenarioNotice>,
    /// Links with values that the file only names, by a preset or a trace, and by which.
    pub described: Vec<(LinkId, String)>,
    /// Where the programs of the plan are written: by
    /// [`Node::group`](windtunnel_model::plan::Node::group), in the order of the node's
    /// programs.
    pub programs: BTreeMap<String, Vec<WrittenProgram>>,
    /// Where the file systems of nodes with one of their own are written, by
    /// [`Node::group`](windtunnel_model::plan::Node::group). Images have not been looked at.
    pub roots: BTreeMap<String, WrittenRoot>,
    /// Where the reservations of the plan are written, in its order.
    pub reservations: Vec<SourceLocation>,
}

/// Reads a scenario that names no other files.
///
/// # Errors
/// As [`load_with`]; each file that it names cannot be read.
pub fn load(source: &ScenarioSource<'_>) -> Result<LoadedScenario, ScenarioErrors> {
    load_with(source, &|_| Err("this scenario comes without other files".to_owned()))
}

/// Reads a scenario and, through `files`, the files that it names: traces, scripts of churn.
///
/// # Errors
/// Every mistake of the first stage that finds any: syntax, then single keys with the traces, then
/// names, then the network as a whole.
pub fn load_with(
    source: &ScenarioSource<'_>,
    files: &ReadFile<'_>,
) -> Result<LoadedScenario, ScenarioErrors> {
    load_instead(source, files, ScenarioOverrides::default())
}

/// Values that replace those of a file, or are added to them. They must be known before the plan is
/// made: the nodes that take part in an event are drawn by the seed, and repeated events end with
/// the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScenarioOverrides<'a> {
    /// Of every random stream.
    pub seed: Option<u64>,
    /// How long the run lasts at the most.
    pub duration: Option<Span>,
    /// More reservations, each as `NAME={of: …}`: what `reserve` of a file has for a name. A name of
    /// the file is refused. Mistakes are in a file called `--reserve`, which is that text.
    pub reserve: &'a [String],
    /// Whether the run has more than one machine. Then the model of paths is used whether the file
    /// says so or not, and what it has no place for, `model: hops` among it, is a mistake.
    pub several_machines: bool,
}

/// Reads a scenario in which something else holds than the file says.
///
/// # Errors
/// As [`load_with`].
pub fn load_instead(
    source: &ScenarioSource<'_>,
    files: &ReadFile<'_>,
    instead: ScenarioOverrides<'_>,
) -> Result<LoadedScenario, ScenarioErrors> {
    // A byte order mark is not a character of the first line.
    let bytes = source.text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source.text);
    let source = &ScenarioSource { text: bytes, ..*source };
    let text = String::from_utf8_lossy(bytes);
    let mut found = Diagnostics::of(&text);
    match read(&mut found, source, files, instead) {
        Some(resolve::ResolvedScenario { plan, described, programs, roots, reservations })
            if found.is_clean() =>
        {
            Ok(LoadedScenario {
                plan,
                notices: found.notices,
                described,
                programs,
                roots,
                reservations,
            })
        }
        _ => Err(found.into_errors(source.name, &text)),
    }
}

/// SHA-256 in hexadecimal of the plan as compact JSON, keys in the order of the types' fields: the
/// same for the same plan everywhere, so that machines can check that they run the same experiment.
///
/// # Panics
/// Never: JSON can hold every plan.
#[must_use]
pub fn plan_hash(plan: &Plan) -> String {
    let json = serde_json::to_vec(plan).expect("a plan has only text keys, texts and integers");
    Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Feeds arbitrary bytes to everything that reads text; it must not panic.
#[doc(hidden)]
pub fn fuzz_one(bytes: &[u8]) {
    let source =
        ScenarioSource { name: "fuzz.yaml", text: bytes, default_name: "fuzz", base_dir: "/base" };
    match load_with(&source, &|_| Ok(bytes.to_vec())) {
        Ok(loaded) => {
            let _ = plan_hash(&loaded.plan);
            assert_eq!(loaded.plan.validate(), Ok(()), "what a file means is valid elsewhere");
        }
        Err(errors) => {
            let _ = errors.to_string();
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let (key, value) = text.split_once('=').unwrap_or(("loss", &text));
    let _ = parse_patch(&[(key, value)]).map_err(|error| error.to_string());
    let _ = churn::ChurnScript::parse(&text);
    let _ = churn::ChurnTrace::parse(&text).map(|trace| trace.moves(churn::Speed::default()));
}

fn read(
    found: &mut Diagnostics,
    source: &ScenarioSource<'_>,
    files: &ReadFile<'_>,
    instead: ScenarioOverrides<'_>,
) -> Option<resolve::ResolvedScenario> {
    let text = document::check_text(found, source.text)?;
    let hint = "a scenario has at least `nodes: {…}`";
    let root = document::root(found, text, ("the file says nothing", hint))?;
    let mut traces = trace::TraceFiles::read(&root, files);
    let mut decoder = grammar::Decoder { diagnostics: found, traces: &mut traces };
    let mut draft = decode::decode_file(&mut decoder, &root);
    draft.seed = instead.seed.or(draft.seed);
    draft.duration = instead.duration.or(draft.duration);
    draft.model.settle(found, instead.several_machines);
    draft.machines.several = instead.several_machines;
    drop(root);
    let mut decoder = grammar::Decoder { diagnostics: found, traces: &mut traces };
    added::reserve(&mut decoder, &mut draft, instead.reserve);
    if !found.is_clean() {
        return None;
    }
    let mut resolved = resolve::resolve(found, &draft, source, files)?;
    resolved.plan.traces = traces.into_traces();
    Some(resolved)
}
