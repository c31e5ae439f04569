//! `limit`: programs on the machine's own network that move no more bytes, and use no more of the
//! machine, than they may.

mod ended;

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use windtunnel_budget::pacing::PacingBudgetScope;
use windtunnel_model::demand::Demand;
use windtunnel_model::{Bytes, HeldLimit, Rate, ResourceAmounts};
use windtunnel_outside::limit::{
    self, AllowedDestination, CommandLimitOptions, CommandLimitReport, CommandLimitStatus,
    DirectionThroughput, LimitError,
};
use windtunnel_scenario::parse_processors;
use windtunnel_sys::limits;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::render::quantity;
use crate::render::table::{ColumnAlignment, TextTable};

/// Run a command on the machine's own network with no more bandwidth, processor time or memory than
/// this
///
/// The command and all that it starts share one budget for each direction: of bytes that they send
/// and receive on sockets of TCP and UDP, loopback included. Calls wait until their bytes may move.
/// Processor time, memory and processes are held by control groups where these can be made, else by
/// stopping or ending programs. Neither root nor a namespace is needed. It exits with the code of the
/// command.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct LimitArguments {
    #[command(subcommand)]
    order: Option<LimitSubcommand>,
    #[command(flatten)]
    rates: RateLimitOptions,
    #[command(flatten)]
    parts: ResourceLimitOptions,
    /// Files and sockets that each process may have open
    #[arg(long, value_name = "N", env = "WINDTUNNEL_OPEN_FILES", value_parser = open_files)]
    open_files: Option<u64>,
    /// A network that the command and all that it starts may connect and send to, and no other:
    /// 10.0.0.0/8, 10.0.0.0/8:443, 2001:db8::/32 or an address; may be given several times
    #[arg(long, value_name = "NET", env = "WINDTUNNEL_CONNECT", value_delimiter = ',')]
    connect: Vec<AllowedDestination>,
    /// A file or folder that the command and all that it starts can neither read, write nor list;
    /// may be given several times
    #[arg(long, value_name = "PATH", env = "WINDTUNNEL_DENY_PATH", value_delimiter = ':')]
    deny_path: Vec<PathBuf>,
    /// What has a budget of its own: the command with all that it starts, each process, each
    /// socket, or each address at the other end [default: tree]
    #[arg(long, value_name = "WHAT", env = "WINDTUNNEL_PER")]
    per: Option<RateLimitScope>,
    /// Share one limit with all commands that name it; rates that are given change those it has
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_GROUP", value_parser = group)]
    group: Option<String>,
    /// Limit a program that runs already, the process of this number, with all below it, until the
    /// last of them has ended or a signal comes
    #[arg(long, value_name = "N", env = "WINDTUNNEL_PID", conflicts_with = "command")]
    pid: Option<i32>,
    /// Write what was asked and delivered to this file as JSON
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_OUT")]
    out: Option<PathBuf>,
    /// The command
    #[arg(last = true, required_unless_present = "pid", value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum LimitSubcommand {
    Set(LimitSetArguments),
    List(LimitListArguments),
}

/// Change a limit while its command runs
#[derive(Debug, clap::Args)]
struct LimitSetArguments {
    /// The limit: a number that `limit list` shows, or the name of a group
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    rates: RateLimitOptions,
    #[command(flatten)]
    parts: ResourceLimitOptions,
    #[command(flatten)]
    format: OutputFormat,
}

/// List the limits of this user under which commands run
#[derive(Debug, clap::Args)]
struct LimitListArguments {
    #[command(flatten)]
    format: OutputFormat,
}

/// The rates.
#[derive(Debug, clap::Args)]
struct RateLimitOptions {
    /// The most bytes a second to send, such as 1MB/s; `none` for no limit
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_SEND", value_parser = rate)]
    send: Option<u64>,
    /// The most bytes a second to receive
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_RECEIVE", value_parser = rate)]
    receive: Option<u64>,
}

/// What the command and all that it starts may use of the machine together.
#[derive(Debug, clap::Args)]
struct ResourceLimitOptions {
    /// Processor time: `25%` of a processor, or `2.5` processors
    #[arg(long, value_name = "SHARE", env = "WINDTUNNEL_CPU", value_parser = processors)]
    cpu: Option<u32>,
    /// Memory, such as 256MB
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MEMORY", value_parser = memory)]
    memory: Option<u64>,
    /// Processes and threads
    #[arg(long, value_name = "N", env = "WINDTUNNEL_PIDS", value_parser = pids)]
    pids: Option<u32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RateLimitScope {
    Tree,
    Process,
    Socket,
    Peer,
}

/// All limits, for `--json`.
#[derive(Debug, Serialize)]
struct LimitListOutput {
    limits: Vec<CommandLimitStatus>,
}

pub(crate) fn run(arguments: &LimitArguments) -> Outcome {
    match &arguments.order {
        None => arguments.run(),
        Some(LimitSubcommand::Set(order)) => order.run(),
        Some(LimitSubcommand::List(order)) => order.run(),
    }
}

impl LimitArguments {
    fn run(&self) -> Outcome {
        let wanted = self.wanted();
        let is_limited = wanted.rates != [None; 2] || wanted.group.is_some();
        let is_confined = !wanted.denied.is_empty() || !wanted.connect.is_empty();
        if !is_limited && !is_confined && wanted.resources.is_none() {
            let failure = VerbFailure::new(ExitCategory::Usage, "nothing is limited");
            return Err(failure.hint(
                "give --send RATE, --receive RATE, --cpu SHARE, --memory SIZE, --pids N, \
                 --open-files N, --connect NET or --deny-path PATH",
            ));
        }
        let ended = match self.pid {
            Some(pid) => self.attach(&wanted, pid)?,
            None => limit::command(&wanted, &self.command, waits).map_err(failed)?,
        };
        ended::lines(&ended, is_limited).iter().for_each(|line| output::talk(line));
        self.write(&ended)?;
        Ok(u8::try_from(ended.exit_code).unwrap_or(u8::MAX))
    }

    fn attach(
        &self,
        wanted: &CommandLimitOptions,
        pid: i32,
    ) -> Result<CommandLimitReport, VerbFailure> {
        if !wanted.denied.is_empty() {
            let what = "cannot deny paths to a program that runs: it stays in the mount namespace \
                        that it is in, with the files that it has open";
            let hint = "start it by `windtunnel limit --deny-path PATH -- COMMAND`";
            return Err(VerbFailure::new(ExitCategory::Usage, what).hint(hint));
        }
        limit::attach(wanted, pid, |attached| output::talk(&ended::begun(pid, attached)))
            .map_err(failed)
    }

    fn wanted(&self) -> CommandLimitOptions {
        let resources = ResourceAmounts { open_files: self.open_files, ..self.parts.resources() };
        CommandLimitOptions {
            group: self.group.clone(),
            per: self.per.map(RateLimitScope::per),
            rates: self.rates.both(),
            resources,
            connect: self.connect.clone(),
            denied: self.deny_path.clone(),
        }
    }

    fn write(&self, ended: &CommandLimitReport) -> Result<(), VerbFailure> {
        let Some(path) = &self.out else { return Ok(()) };
        let mut text = serde_json::to_string_pretty(ended)
            .map_err(|error| VerbFailure::caused(ExitCategory::Internal, error))?;
        text.push('\n');
        std::fs::write(path, text).map_err(|error| {
            let what = format!("cannot write {}: {error}", path.display());
            VerbFailure::new(ExitCategory::Machine, what)
        })
    }
}

impl LimitSetArguments {
    fn run(&self) -> Outcome {
        let (rates, resources) = (self.rates.both(), self.parts.resources());
        if rates == [None; 2] && resources.is_none() {
            let failure = VerbFailure::new(ExitCategory::Usage, "nothing is to change");
            return Err(failure
                .hint("give --send RATE, --receive RATE, --cpu SHARE, --memory SIZE or --pids N"));
        }
        show(vec![limit::set(&self.id, rates, &resources).map_err(failed)?], &self.format)
    }
}

impl LimitListArguments {
    fn run(&self) -> Outcome {
        show(limit::list(), &self.format)
    }
}

impl RateLimitOptions {
    fn both(&self) -> [Option<u64>; 2] {
        [self.send, self.receive]
    }
}

impl ResourceLimitOptions {
    fn resources(&self) -> ResourceAmounts {
        let ResourceLimitOptions { cpu, memory, pids } = *self;
        let (cpu_millis, pids) = (cpu.map(u64::from), pids.map(u64::from));
        ResourceAmounts { cpu_millis, memory, pids, ..ResourceAmounts::default() }
    }
}

impl RateLimitScope {
    fn per(self) -> PacingBudgetScope {
        match self {
            RateLimitScope::Tree => PacingBudgetScope::Tree,
            RateLimitScope::Process => PacingBudgetScope::Process,
            RateLimitScope::Socket => PacingBudgetScope::Socket,
            RateLimitScope::Peer => PacingBudgetScope::Peer,
        }
    }
}

fn show(limits: Vec<CommandLimitStatus>, format: &OutputFormat) -> Outcome {
    if format.json {
        output::json(&LimitListOutput { limits })?;
    } else if limits.is_empty() {
        output::talk("no command runs under a limit");
    } else {
        output::data(&table(&limits))?;
    }
    Ok(ExitCategory::Fine.code())
}

fn table(limits: &[CommandLimitStatus]) -> String {
    let mut table = TextTable::new(&[
        ("limit", ColumnAlignment::Left),
        ("per", ColumnAlignment::Left),
        ("send", ColumnAlignment::Right),
        ("sent", ColumnAlignment::Right),
        ("receive", ColumnAlignment::Right),
        ("received", ColumnAlignment::Right),
        ("cpu", ColumnAlignment::Right),
        ("memory", ColumnAlignment::Right),
        ("pids", ColumnAlignment::Right),
    ]);
    for limit in limits {
        let asked = |moved: &DirectionThroughput| {
            moved.limit_bps.map_or_else(|| "-".to_owned(), quantity::rate)
        };
        let moved = |moved: &DirectionThroughput| quantity::bytes(moved.bytes);
        let CommandLimitStatus { id, per, send, receive, .. } = limit;
        let sent = [asked(send), moved(send), asked(receive), moved(receive)];
        let part = |part: &Option<HeldLimit>, value: fn(u64) -> String| {
            part.as_ref().map_or_else(|| "-".to_owned(), |part| ended::of(part, value))
        };
        let used = &limit.used;
        let parts = [
            used.cpu.as_ref().map_or_else(|| "-".to_owned(), ended::processors),
            part(&used.memory, quantity::bytes),
            part(&used.pids, |count| count.to_string()),
        ];
        table.row([id.clone(), (*per).to_owned()].into_iter().chain(sent).chain(parts));
    }
    table.render("")
}

fn waits() {
    output::talk(
        "programs are left under the limit: windtunnel stays until the end of them, or Ctrl-C",
    );
}

/// A rate in bits a second, or 0 for none.
fn rate(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(0);
    }
    let bits =
        text.parse::<Rate>().map(Rate::bits_per_second).map_err(|error| error.to_string())?;
    if bits < 8 {
        return Err(format!("`{text}` is less than a byte a second: nothing would ever be sent"));
    }
    Ok(bits)
}

/// Thousandths of a processor, of those that the machine has.
fn processors(text: &str) -> Result<u32, String> {
    let millis = parse_processors(text)?;
    let machine = limits::cpus().map_or(usize::MAX, |cpus| cpus.len());
    fits(text, millis, machine).map(|()| millis)
}

fn fits(text: &str, millis: u32, machine: usize) -> Result<(), String> {
    let most = u32::try_from(machine.saturating_mul(1000)).unwrap_or(u32::MAX);
    if millis <= most {
        return Ok(());
    }
    Err(format!(
        "`{text}` limits nothing: it is more than the {machine} processors that there are here"
    ))
}

/// A size in bytes.
fn memory(text: &str) -> Result<u64, String> {
    let Bytes(bytes) = text.parse().map_err(|error| format!("{error}"))?;
    if bytes < Demand::MEMORY_MIN.0 {
        return Err(format!("`{text}` is less than {}: nothing runs in it", Demand::MEMORY_MIN));
    }
    Ok(bytes)
}

fn pids(text: &str) -> Result<u32, String> {
    whole(text, 1, Demand::PIDS_MAX)
}

fn open_files(text: &str) -> Result<u64, String> {
    whole(text, Demand::OPEN_FILES_MIN, Demand::OPEN_FILES_MAX).map(u64::from)
}

fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
}

/// The name of a group: a file's, and not the number of a process.
fn group(text: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let is_number = text.bytes().all(|letter| letter.is_ascii_digit());
    if text.is_empty() || text.len() > GROUP_LETTERS_MAX || !text.chars().all(fits) || is_number {
        return Err(format!(
            "the name of a group has letters, digits, `-` and `_`, not digits alone, and no more \
             than {GROUP_LETTERS_MAX} of them"
        ));
    }
    Ok(text.to_owned())
}

fn failed(error: LimitError) -> VerbFailure {
    let (code, hint) = match &error {
        LimitError::NoTarget { hint, .. } => {
            (ExitCategory::Usage.code(), (!hint.is_empty()).then_some(*hint))
        }
        LimitError::NotAttached(refusal) => {
            let hint = refusal.hint.as_str();
            (ExitCategory::Machine.code(), (!hint.is_empty()).then_some(hint))
        }
        LimitError::GroupOfRunning(_) => (
            ExitCategory::Usage.code(),
            Some("give --cpu, --memory and --pids without --group, by a windtunnel of their own"),
        ),
        LimitError::Command(error) => match error.kind() {
            std::io::ErrorKind::NotFound => (ExitCategory::NOT_FOUND, None),
            _ => (ExitCategory::NOT_EXECUTABLE, None),
        },
        LimitError::NoLimit(_) => {
            (ExitCategory::Usage.code(), Some("`windtunnel limit list` shows them"))
        }
        LimitError::GainsRights(_) => (
            ExitCategory::Machine.code(),
            Some("a node of an emulated network limits any program: `rate` of its link"),
        ),
        LimitError::NoNamespace(_) => (
            ExitCategory::Machine.code(),
            Some("`windtunnel doctor` shows what this machine allows"),
        ),
        LimitError::Deny { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            (ExitCategory::Usage.code(), None)
        }
        LimitError::DenyHere(_) => (ExitCategory::Usage.code(), Some("start it in another folder")),
        LimitError::GroupOfKernel { .. } => (
            ExitCategory::Machine.code(),
            Some("without --group such a limit holds by other means; `windtunnel doctor` explains"),
        ),
        LimitError::NotOfGroup(_) => (ExitCategory::Usage.code(), Some("use another name")),
        LimitError::Refused { .. } => (ExitCategory::Usage.code(), None),
        LimitError::Per { .. } => {
            (ExitCategory::Usage.code(), Some("leave --per out, or use another name"))
        }
        _ => (ExitCategory::Machine.code(), None),
    };
    let hint = hint.map(str::to_owned);
    let error: Box<dyn Error + Send + Sync> = error.into();
    VerbFailure::Error { error, hint, code }
}

const GROUP_LETTERS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_may_be_none_and_a_group_is_no_number() {
        assert_eq!((rate("1MB/s"), rate("none")), (Ok(8_000_000), Ok(0)));
        assert!(rate("1").is_err());
        assert!(group("downloads").is_ok());
        assert_eq!((memory("1MB"), pids("0").is_err()), (Ok(1_000_000), true));
        assert!(open_files("7").is_err() && open_files("8").is_ok() && memory("0B").is_err());
        assert!(rate("0.5B/s").is_err() && rate("1B/s") == Ok(8));
        assert!(memory("1KB").is_err() && memory("999999B").is_err());
        assert!(fits("1000%", 10_000, 2).is_err() && fits("200%", 2_000, 2).is_ok());
        assert!(group("4711").is_err() && group("../x").is_err() && group("").is_err());
    }
}
