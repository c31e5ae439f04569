//! `agent`: this machine's place in a cluster.

use std::net::SocketAddr;

use windtunnel_cluster::{Agent, AgentError, Told, client};
use windtunnel_model::{Bytes, Rate};

use crate::cluster::Key;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::verb::Outcome;

/// Make this machine part of a cluster, until Ctrl-C
///
/// Agents that have the same key (`windtunnel keygen`) and know one of the others find all of them, and notice
/// within a second when one is lost. No root is needed. `windtunnel hosts` lists them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to hear: an address and a UDP port
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "WINDTUNNEL_LISTEN",
        default_value = "0.0.0.0:7447"
    )]
    listen: SocketAddr,
    /// Where other machines reach this one, if that is not what this machine sees itself
    #[arg(long, value_name = "ADDRESS:PORT", env = "WINDTUNNEL_ADVERTISE")]
    advertise: Option<SocketAddr>,
    /// Other agents to look for, with commas; one that is there is enough
    #[arg(long, value_name = "HOST", env = "WINDTUNNEL_JOIN", value_delimiter = ',')]
    join: Vec<String>,
    /// The machine's name, instead of its own
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_NAME")]
    name: Option<String>,
    /// Words that tell machines apart, with commas: `ssd,rack=7`
    #[arg(long, value_name = "LABEL", env = "WINDTUNNEL_LABELS", value_delimiter = ',')]
    labels: Vec<String>,
    /// Processors to be told to others, instead of all that this process may use
    #[arg(long, value_name = "N", env = "WINDTUNNEL_CPUS", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// Memory to be told to others, instead of all
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MEMORY")]
    memory: Option<Bytes>,
    /// What this machine can send to others
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_UPLINK")]
    uplink: Option<Rate>,
    #[command(flatten)]
    key: Key,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let key = arguments.key.read()?;
    let join = arguments.join.iter().map(|host| first_address(host)).collect::<Result<_, _>>()?;
    let agent = Agent {
        listen: arguments.listen,
        advertise: arguments.advertise,
        join,
        name: arguments.name.clone(),
        labels: arguments.labels.iter().cloned().collect(),
        cpus: arguments.cpus,
        memory: arguments.memory,
        uplink: arguments.uplink,
        key,
    };
    agent.run(|told| output::talk(&text(&told))).map_err(failed)?;
    Ok(Exit::Fine.code())
}

/// An agent hears at one address; a name that has several means its first.
fn first_address(host: &str) -> Result<SocketAddr, Failure> {
    let none = || Failure::new(Exit::Usage, format!("{host} has no address"));
    client::resolve(host)?.first().copied().ok_or_else(none)
}

fn text(told: &Told) -> String {
    match told {
        Told::Listening { listen, advertise } if listen == advertise => {
            format!("agent: hears at {listen}")
        }
        Told::Listening { listen, advertise } => {
            format!("agent: hears at {listen}, others reach it at {advertise}")
        }
        Told::Joined(address) => format!("agent: {address} is there"),
        Told::Left(address) => format!("agent: {address} has left"),
        Told::Lost(address) => format!("agent: {address} is lost"),
        Told::Refused { from, why } => format!("agent: refused {from}: {why}"),
        Told::Ends => "agent: ends".to_owned(),
        _ => format!("agent: {told:?}"),
    }
}

fn failed(error: AgentError) -> Failure {
    let hint = error.hint();
    Failure::Told { error: error.into(), hint, code: Exit::Machine.code() }
}
