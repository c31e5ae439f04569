//! `run`: a whole run in one command.

mod attempts;
mod child;
mod folder;
mod over;
mod quiet;
mod record;
mod repeat;
mod results_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::FalseyValueParser;
use windtunnel_control::part::with_causes;
use windtunnel_host::{RunError, RunOptions};
use windtunnel_lead::KeySource;
use windtunnel_model::plan::OnOverload;
use windtunnel_model::{Bytes, Plan, Span};
use windtunnel_scenario::{LoadedScenario, ScenarioOverrides};
use windtunnel_trace::junit;
use windtunnel_trace::report::RunReport;

use crate::arguments::{OutputFormat, ReservationOptions};
use crate::cluster::machines::ClusterHostOptions;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::load::{self, ScenarioFile};
use crate::output;
use crate::render::face::{Face, RunDisplayOptions};
use crate::render::{summary, verdict};
use crate::verb::{capture, report};
use attempts::RunAttemptFolders;
pub(crate) use folder::new_run_folder;
use record::RecordFlags;
pub(crate) use record::layer;
use results_file::ResultsFile;

/// Run a scenario: build its network, run its programs, judge the run, leave nothing behind
///
/// Programs' lines go to standard output behind the name of their node, what happens to standard
/// error, and everything to the run folder. The last line is the verdict. Ctrl-C ends the run; a
/// second one kills programs that ignore the first.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    scenario: ScenarioFile,
    #[command(flatten)]
    manner: RunFlags,
    #[command(flatten)]
    machines: ClusterHostOptions,
    /// How often the run is tried at the most: it is repeated when this machine did not keep up,
    /// and for no other reason. The results of an attempt are kept beside the run folder, as
    /// FOLDER-attempt-1 and so on; the last one counts
    #[arg(
        long,
        value_name = "N",
        env = "WINDTUNNEL_ATTEMPTS",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=100),
        conflicts_with = "detach"
    )]
    attempts: u32,
    /// Do so many runs, one after the other, with seeds that count up, into FOLDER/1, FOLDER/2 and
    /// so on: `windtunnel report FOLDER` says what they had in common, and how sure that is
    #[arg(
        long,
        value_name = "N",
        env = "WINDTUNNEL_REPEAT",
        default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        conflicts_with_all = ["detach", "junit"]
    )]
    repeat: u32,
    /// Wait for up to so long, before each attempt, until this machine is quiet: for a second,
    /// timers are at most half of --max-lateness late, processors are busy for at most 25% of the
    /// time, and the hypervisor takes at most 1%. A machine that stays busy is reported, and the
    /// run begins all the same
    #[arg(
        long,
        value_name = "TIME",
        env = "WINDTUNNEL_WAIT_QUIET",
        value_parser = duration,
        conflicts_with = "hosts"
    )]
    wait_quiet: Option<Span>,
    /// With --hosts: let packets between machines go in the clear, on a network that is trusted
    #[arg(long, env = "WINDTUNNEL_PLAIN", value_parser = FalseyValueParser::new(), requires = "hosts")]
    plain: bool,
    /// With --hosts: print the run's number when it has begun, and do not wait for its end
    #[arg(long, env = "WINDTUNNEL_DETACH", value_parser = FalseyValueParser::new(), requires = "hosts")]
    detach: bool,
}

/// How a run is done, whatever it runs.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunFlags {
    /// The run folder, new or empty [default: runs/NAME-DATE-TIME, with a link `latest` beside it]
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_OUT")]
    out: Option<PathBuf>,
    /// Seed of every random stream, instead of the file's
    #[arg(long, value_name = "N", env = "WINDTUNNEL_SEED")]
    seed: Option<u64>,
    /// How long the run lasts at the most, instead of the file's
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_DURATION", value_parser = duration)]
    duration: Option<Span>,
    /// Packets that leave later than this are late; more than 0.1% of all or of a link direction,
    /// or one that is 20 times as late, make the run unfaithful
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_MAX_LATENESS", default_value = "1ms")]
    max_lateness: Span,
    /// The response when this machine cannot keep up, instead of that in the file: `report` it;
    /// `abort` the run; or `freeze` all programs until the emulation has caught up
    #[arg(long, value_name = "WHAT", env = "WINDTUNNEL_ON_OVERLOAD")]
    on_overload: Option<OnOverload>,
    /// How much is kept of each stream that a program writes
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_OUTPUT_LIMIT", default_value = "64MB")]
    output_limit: Bytes,
    /// Let no packet be larger than its link's MTU, also where no program could notice
    #[arg(long, env = "WINDTUNNEL_NO_OFFLOAD", value_parser = FalseyValueParser::new())]
    no_offload: bool,
    /// Memory for packets in queues and in flight
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_PACKET_MEMORY", default_value = "1GB")]
    packet_memory: Bytes,
    /// Let the file's node `internet` reach what an ordinary program of this machine reaches
    #[arg(long, env = "WINDTUNNEL_ALLOW_INTERNET", value_parser = FalseyValueParser::new())]
    pub(crate) allow_internet: bool,
    /// Let the file's node `internet` reach servers of this machine's loopback, under the name `host`
    #[arg(long, env = "WINDTUNNEL_ALLOW_HOST", value_parser = FalseyValueParser::new())]
    allow_host: bool,
    #[command(flatten)]
    pub(crate) added: ReservationOptions,
    #[command(flatten)]
    record: RecordFlags,
    /// Capture frames of this node or link to `captures/NAME.pcapng` in the run folder; may be given
    /// more than once
    #[arg(long = "pcap", value_name = "NODE|LINK", env = "WINDTUNNEL_PCAP", value_delimiter = ',')]
    captures: Vec<String>,
    /// Write the results as JUnit XML to this file too, for a CI system; the run folder always has
    /// them as `junit.xml`
    #[arg(long, value_name = "FILE", env = "WINDTUNNEL_JUNIT")]
    junit: Option<PathBuf>,
    /// Also write `report.html` into the run folder: all that the run has to show, in one page
    #[arg(long, env = "WINDTUNNEL_REPORT", value_parser = FalseyValueParser::new())]
    report: bool,
    /// Also show defaults that were chosen for the file, such as the lengths of queues
    #[arg(
        short,
        long,
        env = "WINDTUNNEL_VERBOSE",
        value_parser = FalseyValueParser::new(),
        conflicts_with = "quiet"
    )]
    verbose: bool,
    #[command(flatten)]
    showing: RunOutputOptions,
}

/// The output of a run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RunOutputOptions {
    /// Show the verdict only
    #[arg(long, env = "WINDTUNNEL_QUIET", value_parser = FalseyValueParser::new())]
    quiet: bool,
    /// Write lines of programs as they are: control characters in them, which are shown as `\r` or
    /// `\u{1b}` otherwise, move the cursor and change what stands on the terminal
    #[arg(long, env = "WINDTUNNEL_RAW", value_parser = FalseyValueParser::new())]
    raw: bool,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &RunArguments) -> Outcome {
    let file = arguments.scenario.path()?;
    arguments.machines.refuse_two_inputs(&file)?;
    if arguments.repeat > 1 {
        return repeat::carry_out(arguments);
    }
    let loaded = arguments.load()?;
    let base_dir = load::folder_of(&file);
    let (plan, executed) = if arguments.machines.are_named() {
        over::carry_out(loaded, base_dir, arguments)?
    } else {
        let plan = plan_of(loaded, &arguments.manner)?;
        let executed = carry_out(&plan, base_dir, arguments)?;
        (plan, executed)
    };
    conclude(executed, &plan, &arguments.manner)
}

impl RunArguments {
    fn load(&self) -> Result<LoadedScenario, VerbFailure> {
        let mut instead = self.manner.instead();
        instead.several_machines = self.machines.are_named();
        load::scenario(&self.scenario.path()?, instead, self.manner.is_quiet())
    }
}

impl RunFlags {
    /// Values that replace those of the scenario, or are added to them.
    pub(crate) fn instead(&self) -> ScenarioOverrides<'_> {
        let reserve = &self.added.reserve;
        ScenarioOverrides {
            seed: self.seed,
            duration: self.duration,
            reserve,
            ..ScenarioOverrides::default()
        }
    }

    /// Whether only the verdict is printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.showing.quiet
    }

    /// Whether the report is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.showing.format.json
    }
}

/// A run with its attempts that is over.
struct ExecutedRun {
    folder: PathBuf,
    /// JUnit's file.
    results: Option<ResultsFile>,
    /// `None`: the run goes on without this process.
    result: Result<Option<RunReport>, VerbFailure>,
}

/// Does a whole run of the plan, with attempts; programs start in `base_dir`, and the places of keys
/// are hidden from them.
fn carry_out(
    plan: &Plan,
    base_dir: PathBuf,
    arguments: &RunArguments,
) -> Result<ExecutedRun, VerbFailure> {
    let manner = &arguments.manner;
    if !manner.showing.quiet {
        output::warn(&windtunnel_host::fits(plan, manner.packet_memory));
    }
    let (folder, options, results) = places(manner, plan, base_dir)?;
    let options = RunOptions { hidden: arguments.machines.key_places(), ..options };
    let attempts = RunAttemptFolders::new(arguments.attempts, &folder)?;
    let result = attempts.carry_out(|former| {
        if let Some(most) = arguments.wait_quiet {
            quiet::wait(most, manner.max_lateness, manner.showing.quiet)?;
        }
        let options = RunOptions { attempts: former.to_vec(), ..options.clone() };
        let run = || {
            let face = Arc::new(Face::new(plan, manner.showing.manner()));
            let result = windtunnel_host::run(plan.clone(), &options, Arc::<Face>::clone(&face));
            face.finish();
            Ok(result?)
        };
        let report = if arguments.attempts == 1 { run() } else { child::run(run) };
        report.map(Some)
    });
    Ok(ExecutedRun { folder, results, result })
}

/// Writes JUnit's file and the page, and shows the report.
fn conclude(executed: ExecutedRun, plan: &Plan, manner: &RunFlags) -> Outcome {
    let ExecutedRun { folder, results, result } = executed;
    if let Some(results) = results {
        let text = match &result {
            Ok(Some(report)) => junit::text(report),
            Ok(None) => junit::not_run(&plan.name, "the run goes on"),
            Err(failure) => junit::not_run(&plan.name, &failure.causes()),
        };
        results.write(&text)?;
    }
    let Some(report) = result? else { return Ok(ExitCategory::Fine.code()) };
    let page = manner.report.then(|| report::write_into(&folder));
    show(&manner.showing, &report, &folder)?;
    page.transpose()?;
    Ok(report.verdict.exit_code)
}

/// A run that is over.
pub(crate) struct RunOutcome {
    pub(crate) report: RunReport,
    pub(crate) folder: PathBuf,
}

impl RunOutcome {
    /// Does the loaded scenario by `run`, with warnings before and JUnit's file after.
    pub(crate) fn of(
        loaded: LoadedScenario,
        base_dir: PathBuf,
        arguments: &RunFlags,
        run: impl FnOnce(Plan, &RunOptions) -> Result<RunReport, RunError>,
    ) -> Result<RunOutcome, VerbFailure> {
        let plan = plan_of(loaded, arguments)?;
        if !arguments.showing.quiet {
            output::warn(&windtunnel_host::fits(&plan, arguments.packet_memory));
        }
        let (folder, options, results) = places(arguments, &plan, base_dir)?;
        let name = plan.name.clone();
        let result = run(plan, &options);
        if let Some(results) = results {
            let text = match &result {
                Ok(report) => junit::text(report),
                Err(error) => junit::not_run(&name, &with_causes(error)),
            };
            results.write(&text)?;
        }
        Ok(RunOutcome { report: result?, folder })
    }
}

fn plan_of(loaded: LoadedScenario, arguments: &RunFlags) -> Result<Plan, VerbFailure> {
    let LoadedScenario { mut plan, notices, .. } = loaded;
    plan.on_overload = arguments.on_overload.unwrap_or(plan.on_overload);
    arguments.record.apply(&mut plan.record)?;
    let (quiet, verbose) = (arguments.showing.quiet, arguments.verbose);
    for notice in notices.iter().filter(|notice| !quiet && (verbose || !notice.is_of_default())) {
        output::talk(&format!("notice: {notice}"));
    }
    Ok(plan)
}

/// The run folder, all that the run needs to know beside its plan, and the file for its JUnit
/// results.
fn places(
    arguments: &RunFlags,
    plan: &Plan,
    base_dir: PathBuf,
) -> Result<(PathBuf, RunOptions, Option<ResultsFile>), VerbFailure> {
    check_captures(arguments, plan)?;
    let folder = new_run_folder(arguments.out.as_deref(), &plan.name)?;
    // Before the run: it must not be in vain.
    let results =
        arguments.junit.as_deref().map(|file| ResultsFile::create(file, plan)).transpose()?;
    let options = options(arguments, plan, folder.clone(), base_dir);
    Ok((folder, options, results))
}

/// Whether what is to be captured is in the plan.
fn check_captures(arguments: &RunFlags, plan: &Plan) -> Result<(), VerbFailure> {
    for place in &arguments.captures {
        capture::places(plan, place)?;
    }
    Ok(())
}

fn options(arguments: &RunFlags, plan: &Plan, folder: PathBuf, base_dir: PathBuf) -> RunOptions {
    let mut options = RunOptions::new(folder, base_dir);
    options.link_latest = arguments.out.is_none();
    options.plan_hash = windtunnel_scenario::plan_hash(plan);
    options.max_lateness = arguments.max_lateness;
    options.output_limit = arguments.output_limit;
    options.offload = !arguments.no_offload;
    options.packet_memory = arguments.packet_memory;
    options.captures.clone_from(&arguments.captures);
    options.hidden = KeySource::usual_places();
    options.allow_internet = arguments.allow_internet;
    options.allow_host = arguments.allow_host;
    options.measure_overhead = arguments.record.measures_overhead();
    options
}

impl RunOutputOptions {
    pub(crate) fn manner(&self) -> RunDisplayOptions {
        RunDisplayOptions {
            quiet: self.quiet,
            raw: self.raw,
            lines_are_talk: self.format.json,
            line_colours: output::data_colours(),
            talk_colours: output::talk_colours(),
        }
    }
}

/// The end of a run. A reader that has gone does not change how the run went.
pub(crate) fn show(
    showing: &RunOutputOptions,
    report: &RunReport,
    folder: &Path,
) -> Result<(), VerbFailure> {
    let written = if showing.format.json {
        output::json(report)
    } else {
        let mut text = if showing.quiet { String::new() } else { summary::text(report) };
        text.push_str(&verdict::line(&report.verdict, folder, output::data_colours()));
        text.push('\n');
        output::data(&text)
    };
    match written {
        Err(VerbFailure::ReaderGone) => Ok(()),
        written => written,
    }
}

fn duration(text: &str) -> Result<Span, String> {
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err("a run lasts longer than no time".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}
