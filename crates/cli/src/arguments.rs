//! The command line as types. Each verb's own arguments are in its file.

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};

use crate::verb;

/// Runs unmodified programs on an emulated network: one file, one machine, no root.
///
/// A scenario file describes nodes with their programs, routers, and links with latency, loss, rate
/// and queue. `windtunnel run` builds that network out of namespaces, runs the programs on it, and
/// leaves a folder that says what happened and how faithful the emulation was.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, max_term_width = 100, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(Box<verb::run::Arguments>),
    Link(Box<verb::link::Arguments>),
    Check(verb::check::Arguments),
    Edit(verb::edit::Arguments),
    Init(verb::init::Arguments),
    Generate(Box<verb::generate::Arguments>),
    Import(Box<verb::import::Arguments>),
    Exec(verb::exec::Arguments),
    Shell(verb::shell::Arguments),
    Ps(verb::ps::Arguments),
    Ls(verb::ps::Everywhere),
    Links(verb::links::Arguments),
    Top(verb::top::Arguments),
    Web(verb::web::Arguments),
    Set(verb::set::Arguments),
    Down(verb::state::Down),
    Up(verb::state::Up),
    Do(verb::happen::Arguments),
    Service(Box<verb::service::Arguments>),
    Record(Box<verb::record::Arguments>),
    Limit(Box<verb::limit::Arguments>),
    Reserve(verb::reserve::Arguments),
    Capture(verb::capture::Arguments),
    Records(verb::records::Arguments),
    Stop(verb::stop::Arguments),
    Report(verb::report::Arguments),
    Explain(verb::explain::Arguments),
    Plot(Box<verb::plot::Arguments>),
    Schema(verb::schema::Arguments),
    Keygen(verb::keygen::Arguments),
    Agent(Box<verb::agent::Arguments>),
    Hosts(verb::hosts::Arguments),
    Attach(verb::attach::Arguments),
    #[command(hide = true)]
    Part(verb::part::Arguments),
    #[command(hide = true)]
    Play(verb::play::Arguments),
    Images(verb::images::Arguments),
    Doctor(verb::doctor::Arguments),
    Completions(verb::completions::Arguments),
    #[command(hide = true)]
    Complete(verb::complete::Arguments),
    Manual(verb::manual::Arguments),
}

/// A command of a node, in the words of a shell.
pub(crate) fn node_command(text: &str) -> Result<String, String> {
    match shell_words::split(text) {
        Err(_) => Err("a quote is not closed".to_owned()),
        Ok(words) if words.is_empty() => Err("no command; leave it out for no program".to_owned()),
        Ok(_) if text.contains('\0') => Err("it holds a NUL character".to_owned()),
        Ok(_) => Ok(text.to_owned()),
    }
}

/// The format of the output.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Format {
    /// Write JSON to standard output, with the fields of the human output; failures too
    #[arg(long, env = "WINDTUNNEL_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

/// What is added to the scenario.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Added {
    /// Give several nodes something together, as `reserve` of a scenario does, beside what that
    /// reserves, such as 'site={of: [web, db], cpu: {min: 80%}}'; may be given more than once. A name
    /// that the scenario has is refused. The variable holds one
    #[arg(long, value_name = "NAME={of: …}", env = "WINDTUNNEL_RESERVE")]
    pub(crate) reserve: Vec<String>,
}
