//! `link`: two nodes and a link, without a file.

mod wrapper;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::FalseyValueParser;

use windtunnel_host::Observer;
use windtunnel_host::presence::find_program;
use windtunnel_model::NodeId;
use windtunnel_scenario::LoadedScenario;
use windtunnel_trace::report::RunReport;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::presence::{self, similar};
use crate::render::{summary, verdict};
use crate::verb::run::{RunFlags, RunOutcome};
use crate::{load, output};
use wrapper::LinkCommandObserver;

/// Run a command across one emulated link, without a file
///
/// The command runs in a node called `client`; the other end of the link is a node called `server`.
/// With --server, a program runs there too: the command starts once it listens, and when the
/// command has exited the run is over. The command has windtunnel's own standard input, output,
/// error and terminal, gets its signals, and gives it its exit code (127 if it is not found, 126 if
/// it cannot be executed). How faithful the run was is reported on standard error, with --json as
/// JSON; --strict makes it count. Options come before the command; `--` in front of it is only
/// needed where it begins with `-`.
/// Properties hold for each direction, as in a scenario file; --up (client to server) and
/// --down (server to client) take `key=value` pairs for one of them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinkArguments {
    #[command(flatten)]
    properties: LinkPropertyOptions,
    /// Properties from client to server only: `key=value`, several between spaces
    #[arg(long, value_name = "KEY=VALUE…", help_heading = LINK, env = "WINDTUNNEL_LINK_UP")]
    up: Option<String>,
    /// Properties from server to client only
    #[arg(long, value_name = "KEY=VALUE…", help_heading = LINK, env = "WINDTUNNEL_LINK_DOWN")]
    down: Option<String>,
    /// A program for the other end, such as 'iperf3 -s -1'
    #[arg(long, value_name = "COMMAND", env = "WINDTUNNEL_LINK_SERVER")]
    server: Option<String>,
    /// The other end is the machine's outside, called `internet`, instead of a node: the command
    /// reaches across the link what an ordinary program of this machine reaches, and with --allow-host
    /// servers of its loopback, under the name `host`
    #[arg(
        long,
        env = "WINDTUNNEL_LINK_INTERNET",
        value_parser = FalseyValueParser::new(),
        conflicts_with = "server"
    )]
    internet: bool,
    /// Condition to start the command: `listen`, `tcp:PORT`, `unix:PATH`, `log:REGEX`, or `none`
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "listen",
        requires = "server",
        env = "WINDTUNNEL_LINK_READY"
    )]
    ready: String,
    /// Write the scenario that this means, to begin a file with, and run nothing
    #[arg(long, env = "WINDTUNNEL_LINK_PRINT", value_parser = FalseyValueParser::new())]
    print: bool,
    /// Exit with 1 where the command exits with 0 and the run was not faithful, or the server
    /// failed
    #[arg(long, env = "WINDTUNNEL_LINK_STRICT", value_parser = FalseyValueParser::new())]
    strict: bool,
    #[command(flatten)]
    manner: RunFlags,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The keys of a link in a scenario.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = LINK)]
struct LinkPropertyOptions {
    /// Propagation delay each way, such as 40ms
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_LINK_LATENCY")]
    latency: Option<String>,
    /// Random delay on top, such as 2ms or '{spread: 2ms, distribution: normal}'
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_LINK_JITTER")]
    jitter: Option<String>,
    /// Bandwidth, such as 10mbit, or '{trace: FILE}'
    #[arg(long, value_name = "RATE", env = "WINDTUNNEL_LINK_RATE")]
    rate: Option<String>,
    /// Packets that vanish, such as 1%
    #[arg(long, value_name = "SHARE", env = "WINDTUNNEL_LINK_LOSS")]
    loss: Option<String>,
    /// Room in front of the rate: packets, bytes or time, such as 50ms
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_LINK_QUEUE")]
    queue: Option<String>,
    /// Which packet is dropped when packets wait, such as drop-tail, fq-codel, pie
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_LINK_DISCIPLINE")]
    discipline: Option<String>,
    /// Packets that arrive twice
    #[arg(long, value_name = "SHARE", env = "WINDTUNNEL_LINK_DUPLICATE")]
    duplicate: Option<String>,
    /// Packets with a flipped bit
    #[arg(long, value_name = "SHARE", env = "WINDTUNNEL_LINK_CORRUPT")]
    corrupt: Option<String>,
    /// Packets that others overtake
    #[arg(long, value_name = "SHARE", env = "WINDTUNNEL_LINK_REORDER")]
    reorder: Option<String>,
    /// Largest IP packet in bytes
    #[arg(long, value_name = "BYTES", env = "WINDTUNNEL_LINK_MTU")]
    mtu: Option<String>,
    /// Framing charged for each packet, such as ethernet or 42
    #[arg(long, value_name = "BYTES", env = "WINDTUNNEL_LINK_OVERHEAD")]
    overhead: Option<String>,
    /// A table of (time, rate, latency, loss) that the link follows
    #[arg(long, value_name = "FILE", env = "WINDTUNNEL_LINK_TRACE")]
    trace: Option<String>,
    /// An access link by its name: lte, dsl, geo … (up is towards the server)
    #[arg(long, value_name = "NAME", env = "WINDTUNNEL_LINK_PRESET")]
    preset: Option<String>,
}

pub(crate) fn run(arguments: &LinkArguments) -> Outcome {
    let text = scenario(arguments)?;
    let base = std::env::current_dir().map_err(|error| {
        VerbFailure::new(ExitCategory::Machine, format!("cannot find the current folder: {error}"))
    })?;
    // A scenario that is only printed must be valid too.
    let mut loaded =
        load::resolve(NAME, text.as_bytes(), "link", &base, arguments.manner.instead())?;
    if arguments.print {
        output::data(&(text + &reserve(&arguments.manner.added.reserve)))?;
        return Ok(0);
    }
    check_command(arguments, &base)?;
    presence::check(&mut loaded, NAME, text.as_bytes(), &base)?;
    wrap(loaded, base, arguments)
}

/// A command that cannot be run has the exit code that shells give it.
fn check_command(arguments: &LinkArguments, base: &Path) -> Result<(), VerbFailure> {
    let name = arguments.command.first().map_or("", String::as_str);
    find_program(name, None, base).map_err(|error| {
        let (code, hint) = (error.exit_code(), error.hint().or_else(|| similar(name)));
        VerbFailure::Error { error: error.into(), hint, code }
    })
}

/// Does the run, in which the command stands for this process.
fn wrap(loaded: LoadedScenario, base: PathBuf, arguments: &LinkArguments) -> Outcome {
    let client = loaded.plan.node_named(CLIENT).unwrap_or(NodeId(0));
    let (wrapper, foreground) = LinkCommandObserver::new(CLIENT, client)?;
    let wrapper = Arc::new(wrapper);
    let run = |plan, options: &_| {
        let observer: Arc<dyn Observer> = Arc::<LinkCommandObserver>::clone(&wrapper);
        windtunnel_host::run_in_foreground(plan, options, observer, foreground)
    };
    let mut manner = arguments.manner.clone();
    // On the command line, that is the permission.
    manner.allow_internet |= arguments.internet;
    let ran = RunOutcome::of(loaded, base, &manner, run);
    let code = wrapper.finish();
    let RunOutcome { report, folder } = ran?;
    if code.is_none() {
        // The server failed, and its last lines may show the cause.
        wrapper.lines().iter().for_each(|line| output::talk(line));
    }
    print(arguments, &report, &folder);
    let judged = report.verdict.exit_code;
    Ok(match code {
        Some(0) if arguments.strict => judged,
        Some(code) => code,
        None => judged.max(ExitCategory::Check.code()),
    })
}

/// Prints the report on standard error: standard output is the command's.
fn print(arguments: &LinkArguments, report: &RunReport, folder: &Path) {
    if arguments.manner.is_json() {
        let json = serde_json::to_string_pretty(report);
        return output::talk(&json.unwrap_or_else(|error| format!("error: {error}")));
    }
    let mut text = if arguments.manner.is_quiet() { String::new() } else { summary::text(report) };
    text.push_str(&verdict::line(&report.verdict, folder, output::talk_colours()));
    output::talk(&text);
}

/// The scenario that the options mean.
fn scenario(arguments: &LinkArguments) -> Result<String, VerbFailure> {
    let after = if arguments.server.is_some() { ", after: server" } else { "" };
    let mut text = format!("nodes:\n  client: {{run: {}{after}}}\n", list(&arguments.command));
    let far = if arguments.internet { "internet" } else { "server" };
    match &arguments.server {
        Some(command) => {
            let ready = match arguments.ready.as_str() {
                "none" => String::new(),
                ready => format!(", ready: {}", quoted(ready)),
            };
            text += &format!("  server: {{run: {}, daemon: true{ready}}}\n", quoted(command));
        }
        None => text += &format!("  {far}: {{}}\n"),
    }
    text += &format!("links:\n  - between: [client, {far}]\n    name: link\n");
    for (key, value) in arguments.properties.all() {
        // A line of its own: a mistake is shown with the line.
        let _ = writeln!(text, "    {key}: {value}");
    }
    for (direction, pairs) in [("up", &arguments.up), ("down", &arguments.down)] {
        if let Some(pairs) = pairs {
            let _ = writeln!(text, "    {direction}: {{{}}}", flow(direction, pairs)?);
        }
    }
    Ok(text)
}

/// Reservations as the end of a scenario; they have no mistakes.
fn reserve(texts: &[String]) -> String {
    let mut text = if texts.is_empty() { "" } else { "reserve:\n" }.to_owned();
    for (name, value) in texts.iter().filter_map(|text| text.split_once('=')) {
        // A value of several lines is below its name, where it may be indented as it likes.
        let lines: Vec<&str> = value.lines().collect();
        let begin = if lines.len() > 1 { "\n    " } else { " " };
        let _ = writeln!(text, "  {name}:{begin}{}", lines.join("\n    "));
    }
    text
}

impl LinkPropertyOptions {
    fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("preset", &self.preset),
            ("latency", &self.latency),
            ("jitter", &self.jitter),
            ("rate", &self.rate),
            ("loss", &self.loss),
            ("queue", &self.queue),
            ("discipline", &self.discipline),
            ("duplicate", &self.duplicate),
            ("corrupt", &self.corrupt),
            ("reorder", &self.reorder),
            ("mtu", &self.mtu),
            ("overhead", &self.overhead),
            ("trace", &self.trace),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

/// `latency=5ms loss=1%` as the inside of a map in YAML's flow style.
fn flow(direction: &str, pairs: &str) -> Result<String, VerbFailure> {
    let pair = |word: &str| match word.split_once('=') {
        Some((key, value)) => Ok(format!("{key}: {value}")),
        None => {
            let text = format!("--{direction}: `{word}` is not key=value");
            Err(VerbFailure::new(ExitCategory::Usage, text)
                .hint("for example --down 'rate=2mbit loss=1%'"))
        }
    };
    let pairs: Result<Vec<_>, _> = pairs.split_whitespace().map(pair).collect();
    Ok(pairs?.join(", "))
}

/// A list of strings in YAML, of which JSON is a subset.
fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const LINK: &str = "Link";
/// The name of the input in mistakes.
const NAME: &str = "command line";
/// The command's node.
const CLIENT: &str = "client";

const EXAMPLES: &str = "Examples:
  windtunnel link --latency 40ms --rate 10mbit --loss 1% --server 'iperf3 -s -1' -- iperf3 -c server
  windtunnel link --latency 40ms bash
  windtunnel link --preset lte --server 'python3 -m http.server 80' -- curl -s http://server/
  windtunnel link --latency 150ms ping -c 5 server
  windtunnel link --preset 3g --internet -- chromium
  windtunnel link --internet --rate 1mbit -- curl -sO https://example.org/file";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: LinkArguments,
    }

    fn text(words: &[&str]) -> String {
        let words = std::iter::once("link").chain(words.iter().copied());
        scenario(&Line::try_parse_from(words).unwrap().arguments).unwrap()
    }

    #[test]
    fn options_become_the_file_that_a_person_would_write() {
        let line =
            ["--latency", "40ms", "--server", "iperf3 -s -1", "--", "iperf3", "-c", "server"];
        assert_eq!(
            text(&line),
            "nodes:
  client: {run: [\"iperf3\", \"-c\", \"server\"], after: server}
  server: {run: \"iperf3 -s -1\", daemon: true, ready: \"listen\"}
links:
  - between: [client, server]
    name: link
    latency: 40ms
"
        );
    }

    #[test]
    fn one_direction_has_properties_of_its_own_and_a_server_is_not_needed() {
        assert_eq!(
            text(&["--down", "rate=2mbit loss=1%", "--", "ping", "a \"b\""]),
            "nodes:
  client: {run: [\"ping\", \"a \\\"b\\\"\"]}
  server: {}
links:
  - between: [client, server]
    name: link
    down: {rate: 2mbit, loss: 1%}
"
        );
    }

    #[test]
    fn reservations_end_the_text() {
        assert_eq!(reserve(&[]), "");
        let texts = ["both={of: [client, server]}".to_owned(), "one=of: client\ncpu: 1".to_owned()];
        assert_eq!(
            reserve(&texts),
            "reserve:\n  both: {of: [client, server]}\n  one:\n    of: client\n    cpu: 1\n"
        );
    }

    #[test]
    fn every_property_of_a_link_in_a_file_can_be_given() {
        let schema = windtunnel_scenario::schema().to_string();
        let all = ["latency", "jitter", "rate", "loss", "queue", "discipline", "duplicate"];
        let more = ["corrupt", "reorder", "mtu", "overhead", "trace", "preset"];
        for key in all.into_iter().chain(more) {
            assert!(schema.contains(&format!("\"{key}\"")), "{key}");
            assert!(text(&[&format!("--{key}"), "x", "--", "true"]).contains(&format!("{key}: x")));
        }
    }
}
