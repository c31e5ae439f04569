//! `ps`: the programs of a live run.

use windtunnel_control::{NodeStatus, ProgramStatus, Reply, Request, RunStatus};
use windtunnel_model::Span;

use crate::arguments::Format;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::live::Live;
use crate::output;
use crate::render::quantity;
use crate::render::table::{Align, Table};
use crate::verb::Outcome;

/// List nodes and programs of a live run
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let status = match arguments.live.connect()?.ask(&Request::Ps)? {
        Reply::Ps(status) => status,
        other => return Err(Failure::unexpected(other)),
    };
    if arguments.format.json {
        output::json(&status)?;
    } else {
        output::data(&render(&status))?;
    }
    Ok(Exit::Fine.code())
}

fn render(status: &RunStatus) -> String {
    let mut table = Table::new(&[
        ("node", Align::Left),
        ("addresses", Align::Left),
        ("state", Align::Left),
        ("pid", Align::Right),
        ("exit", Align::Right),
        ("argv", Align::Left),
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
    format!("{}, {elapsed} after it began\n{}", status.name, table.render(""))
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
        program.state.clone(),
        program.pid.map_or_else(String::new, |pid| pid.to_string()),
        program.exit.map_or_else(String::new, |code| code.to_string()),
        program.argv.join(" "),
    ]
}

#[cfg(test)]
mod tests {
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
                    programs: vec![program("nginx", None), program("wrk", Some(0))],
                },
                NodeStatus {
                    node: "box".into(),
                    addresses: vec!["10.0.0.2".into()],
                    init_pid: 10,
                    absent: false,
                    programs: vec![],
                },
            ],
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
