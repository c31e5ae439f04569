//! `reserve`: what live runs of this user have reserved of this machine, and what is free; and how
//! one run divides it.

mod files;
mod filesystem;
mod fuse;
mod mount;
mod watcher;

use clap::Subcommand;
use serde::Serialize;
use windtunnel_budget::admission::{RESERVABLE, shown};
use windtunnel_control::reservations::{self, RunReservation};
use windtunnel_control::{ControlRequest, ReservationStatus};
use windtunnel_model::{Resource, ResourceAmounts, ResourceUsage};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::LiveRunSelector;
use crate::output;
use crate::render::table::{ColumnAlignment, TextTable};

/// Show what live runs have reserved of this machine, and what is free
///
/// A run reserves the processors and the memory that its file gives to nodes (`cpu: 25%`,
/// `memory: 64MB`; with `{limit: …}` nothing is reserved), from its beginning until its last process
/// has ended. One that does not fit beside this user's other runs is refused, and so is a `set`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct ReserveArguments {
    #[command(subcommand)]
    order: Option<ReserveSubcommand>,
    #[command(flatten)]
    format: OutputFormat,
}

#[derive(Debug, Subcommand)]
enum ReserveSubcommand {
    Tree(ReserveTreeArguments),
    Mount(mount::ReserveMountArguments),
}

/// Show how a live run divides what it has: its reservations and nodes as a tree
///
/// `share` is what each has of processors when all want as much as they can get; `set` changes it:
/// `windtunnel set site.cpu='{min: 50%, weight: 2}'`.
#[derive(Debug, clap::Args)]
struct ReserveTreeArguments {
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct Reservations {
    /// What the machine has, in processors and bytes.
    cpus: f64,
    memory_bytes: u64,
    free_cpus: f64,
    free_memory_bytes: u64,
    runs: Vec<RunReservationOutput>,
}

#[derive(Debug, Serialize)]
struct RunReservationOutput {
    name: String,
    folder: String,
    cpus: f64,
    memory_bytes: u64,
}

pub(crate) fn run(arguments: &ReserveArguments) -> Outcome {
    match &arguments.order {
        Some(ReserveSubcommand::Tree(order)) => return order.run(),
        Some(ReserveSubcommand::Mount(order)) => return order.run(),
        None => {}
    }
    let (capacity, runs) = (windtunnel_resource::capacity(), reservations::live());
    let all = runs.iter().map(RunReservation::amounts);
    let all = all.fold(ResourceAmounts::default(), ResourceAmounts::plus);
    let free = capacity.minus(all);
    if arguments.format.json {
        output::json(&Reservations {
            cpus: cpus(capacity.amount(Resource::Cpu)),
            memory_bytes: capacity.amount(Resource::Memory),
            free_cpus: cpus(free.amount(Resource::Cpu)),
            free_memory_bytes: free.amount(Resource::Memory),
            runs: runs.into_iter().map(RunReservationOutput::from).collect(),
        })?;
        return Ok(ExitCategory::Fine.code());
    }
    output::data(&table(capacity, free, &runs))?;
    Ok(ExitCategory::Fine.code())
}

/// The parts of a run, for `--json`.
#[derive(Debug, Serialize)]
struct ReservationTreeOutput<'a> {
    parts: &'a [ReservationStatus],
}

impl ReserveTreeArguments {
    fn run(&self) -> Outcome {
        let parts = self.live.connect()?.ask(&ControlRequest::reservations())?;
        if self.format.json {
            output::json(&ReservationTreeOutput { parts: &parts })?;
        } else if parts.is_empty() {
            output::talk("nothing is limited or reserved in this run");
        } else {
            output::data(&tree(&parts))?;
        }
        Ok(ExitCategory::Fine.code())
    }
}

/// Each part below the one around it.
fn tree(parts: &[ReservationStatus]) -> String {
    let mut table = TextTable::new(&[
        ("part", ColumnAlignment::Left),
        ("cpu min", ColumnAlignment::Right),
        ("weight", ColumnAlignment::Right),
        ("share", ColumnAlignment::Right),
        ("limit", ColumnAlignment::Right),
        ("used", ColumnAlignment::Right),
        ("memory min", ColumnAlignment::Right),
        ("limit", ColumnAlignment::Right),
        ("used", ColumnAlignment::Right),
    ]);
    add_parts(&mut table, parts, None, 0);
    table.render("")
}

fn add_parts(
    table: &mut TextTable,
    parts: &[ReservationStatus],
    parent: Option<&str>,
    depth: usize,
) {
    // A reservation is in no other twice; what another process says might be a circle.
    if depth > parts.len() {
        return;
    }
    for part in parts.iter().filter(|part| part.parent.as_deref() == parent) {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let some = |amount: u64| (amount > 0).then_some(amount);
        let text = |resource, amount: Option<u64>| or(amount.map(|it| shown(resource, it)));
        let cpu = |millis| text(Resource::Cpu, millis);
        let memory = |bytes| text(Resource::Memory, bytes);
        let ResourceUsage { asked, used } = &part.limits;
        let weight = part.cpu_share_millis.map(|_| part.cpu_weight.to_string());
        table.row([
            format!("{}{}", "  ".repeat(depth), part.name),
            cpu(some(part.cpu_min_millis)),
            or(weight),
            cpu(part.cpu_share_millis.map(u64::from)),
            cpu(asked.cpu_millis),
            cpu(used.cpu_millis),
            memory(some(part.memory_min)),
            memory(asked.memory),
            memory(used.memory),
        ]);
        if !part.node {
            add_parts(table, parts, Some(&part.name), depth + 1);
        }
    }
}

impl From<RunReservation> for RunReservationOutput {
    fn from(run: RunReservation) -> Self {
        let folder = run.folder.display().to_string();
        let (cpus, memory_bytes) = (cpus(run.cpu_millis), run.memory_bytes);
        RunReservationOutput { name: run.name, folder, cpus, memory_bytes }
    }
}

fn table(capacity: ResourceAmounts, free: ResourceAmounts, runs: &[RunReservation]) -> String {
    let mut table = TextTable::new(&[
        ("run", ColumnAlignment::Left),
        ("cpu", ColumnAlignment::Right),
        ("memory", ColumnAlignment::Right),
        ("folder", ColumnAlignment::Left),
    ]);
    let mut row = |name: &str, has: ResourceAmounts, folder: String| {
        let amounts = RESERVABLE.map(|resource| shown(resource, has.amount(resource)));
        table.row([name.to_owned()].into_iter().chain(amounts).chain([folder]));
    };
    for run in runs {
        row(&run.name, run.amounts(), run.folder.display().to_string());
    }
    row("(free)", free, "-".to_owned());
    row("(machine)", capacity, "-".to_owned());
    table.render("")
}

fn cpus(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
