//! `hosts`: the machines of a cluster.

use clap::builder::FalseyValueParser;
use windtunnel_cluster::AgentClient;

use crate::arguments::OutputFormat;
use crate::cluster::ClusterKeySelector;
use crate::exit::ExitCategory;
use crate::failure::Outcome;
use crate::output;
use crate::render::hosts;

/// List the machines of a cluster: resources, clock offsets, round-trip times
#[derive(Debug, clap::Args)]
pub(crate) struct HostsArguments {
    /// An agent of the cluster; it lists all machines
    #[arg(value_name = "HOST", env = "WINDTUNNEL_HOST", default_value = "localhost")]
    host: String,
    /// Measure the throughput from each machine to each other; no machine is in two pairs at once
    #[arg(long, env = "WINDTUNNEL_MEASURE", value_parser = FalseyValueParser::new())]
    measure: bool,
    #[command(flatten)]
    key: ClusterKeySelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &HostsArguments) -> Outcome {
    let key = arguments.key.read()?;
    let client = AgentClient::connect(&arguments.host, &key)?;
    let hosts = client.hosts(arguments.measure)?;
    if arguments.format.json {
        output::json(&hosts)?;
    } else {
        output::data(&hosts::text(&hosts))?;
    }
    for silent in &hosts.silent {
        output::talk(&format!("warning: {} does not answer: {}", silent.address, silent.why));
    }
    for warning in hosts::refused(&hosts) {
        output::talk(&warning);
    }
    let unfit = hosts::unfit(&hosts);
    unfit.iter().for_each(|warning| output::talk(warning));
    let code = if hosts.silent.is_empty() && unfit.is_empty() {
        ExitCategory::Fine
    } else {
        ExitCategory::Check
    };
    Ok(code.code())
}
