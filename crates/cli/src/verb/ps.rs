//! `ps` and `ls`: the programs of a live run, and all live runs.

mod nat;

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_control::{ControlRequest, NodeStatus, ProgramStatus, RunStatus};
use windtunnel_model::Span;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::live::{self, LiveRunSelector, LiveRunSummary};
use crate::output;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};
use crate::verb::service::render_services;

/// List nodes and programs of a live run, its services, and the mappings of its NATs
#[derive(Debug, clap::Args)]
pub(crate) struct PsArguments {
    /// List all live runs of this user instead, in whatever folder, as `ls` does
    #[arg(long, env = "WINDTUNNEL_ALL", value_parser = FalseyValueParser::new())]
    all: bool,
    #[command(flatten)]
    live: LiveRunSelector,
    #[command(flatten)]
    format: OutputFormat,
}

/// List all live runs of this user on this machine, in whatever folder
///
/// The parts that this machine's agent has of runs over several machines are listed too.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArguments {
    #[command(flatten)]
    format: OutputFormat,
}

/// All live runs, for `--json`.
#[derive(Debug, Serialize)]
struct LiveRuns {
    runs: Vec<LiveRunSummary>,
}

pub(crate) fn list(arguments: &LsArguments) -> Outcome {
    everywhere(&arguments.format)
}

fn everywhere(format: &OutputFormat) -> Outcome {
    let runs = live::list();
    if format.json {
        output::json(&LiveRuns { runs })?;
    } else if runs.is_empty() {
        output::talk("no run is live");
    } else {
        output::data(&table(&runs))?;
    }
    Ok(ExitCategory::Fine.code())
}

fn table(runs: &[LiveRunSummary]) -> String {
    let mut table = TextTable::new(&[
        ("run", ColumnAlignment::Left),
        ("for", ColumnAlignment::Right),
        ("nodes", ColumnAlignment::Right),
        ("programs", ColumnAlignment::Left),
        ("folder", ColumnAlignment::Left),
    ]);
    for run in runs {
        let folder = run.folder.display().to_string();
        let (Some(name), Some(elapsed)) = (&run.name, run.elapsed_ns) else {
            let nothing = ["-", "-", "does not answer"].map(str::to_owned);
            table.row(["-".to_owned()].into_iter().chain(nothing).chain([folder]));
            continue;
        };
        let programs = format!("{} of {} running", run.running, run.programs);
        let elapsed = quantity::span(Span::from_nanos(elapsed));
        table.row([name.clone(), elapsed, run.nodes.to_string(), programs, folder]);
    }
    table.render("")
}

pub(crate) fn run(arguments: &PsArguments) -> Outcome {
    if arguments.all {
        return everywhere(&arguments.format);
    }
    let status = arguments.live.connect()?.ask(&ControlRequest::ps())?;
    if arguments.format.json {
        output::json(&status)?;
    } else {
        output::data(&render(&status))?;
    }
    Ok(ExitCategory::Fine.code())
}

fn render(status: &RunStatus) -> String {
    let mut table = TextTable::new(&[
        ("node", ColumnAlignment::Left),
        ("addresses", ColumnAlignment::Left),
        ("state", ColumnAlignment::Left),
        ("pid", ColumnAlignment::Right),
        ("exit", ColumnAlignment::Right),
        ("argv", ColumnAlignment::Left),
    ]);
    for node in &status.nodes {
        let addresses = node.addresses.join(" ");
        if node.programs.is_empty() {
            table.row([node.node.clone(), addresses.clone()]);
        }
        for (position, program) in node.programs.iter().enumerate() {
            table.row(program_row(node, &addresses, position, program));
        }
    }
    let elapsed = quantity::span(Span::from_nanos(status.elapsed_ns));
    let services = match &status.services[..] {
        [] => String::new(),
        services => format!("\n{}", render_services(services)),
    };
    let nats = match &status.nats[..] {
        [] => String::new(),
        nats => format!("\n{}", nat::render(nats)),
    };
    format!("{}, {elapsed} after it began\n{}{services}{nats}", status.name, table.render(""))
}

/// A node's name and addresses are shown once.
fn program_row(
    node: &NodeStatus,
    addresses: &str,
    position: usize,
    program: &ProgramStatus,
) -> [String; 6] {
    let first = |text: &str| if position == 0 { text.to_owned() } else { String::new() };
    [
        first(&node.node),
        first(addresses),
        program.state.to_string(),
        program.pid.map_or_else(String::new, |pid| pid.to_string()),
        program.exit.map_or_else(String::new, |code| code.to_string()),
        program.argv.join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use windtunnel_model::ResourceUsage;

    use super::*;

    #[test]
    fn a_node_with_two_programs_is_named_once() {
        let program = |argv: &str, exit: Option<u8>| ProgramStatus {
            argv: vec![argv.into(), "-x".into()],
            state: if exit.is_some() { "exited" } else { "running" }.into(),
            pid: Some(2),
            exit,
        };
        let status = RunStatus {
            name: "demo".into(),
            elapsed_ns: 1_500_000_000,
            nodes: vec![
                NodeStatus {
                    node: "web".into(),
                    addresses: vec!["10.0.0.1".into()],
                    init_pid: 9,
                    absent: false,
                    limits: ResourceUsage::default(),
                    programs: vec![program("nginx", None), program("wrk", Some(0))],
                },
                NodeStatus {
                    node: "box".into(),
                    addresses: vec!["10.0.0.2".into()],
                    init_pid: 10,
                    absent: false,
                    limits: ResourceUsage::default(),
                    programs: vec![],
                },
            ],
            services: Vec::new(),
            nats: Vec::new(),
        };
        assert_eq!(
            render(&status),
            "demo, 1.5s after it began\n\
             node  addresses  state    pid  exit  argv\n\
             web   10.0.0.1   running    2        nginx -x\n\
             \u{20}                exited     2     0  wrk -x\n\
             box   10.0.0.2\n"
        );
    }
}
