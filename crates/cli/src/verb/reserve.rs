//! `reserve`: what live runs of this user have reserved of this machine, and what is free.

use serde::Serialize;
use windtunnel_budget::admission::{Amounts, Resource};
use windtunnel_control::reservations::{self, Reserved};

use crate::arguments::Format;
use crate::exit::Exit;
use crate::output;
use crate::render::table::{Align, Table};
use crate::verb::Outcome;

/// Show what live runs have reserved of this machine, and what is free
///
/// A run reserves the processors and the memory that its file gives to nodes (`cpu: 25%`,
/// `memory: 64MB`; with `{limit: …}` nothing is reserved), from its beginning until its last process
/// has ended. One that does not fit beside this user's other runs is refused, and so is a `set`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    format: Format,
}

/// For `--json`.
#[derive(Debug, Serialize)]
struct Reservations {
    /// What the machine has, in processors and bytes.
    cpus: f64,
    memory_bytes: u64,
    free_cpus: f64,
    free_memory_bytes: u64,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Run {
    name: String,
    folder: String,
    cpus: f64,
    memory_bytes: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let (capacity, runs) = (windtunnel_host::capacity(), reservations::live());
    let amounts =
        |run: &Reserved| Amounts { cpu_millis: run.cpu_millis, memory_bytes: run.memory_bytes };
    let all = runs.iter().map(amounts).fold(Amounts::default(), Amounts::plus);
    let free = capacity.minus(all);
    if arguments.format.json {
        output::json(&Reservations {
            cpus: cpus(capacity.cpu_millis),
            memory_bytes: capacity.memory_bytes,
            free_cpus: cpus(free.cpu_millis),
            free_memory_bytes: free.memory_bytes,
            runs: runs.into_iter().map(Run::from).collect(),
        })?;
        return Ok(Exit::Fine.code());
    }
    output::data(&table(capacity, free, &runs))?;
    Ok(Exit::Fine.code())
}

impl From<Reserved> for Run {
    fn from(run: Reserved) -> Self {
        let folder = run.folder.display().to_string();
        let (cpus, memory_bytes) = (cpus(run.cpu_millis), run.memory_bytes);
        Run { name: run.name, folder, cpus, memory_bytes }
    }
}

fn table(capacity: Amounts, free: Amounts, runs: &[Reserved]) -> String {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("cpu", Align::Right),
        ("memory", Align::Right),
        ("folder", Align::Left),
    ]);
    let (cpu, memory) = (Resource::Processor, Resource::Memory);
    let mut row = |name: &str, has: Amounts, folder: String| {
        let amounts = [cpu.amount(has.cpu_millis), memory.amount(has.memory_bytes)];
        table.row([name.to_owned()].into_iter().chain(amounts).chain([folder]));
    };
    for run in runs {
        let has = Amounts { cpu_millis: run.cpu_millis, memory_bytes: run.memory_bytes };
        row(&run.name, has, run.folder.display().to_string());
    }
    row("(free)", free, "-".to_owned());
    row("(machine)", capacity, "-".to_owned());
    table.render("")
}

fn cpus(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
