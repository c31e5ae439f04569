//! A whole run.
//!
//! Stages, each undone in reverse by dropping what it made:
//!
//! 1. the run folder and `plan.json`;
//! 2. signals are taken over;
//! 3. the process leaves the machine's network ([`windtunnel_node::enter`]);
//! 4. all nodes come up ([`windtunnel_node::create`]); only now threads may start:
//! 5. recorder and output;
//! 6. the packet loop;
//! 7. the control socket;
//! 8. paths that expectations name are measured;
//! 9. the clock of the run starts;
//! 10. the main loop;
//! 11. programs end, counters are read, nodes vanish, files are closed;
//! 12. the verdict.

mod stages;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use windtunnel_control::Listener;
use windtunnel_control::part::Manner;
use windtunnel_model::{Bytes, NodeId, Plan, Span};
use windtunnel_node::Village;
use windtunnel_routing::Routes;
use windtunnel_sys::poll::Event as Wake;
use windtunnel_sys::process::Signal;
use windtunnel_sys::{schedule, signal};
use windtunnel_trace::report::{Attempt, Report, Verdict};

use crate::dataplane::{Abroad, Dataplane, Setup, now};
use crate::evidence;
use crate::folder::{Folder, FolderError};
use crate::live::{Live, Side, Threads};
use crate::observer::{Notice, Observer};
use crate::output::Output;
use crate::presence::{self, Missing};
use crate::recorder::{Recorder, Recording};
use crate::verdict;
pub(crate) use stages::{Done, Started};

/// How a run is done.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run folder; must not exist or be empty.
    pub folder: PathBuf,
    /// Whether `latest` beside the folder shall point to it.
    pub link_latest: bool,
    /// Where programs start that name no folder of their own: the folder of the file. Absolute.
    pub base_dir: PathBuf,
    /// Identifies the plan in the report.
    pub plan_hash: String,
    /// A packet that leaves later than this after it should have counts as late; more than 0.1 %
    /// late packets, of all or of a link direction, or one that is 20 times as late, make the
    /// run unfaithful.
    pub max_lateness: Span,
    /// Bytes kept of each stream that a program writes.
    pub output_limit: Bytes,
    /// Whether packets of up to 64 KiB may travel as one.
    pub offload: bool,
    /// Bytes that packets in queues and in flight may hold.
    pub packet_memory: Bytes,
    /// Files and folders that no program of a node may see, such as the keys of clusters.
    pub hidden: Vec<PathBuf>,
    /// Attempts at the same run that have been disturbed; the report names them.
    pub attempts: Vec<Attempt>,
}

impl Options {
    /// The usual options.
    #[must_use]
    pub fn new(folder: PathBuf, base_dir: PathBuf) -> Self {
        Options {
            folder,
            link_latest: false,
            base_dir,
            plan_hash: String::new(),
            max_lateness: Span::from_millis(1),
            output_limit: Bytes(64_000_000),
            offload: true,
            packet_memory: Bytes(1_000_000_000),
            hidden: Vec::new(),
            attempts: Vec::new(),
        }
    }

    /// Options of a run over several machines, which all of them do in the same manner.
    #[must_use]
    pub fn in_manner(folder: PathBuf, base_dir: PathBuf, plan_hash: &str, manner: &Manner) -> Self {
        let Manner { max_lateness, output_limit, offload, packet_memory } = *manner;
        let plan_hash = plan_hash.to_owned();
        let usual = Options::new(folder, base_dir);
        Options { plan_hash, max_lateness, output_limit, offload, packet_memory, ..usual }
    }

    /// What other machines have to know of these.
    #[must_use]
    pub fn manner(&self) -> Manner {
        let Options { max_lateness, output_limit, offload, packet_memory, .. } = *self;
        Manner { max_lateness, output_limit, offload, packet_memory }
    }
}

/// Why a run could not be done. What happens once the network is up is not an error but a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Leaving the machine's network.
    #[error("cannot leave the machine's network")]
    Enter(#[from] windtunnel_node::EnterError),
    /// Making the nodes.
    #[error("cannot set up the nodes")]
    Create(#[from] windtunnel_node::CreateError),
    /// This machine has not what programs need; nothing has been started.
    #[error("{}", lacks(missing))]
    Missing {
        /// What, by the name of the node; at least one.
        missing: Vec<(String, Missing)>,
    },
    /// Another step; it is named.
    #[error("cannot {step}")]
    Step {
        /// What was tried.
        step: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// All UDP ports for packets between machines are taken.
    #[error(
        "all UDP ports from {first} to {last} at {address} are taken: each run on a machine has one"
    )]
    NoPort {
        /// The machine's address.
        address: std::net::IpAddr,
        /// The first port.
        first: u16,
        /// The last one.
        last: u16,
    },
    /// The agent wanted no more before the run had begun.
    #[error("stopped before the run began: {0}")]
    Stopped(String),
    /// A signal came before the network was up.
    #[error("interrupted by signal {0} while the network was set up")]
    Interrupted(i32),
}

impl RunError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            RunError::Folder(_) => Some("name a new folder with --out DIR".to_owned()),
            RunError::Enter(error) => error.hint(),
            RunError::Create(error) => error.hint(),
            RunError::NoPort { .. } => {
                Some("end other runs, or start the agent with another port: --listen".to_owned())
            }
            RunError::Missing { missing } => {
                missing.first().and_then(|(_, missing)| missing.hint())
            }
            RunError::Step { .. } => {
                Some("`windtunnel doctor` tells what this machine allows".into())
            }
            _ => None,
        }
    }

    /// The exit code that says this: 4, the machine cannot do it; 3, it has not what the file
    /// names; 128+n for a signal.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            RunError::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            RunError::Missing { .. } => 3,
            _ => 4,
        }
    }
}

/// What is missing where, of which the first few are told.
fn lacks(missing: &[(String, Missing)]) -> String {
    let told = missing.iter().take(MISSING_TOLD);
    let told = told.map(|(node, missing)| format!("node {node}: {}", missing.message()));
    let more = missing.len().saturating_sub(MISSING_TOLD);
    let more = (more > 0).then(|| format!("and {more} more"));
    told.chain(more).collect::<Vec<_>>().join("; ")
}

/// Whether this machine has what programs need that cannot come later.
fn check_presence(plan: &Plan, options: &Options, here: Option<&[bool]>) -> Result<(), RunError> {
    let missing = presence::missing(plan, &options.base_dir, here).into_iter();
    let missing = missing.filter(|missing| !missing.may_come);
    let named = missing.map(|missing| (plan.nodes[missing.node.index()].name.clone(), missing));
    let missing: Vec<(String, Missing)> = named.collect();
    if missing.is_empty() { Ok(()) } else { Err(RunError::Missing { missing }) }
}

/// Does a whole run. The calling thread must be the process's only one; it leaves the machine's
/// network for good, and SIGINT, SIGTERM and SIGHUP end the run instead of the process.
///
/// # Errors
/// If the network cannot be set up; nothing is left behind then.
pub fn run(plan: Plan, options: &Options, observer: Arc<dyn Observer>) -> Result<Report, RunError> {
    whole_run(plan, options, observer, None)
}

/// Does a whole run as [`run`], in which one program stands for the calling process: it has its
/// standard streams, and while it runs it gets the signals that would end the run.
///
/// # Errors
/// As [`run`].
pub fn run_in_foreground(
    plan: Plan,
    options: &Options,
    observer: Arc<dyn Observer>,
    foreground: Foreground,
) -> Result<Report, RunError> {
    whole_run(plan, options, observer, Some(foreground))
}

fn whole_run(
    plan: Plan,
    options: &Options,
    observer: Arc<dyn Observer>,
    foreground: Option<Foreground>,
) -> Result<Report, RunError> {
    let plan = Arc::new(plan);
    let folder = Folder::create(&options.folder, &plan)?;
    let signals: &[Signal] = if foreground.is_some() { &PASSED_ON } else { &ENDING };
    let result = folder.reserve_report(&plan).map_err(RunError::from);
    let result = result
        .and_then(|()| prepare(&plan, options, &folder, &observer, (None, signals)))
        .and_then(|prepared| prepared.run(&plan, options, &folder, observer, foreground));
    if result.is_err() {
        folder.discard();
    }
    result
}

/// A program that stands for the process that runs windtunnel.
#[derive(Debug)]
pub struct Foreground {
    /// Its node.
    pub node: NodeId,
    /// Its position among the node's programs.
    pub program: usize,
    /// Its standard input, output and error. What it writes there is not in the run folder.
    pub stdio: [OwnedFd; 3],
    /// Whether standard input is a terminal that is to control the program's session.
    pub has_terminal: bool,
}

/// What exists before the first thread.
pub(crate) struct Prepared {
    signals: signal::Reader,
    village: Village,
    routes: Arc<Routes>,
    notes: Vec<String>,
    setup: Span,
}

/// Makes the nodes, or those that are `here`.
pub(crate) fn prepare(
    plan: &Plan,
    options: &Options,
    folder: &Folder,
    observer: &Arc<dyn Observer>,
    (here, signals): (Option<Vec<bool>>, &[Signal]),
) -> Result<Prepared, RunError> {
    let began = now();
    check_presence(plan, options, here.as_deref())?;
    folder.write("plan.json", &serde_json::to_vec_pretty(plan).map_err(io("write plan.json"))?)?;
    let signals = signal::Reader::open(signals).map_err(step("take over signals"))?;
    let nice = nice_of_programs();
    let enclosure = windtunnel_node::enter_for(plan)?;
    let routes = Routes::compute(plan);
    if plan.nodes.iter().any(|node| node.interfaces.len() > 1) {
        // The nodes are copies of this process, and each would compute them for itself.
        routes.settle();
    }
    let node_options = windtunnel_node::Options {
        offload: options.offload,
        nice,
        hidden: options.hidden.clone(),
        kept: vec![options.base_dir.clone()],
        here,
        ..windtunnel_node::Options::new(folder.path().to_owned())
    };
    let village =
        windtunnel_node::create(plan, &routes, &enclosure, &node_options, |done, total| {
            observer.notice(&Notice::Setup { done, total });
        })?;
    if let Ok(Some(received)) = signals.read() {
        return Err(RunError::Interrupted(received.signal));
    }
    Ok(Prepared {
        signals,
        notes: [enclosure.notes(), village.notes()].concat(),
        village,
        routes: Arc::new(routes),
        setup: now().since(began),
    })
}

impl Prepared {
    /// Adds something that the set-up could not do as it should.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn run(
        self,
        plan: &Arc<Plan>,
        options: &Options,
        folder: &Folder,
        observer: Arc<dyn Observer>,
        foreground: Option<Foreground>,
    ) -> Result<Report, RunError> {
        let mut begun = self.start(plan, options, folder, observer, None)?;
        if let Some(foreground) = foreground {
            begun.put_in_foreground(foreground);
        }
        begun.measure_paths();
        let done = begun.through(now());
        let attempts = options.attempts.clone();
        let report = Report { attempts, ..verdict::judge(&done.evidence(plan, options)) };
        let report = write_results(folder, plan, &done, report);
        drop((done.ended.connections, done.ended.signals));
        Ok(report)
    }

    /// Starts the threads: from now on packets move.
    pub(crate) fn start(
        self,
        plan: &Arc<Plan>,
        options: &Options,
        folder: &Folder,
        observer: Arc<dyn Observer>,
        others: Option<(Side, Abroad)>,
    ) -> Result<Started, RunError> {
        let (side, abroad) = others.unzip();
        let (threads, recording) =
            start_threads(plan, options, folder, &observer, &self.village, abroad)?;
        let control = Listener::open(folder.path()).map_err(step("open the control socket"))?;
        if options.link_latest {
            folder.link_latest()?;
        }
        let live = Live::new(
            Arc::clone(plan),
            options,
            folder.clone(),
            observer,
            self.village,
            self.routes,
            self.signals,
            control,
            threads,
            side,
        );
        Ok(Started { live, recording, notes: self.notes, setup: self.setup })
    }
}

/// The nice value of programs, below which windtunnel itself stays: packets must not wait for
/// programs. Where windtunnel may not raise itself (only root may), programs are made a little
/// nicer than it.
fn nice_of_programs() -> i32 {
    let own = schedule::nice().unwrap_or(0);
    match schedule::set_nice(own - NICE_DISTANCE) {
        Ok(()) => own,
        Err(_) => (own + NICE_DISTANCE).min(NICE_MOST),
    }
}

fn start_threads(
    plan: &Arc<Plan>,
    options: &Options,
    folder: &Folder,
    observer: &Arc<dyn Observer>,
    village: &Village,
    abroad: Option<Abroad>,
) -> Result<(Threads, Recording), RunError> {
    let told = Arc::new(Wake::open().map_err(step("make an event descriptor"))?);
    let (recorder, recording) = Recorder::start(folder, plan)?;
    let limit = options.output_limit.0;
    let (output, matches) = Output::start(Arc::clone(observer), limit, Arc::clone(&told))
        .map_err(step("start the output thread"))?;
    let setup = Setup {
        plan: Arc::clone(plan),
        interfaces: village.fabric().to_vec(),
        recorder: recorder.clone(),
        late_above: options.max_lateness,
        packet_memory: options.packet_memory.0,
        told: Arc::clone(&told),
        abroad,
    };
    let (dataplane, notes) = Dataplane::start(setup).map_err(step("open the packet socket"))?;
    Ok((Threads { told, recorder, output, matches, dataplane, notes }, recording))
}

/// What cannot be written is added to the verdict of the report that the caller gets.
fn write_results(folder: &Folder, plan: &Plan, done: &Done, report: Report) -> Report {
    let tables = evidence::tables(plan, &done.ended.echoes, &done.ended.tally.flows);
    write_report(folder, plan, tables, report)
}

/// Writes what is known when all is over. A run of which that cannot be written has failed.
pub(crate) fn write_report(
    folder: &Folder,
    plan: &Plan,
    tables: Vec<(&'static str, String)>,
    mut report: Report,
) -> Report {
    for (name, table) in tables {
        let written = folder.write(name, table.as_bytes());
        told(written, &mut report.verdict);
    }
    for node in &plan.nodes {
        let programs = report.programs.iter().filter(|program| program.node == node.name);
        let lines: Vec<String> = programs.map(|program| format!("{}\n", program.ended)).collect();
        if let Err(error) = std::fs::write(folder.node(&node.name).join("exit"), lines.concat()) {
            // `run.json` says the same.
            let warning = format!("cannot write the exit of {}: {error}", node.name);
            report.verdict.warnings.push(warning);
        }
    }
    let written = folder.write("junit.xml", windtunnel_trace::junit::text(&report).as_bytes());
    told(written, &mut report.verdict);
    let json = serde_json::to_vec_pretty(&report).map_err(|error| FolderError {
        verb: "write",
        path: folder.file("run.json"),
        source: error.into(),
    });
    told(json.and_then(|json| folder.write("run.json", &json)), &mut report.verdict);
    report
}

/// A verdict that cannot be kept is not one that can be relied on.
fn told(written: Result<(), FolderError>, verdict: &mut Verdict) {
    if let Err(error) = written {
        verdict.add_failure(format!("{error}: {}", error.source));
    }
}

/// Signals that end a run.
pub(crate) const ENDING: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
/// Signals that a program in the foreground gets, and that end the run where it does not run.
const PASSED_ON: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];
const MISSING_TOLD: usize = 5;
/// Nine times the weight, sched_nice_design in the kernel's documentation.
const NICE_DISTANCE: i32 = 10;
const NICE_MOST: i32 = 19;

pub(crate) fn step(step: &'static str) -> impl FnOnce(std::io::Error) -> RunError {
    move |source| RunError::Step { step, source }
}

fn io(step: &'static str) -> impl FnOnce(serde_json::Error) -> RunError {
    move |error| RunError::Step { step, source: error.into() }
}
