//! `limit`: programs on the machine's own network that move no more bytes than they may.

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use windtunnel_budget::pacing::Per;
use windtunnel_host::limit::{self, Ended, Held, LimitError, Moved, Status, Wanted};
use windtunnel_model::{Rate, Span};

use crate::arguments::Format;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::render::quantity;
use crate::render::table::{Align, Table};
use crate::verb::Outcome;

/// Run a command on the machine's own network with no more bandwidth than this
///
/// The command and all that it starts share one budget for each direction: of bytes that they send
/// and receive on sockets of TCP and UDP, loopback included. Calls wait until their bytes may move.
/// Neither root nor a namespace is needed. It exits with the code of the command.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    order: Option<Order>,
    #[command(flatten)]
    rates: Rates,
    /// A file or folder that the command and all that it starts can neither read, write nor list;
    /// may be given several times
    #[arg(long, value_name = "PATH", env = "WINDTUNNEL_DENY_PATH", value_delimiter = ':')]
    deny_path: Vec<PathBuf>,
    /// What has a budget of its own: the command with all that it starts, each process, each
    /// socket, or each address at the other end [default: tree]
    #[arg(long, value_name = "WHAT", env = "WINDTUNNEL_PER")]
    per: Option<Each>,
    /// Share one limit with all commands that name it; rates that are given change those it has
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_GROUP", value_parser = group)]
    group: Option<String>,
    /// Write what was asked and delivered to this file as JSON
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_OUT")]
    out: Option<PathBuf>,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
enum Order {
    Set(Set),
    List(List),
}

/// Change a limit while its command runs
#[derive(Debug, clap::Args)]
struct Set {
    /// The limit: a number that `limit list` shows, or the name of a group
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    rates: Rates,
    #[command(flatten)]
    format: Format,
}

/// List the limits of this user under which commands run
#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    format: Format,
}

/// The rates.
#[derive(Debug, clap::Args)]
struct Rates {
    /// The most bytes a second to send, such as 1MB/s; `none` for no limit
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_SEND", value_parser = rate)]
    send: Option<u64>,
    /// The most bytes a second to receive
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_RECEIVE", value_parser = rate)]
    receive: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Each {
    Tree,
    Process,
    Socket,
    Peer,
}

/// All limits, for `--json`.
#[derive(Debug, Serialize)]
struct Limits {
    limits: Vec<Status>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.order {
        None => arguments.run(),
        Some(Order::Set(order)) => order.run(),
        Some(Order::List(order)) => order.run(),
    }
}

impl Arguments {
    fn run(&self) -> Outcome {
        let rates = self.rates.both();
        if rates == [None; 2] && self.group.is_none() && self.deny_path.is_empty() {
            let failure = Failure::new(Exit::Usage, "nothing is limited");
            return Err(failure.hint("give --send RATE, --receive RATE or --deny-path PATH"));
        }
        let per = self.per.map(Each::per);
        let denied = self.deny_path.clone();
        let wanted = Wanted { group: self.group.clone(), per, rates, denied };
        let ended = limit::command(&wanted, &self.command, waits).map_err(failed)?;
        if rates != [None; 2] || self.group.is_some() {
            lines(&ended.status).iter().for_each(|line| output::talk(line));
        }
        for what in &ended.not_denied {
            output::talk(&format!("NOT DENIED: {what}"));
        }
        self.write(&ended)?;
        Ok(u8::try_from(ended.exit_code).unwrap_or(u8::MAX))
    }

    fn write(&self, ended: &Ended) -> Result<(), Failure> {
        let Some(path) = &self.out else { return Ok(()) };
        let mut text = serde_json::to_string_pretty(ended)
            .map_err(|error| Failure::caused(Exit::Internal, error))?;
        text.push('\n');
        std::fs::write(path, text).map_err(|error| {
            let what = format!("cannot write {}: {error}", path.display());
            Failure::new(Exit::Machine, what)
        })
    }
}

impl Set {
    fn run(&self) -> Outcome {
        let rates = self.rates.both();
        if rates == [None; 2] {
            let failure = Failure::new(Exit::Usage, "nothing is to change");
            return Err(failure.hint("give --send RATE, --receive RATE or both"));
        }
        show(vec![limit::set(&self.id, rates).map_err(failed)?], &self.format)
    }
}

impl List {
    fn run(&self) -> Outcome {
        show(limit::list(), &self.format)
    }
}

impl Rates {
    fn both(&self) -> [Option<u64>; 2] {
        [self.send, self.receive]
    }
}

impl Each {
    fn per(self) -> Per {
        match self {
            Each::Tree => Per::Tree,
            Each::Process => Per::Process,
            Each::Socket => Per::Socket,
            Each::Peer => Per::Peer,
        }
    }
}

fn show(limits: Vec<Status>, format: &Format) -> Outcome {
    if format.json {
        output::json(&Limits { limits })?;
    } else if limits.is_empty() {
        output::talk("no command runs under a limit");
    } else {
        output::data(&table(&limits))?;
    }
    Ok(Exit::Fine.code())
}

fn table(limits: &[Status]) -> String {
    let mut table = Table::new(&[
        ("limit", Align::Left),
        ("per", Align::Left),
        ("send", Align::Right),
        ("sent", Align::Right),
        ("receive", Align::Right),
        ("received", Align::Right),
    ]);
    for limit in limits {
        let asked = |moved: &Moved| moved.limit_bps.map_or_else(|| "-".to_owned(), quantity::rate);
        let moved = |moved: &Moved| quantity::bytes(moved.bytes);
        let Status { id, per, send, receive, .. } = limit;
        let sent = [asked(send), moved(send), asked(receive), moved(receive)];
        table.row([id.clone(), (*per).to_owned()].into_iter().chain(sent));
    }
    table.render("")
}

/// What was asked and delivered.
fn lines(status: &Status) -> Vec<String> {
    let each = [("sent", &status.send), ("received", &status.receive)];
    let parts: Vec<String> = each.map(|(verb, moved)| part(verb, moved)).into();
    let mut lines = vec![format!("limit: {}", parts.join("; "))];
    if status.crowded > 0 {
        lines.push(format!(
            "not limited alone: {} times there was no room for another budget, and one was shared",
            status.crowded
        ));
    }
    if status.held.by_notification > 0 {
        lines.push(held(&status.held));
    }
    let not_limited = status.not_limited.iter();
    lines.extend(
        not_limited.map(|it| format!("NOT LIMITED: {} {}; see docs/limit.md", it.count, it.what)),
    );
    lines
}

/// How programs were held.
fn held(held: &Held) -> String {
    format!(
        "held: {} programs by the library; {} processes, static or without it, by notification, in {} \
         calls",
        held.by_library, held.by_notification, held.notified_calls
    )
}

fn part(verb: &str, moved: &Moved) -> String {
    let bytes = quantity::bytes(moved.bytes);
    let delivered = moved.delivered_bps.map(quantity::rate);
    let delivered = delivered.map(|rate| format!(" at {rate}")).unwrap_or_default();
    let Some(limit) = moved.limit_bps else { return format!("{verb} {bytes}{delivered}") };
    let waited = quantity::span(Span::from_nanos(moved.waited_ns));
    format!("{verb} {bytes}{delivered} of {}, waited {waited}", quantity::rate(limit))
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
    text.parse::<Rate>().map(Rate::bits_per_second).map_err(|error| error.to_string())
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

fn failed(error: LimitError) -> Failure {
    let (code, hint) = match &error {
        LimitError::Command { source, .. } => match source.error.kind() {
            std::io::ErrorKind::NotFound => (Exit::NOT_FOUND, None),
            _ => (Exit::NOT_EXECUTABLE, None),
        },
        LimitError::NoLimit(_) => (Exit::Usage.code(), Some("`windtunnel limit list` shows them")),
        LimitError::GainsRights(_) => (
            Exit::Machine.code(),
            Some("a node of an emulated network limits any program: `rate` of its link"),
        ),
        LimitError::NoNamespace(_) => {
            (Exit::Machine.code(), Some("`windtunnel doctor` shows what this machine allows"))
        }
        LimitError::Deny { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            (Exit::Usage.code(), None)
        }
        LimitError::DenyHere(_) => (Exit::Usage.code(), Some("start it in another folder")),
        LimitError::Per { .. } => {
            (Exit::Usage.code(), Some("leave --per out, or use another name"))
        }
        _ => (Exit::Machine.code(), None),
    };
    let error: Box<dyn Error + Send + Sync> = error.into();
    Failure::Error { error, hint: hint.map(str::to_owned), code }
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
        assert!(group("4711").is_err() && group("../x").is_err() && group("").is_err());
    }
}
