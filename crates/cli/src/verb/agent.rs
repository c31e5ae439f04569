//! `agent`: this machine's place in a cluster.

mod audit;
mod look;
mod place;
mod record;
mod trial;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use windtunnel_cluster::protocol::MachineIneligibility;
use windtunnel_cluster::protocol::run::text_of;
use windtunnel_cluster::{
    ANNOUNCED, AgentConfiguration, AgentError, AgentNotice, AgentResourceLimits, LimitLapseLog,
    PartWorkerCommand, machine,
};
use windtunnel_model::placement::{HOST_TIMEOUT_LEAST, HOST_TIMEOUT_MOST};
use windtunnel_model::{Bytes, QuantityError, Rate, ResourceAmounts, Span};
use windtunnel_resource::AgentGroup;

use crate::arguments::OutputFormat;
use crate::cluster::ClusterKeySelector;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::verb::part;

use place::{AdvertisedAddress, Slurm};

/// Make this machine part of a cluster, until Ctrl-C
///
/// Agents that have the same key (`windtunnel keygen`) and know one of the others find all of them,
/// and notice within some seconds when one is lost. No root is needed. `windtunnel hosts` lists them.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArguments {
    /// Where to listen: an address and a UDP port; `[::]` is every address of both families, and of
    /// IPv4 on a machine without IPv6
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "WINDTUNNEL_LISTEN",
        default_value = "[::]:7447"
    )]
    listen: SocketAddr,
    /// Where other machines reach this one, if that is not what this machine sees itself; without
    /// a port that of --listen. `ssh`: the address that this ssh session has reached
    #[arg(long, value_name = "ADDRESS", env = "WINDTUNNEL_ADVERTISE")]
    advertise: Option<AdvertisedAddress>,
    /// Other agents to look for, with commas; one that is there is enough, and a name of which
    /// nothing is known yet is looked up again
    #[arg(long, value_name = "HOST", env = "WINDTUNNEL_JOIN", value_delimiter = ',')]
    join: Vec<String>,
    /// The machine's name, instead of its own
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_NAME")]
    name: Option<String>,
    /// Words that distinguish machines, with commas: `ssd,rack=7`
    #[arg(long, value_name = "LABEL", env = "WINDTUNNEL_LABELS", value_delimiter = ',')]
    labels: Vec<String>,
    /// How far the real-time clocks of all machines of the cluster are apart at the most, if that is
    /// known from elsewhere (PTP, GPS): delays one way can be no more wrong than that. Without it, what
    /// each kernel says of its clock is used where NTP or PTP keeps it
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_CLOCK_OFFSETS")]
    clock_offsets: Option<Span>,
    /// Processors to announce to others, instead of all that this process may use
    #[arg(long, value_name = "N", env = "WINDTUNNEL_CPUS", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// Memory to announce to others, instead of all
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MEMORY")]
    memory: Option<Bytes>,
    /// What this machine can send to others
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_UPLINK")]
    uplink: Option<Rate>,
    /// The most nodes that all runs together may have here
    #[arg(long, value_name = "N", env = "WINDTUNNEL_MAX_NODES")]
    max_nodes: Option<usize>,
    /// The most processors that the nodes of all runs together may ask for here, and use where
    /// control groups can be made: `2`, `0.5`
    #[arg(long, value_name = "N", env = "WINDTUNNEL_MAX_CPU", value_parser = millis)]
    max_cpu: Option<u64>,
    /// The most memory that the nodes of all runs together may ask for here, and use where control
    /// groups can be made
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MAX_MEMORY")]
    max_memory: Option<Bytes>,
    /// Programs that files may not start here, with commas; `*` stands for any text: `nc*,/opt/*`
    #[arg(long, value_name = "PATTERN", env = "WINDTUNNEL_DENY_EXEC", value_delimiter = ',')]
    deny_exec: Vec<String>,
    /// Where runs keep their files until they are fetched; nothing else may be there
    /// [default: windtunnel/agent-MACHINE-PORT in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", env = "WINDTUNNEL_AGENT_FOLDER")]
    folder: Option<PathBuf>,
    /// How long the results of a run that is over are kept to be fetched (`windtunnel attach`);
    /// then they are removed
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_KEEP_RESULTS", default_value = "24h")]
    keep_results: Span,
    /// How long another machine of a run may be silent before it is lost, where the file of the run
    /// does not say (`host-timeout`): from 500ms to 10s
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_HOST_TIMEOUT", default_value = "5s", value_parser = host_timeout)]
    host_timeout: Span,
    /// Announce the name, the processors and the memory of the Slurm step that this agent runs in;
    /// when the job is cancelled or its time is over, end runs as `stop` does and let their results
    /// be fetched
    #[arg(long, env = "WINDTUNNEL_SLURM", value_parser = FalseyValueParser::new())]
    slurm: bool,
    /// Print where others reach this agent, and end when standard input does, once no command
    /// watches a run here; then nothing is left of it
    #[arg(long, env = "WINDTUNNEL_UNTIL_STDIN_CLOSES", value_parser = FalseyValueParser::new())]
    until_stdin_closes: bool,
    #[command(flatten)]
    key: ClusterKeySelector,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &AgentArguments) -> Outcome {
    let key = arguments.key.read()?;
    let slurm = if arguments.slurm { Slurm::of_step(place::variable)? } else { Slurm::default() };
    let lapses = LimitLapseLog::default();
    let group = group(arguments, &lapses);
    let agent = AgentConfiguration {
        listen: arguments.listen,
        advertise: arguments.advertise.and_then(AdvertisedAddress::address).or(slurm.advertise),
        join: arguments.join.clone(),
        name: arguments.name.clone().or(slurm.name),
        labels: arguments.labels.iter().cloned().collect(),
        cpus: arguments.cpus.or(slurm.cpus),
        memory: arguments.memory.or(slurm.memory),
        uplink: arguments.uplink,
        clock_offsets: arguments.clock_offsets,
        key,
        worker: Some(worker(&arguments.key, group.as_ref())?),
        look: Some(look::look),
        trial: Some(trial::run()),
        limits: AgentResourceLimits {
            nodes: arguments.max_nodes,
            resources: allowed(arguments),
            deny_exec: arguments.deny_exec.iter().cloned().collect(),
            lapses: lapses.clone(),
        },
        folder: match &arguments.folder {
            Some(folder) => folder.clone(),
            None => usual_folder(arguments.listen.port())?,
        },
        host_timeout: arguments.host_timeout,
        keep_results: arguments.keep_results,
        linger: arguments.slurm.then_some(LINGER),
        until_stdin_closes: arguments.until_stdin_closes,
    };
    let announces = arguments.until_stdin_closes;
    match arguments.format.json {
        true => agent.run(|notice| record::print(&notice)),
        false => agent.run(|notice| print(&notice, announces)),
    }
    .map_err(failed)?;
    Ok(ExitCategory::Fine.code())
}

fn print(notice: &AgentNotice, announces: bool) {
    output::talk(&text(notice));
    let AgentNotice::Listening { listen, advertise } = notice else { return };
    if listen.ip().is_unspecified() && advertise.ip().is_loopback() {
        output::talk(
            "warning: this machine has no route to others yet: they cannot reach this agent\n\
             hint: name an address of it with --listen ADDRESS:PORT or --advertise ADDRESS:PORT",
        );
    }
    if announces {
        // A starter that does not receive it closes standard input.
        let _ = output::data(&format!("{ANNOUNCED}{advertise}\n"));
    }
}

fn text(notice: &AgentNotice) -> String {
    match notice {
        AgentNotice::Listening { listen, advertise } if listen == advertise => {
            format!("agent: listens on {listen}")
        }
        AgentNotice::Listening { listen, advertise } => {
            format!("agent: listens on {listen}, others reach it at {advertise}")
        }
        AgentNotice::NotFound { name, why } => {
            format!("warning: --join {name}: {why}; it is looked up again")
        }
        AgentNotice::Joined(address) => format!("agent: {address} is there"),
        AgentNotice::Left(address) => format!("agent: {address} has left"),
        AgentNotice::Lost(address) => format!("agent: {address} is lost"),
        AgentNotice::Refused { from, why } => format!("agent: refused {from}: {why}"),
        AgentNotice::MoreRefused { refusals, addresses, within } => {
            let seconds = within.as_nanos() / 1_000_000_000;
            let plural = if *addresses == 1 { "" } else { "es" };
            format!(
                "agent: and {refusals} more refusals in {seconds} s, of {addresses} address{plural}"
            )
        }
        AgentNotice::RefusedBy { by, why } => format!("warning: {by} refuses this agent: {why}"),
        AgentNotice::RunBegun { begun, outcome } => audit::begun(begun, outcome),
        AgentNotice::Executes(command) => audit::command(command),
        AgentNotice::Expired { run, name, removed } => expired(*run, name, removed),
        AgentNotice::Lingers(time) => {
            format!("agent: ends its runs, whose results can be fetched for {time}")
        }
        AgentNotice::Unfit(MachineIneligibility { why, hint }) => {
            let hint = hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            format!(
                "warning: this machine can have no nodes, so it takes part in no run: {why}{hint}"
            )
        }
        AgentNotice::NotHeld { why } => {
            format!("warning: NOT LIMITED: --max-cpu and --max-memory: {why}")
        }
        AgentNotice::Ends => "agent: ends".to_owned(),
        _ => format!("agent: {notice:?}"),
    }
}

fn expired(run: u64, name: &str, removed: &Result<(), String>) -> String {
    let run = text_of(run);
    match removed {
        Ok(()) => format!(
            "agent: the results of run {run} ({name}) have expired (--keep-results) and are removed"
        ),
        Err(why) => format!("warning: the results of run {run} ({name}) have expired; {why}"),
    }
}

fn failed(error: AgentError) -> VerbFailure {
    let hint = error.hint();
    VerbFailure::Error { error: error.into(), hint, code: ExitCategory::Machine.code() }
}

/// What nodes of all runs may have together.
fn allowed(arguments: &AgentArguments) -> ResourceAmounts {
    ResourceAmounts {
        cpu_millis: arguments.max_cpu,
        memory: arguments.max_memory.map(|memory| memory.0),
        ..ResourceAmounts::default()
    }
}

/// The group that holds the owner's limits, where one is asked for and can be made.
fn group(arguments: &AgentArguments, lapses: &LimitLapseLog) -> Option<AgentGroup> {
    let asked = allowed(arguments);
    asked.iter().next()?;
    let lapses = lapses.clone();
    let not_held = move |why| lapses.add(why);
    match AgentGroup::make(asked, not_held) {
        Ok(group) => Some(group),
        Err(why) => {
            output::talk(&format!(
                "warning: --max-cpu and --max-memory bound what files ask for, not what programs \
                 use: no control group can be made: {why}"
            ));
            None
        }
    }
}

/// Parts of runs are executed by this program itself.
fn worker(
    key: &ClusterKeySelector,
    group: Option<&AgentGroup>,
) -> Result<PartWorkerCommand, VerbFailure> {
    let program = std::env::current_exe().map_err(|error| {
        VerbFailure::new(
            ExitCategory::Machine,
            format!("cannot find the path of windtunnel itself: {error}"),
        )
    })?;
    let group = group.map(AgentGroup::address);
    let arguments = part::arguments(&key.source().places(), group.as_deref());
    Ok(PartWorkerCommand { program, arguments })
}

/// One for each agent of a user: machines may share the user's home.
fn usual_folder(port: u16) -> Result<PathBuf, VerbFailure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")));
    let state = state.ok_or_else(|| {
        let text = "no home folder is known: neither HOME nor XDG_STATE_HOME is set";
        VerbFailure::new(ExitCategory::Usage, text).hint("name a folder with --folder DIR")
    })?;
    let machine = machine::name().replace('/', "-");
    let name = match port {
        // The system chooses the port.
        0 => format!("agent-{machine}-process-{}", std::process::id()),
        port => format!("agent-{machine}-{port}"),
    };
    Ok(state.join("windtunnel").join(name))
}

/// Slurm's default `KillWait` is 30 s: then everything of the job is killed.
const LINGER: Span = Span::from_secs(25);

fn host_timeout(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error: QuantityError| error.to_string())?;
    match (HOST_TIMEOUT_LEAST..=HOST_TIMEOUT_MOST).contains(&time) {
        true => Ok(time),
        false => Err(format!("it is not from {HOST_TIMEOUT_LEAST} to {HOST_TIMEOUT_MOST}")),
    }
}

/// Processors in thousandths.
fn millis(text: &str) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 3 {
        return Err("write a number with at most three decimals: `2`, `0.5`".to_owned());
    }
    let whole: u64 = whole.parse().map_err(|_| "that is too much".to_owned())?;
    let part: u64 = format!("{part:0<3}").parse().unwrap_or(0);
    whole.checked_mul(1000).and_then(|all| all.checked_add(part)).ok_or("that is too much".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_in_thousandths() {
        assert_eq!((millis("2"), millis("0.5"), millis("1.125")), (Ok(2000), Ok(500), Ok(1125)));
        for wrong in ["", "-1", "1.2345", "one", "99999999999999999999"] {
            assert!(millis(wrong).is_err(), "{wrong}");
        }
    }
}
