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
pub(crate) struct CommandLineArguments {
    #[command(subcommand)]
    pub(crate) verb: CommandLineVerb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum CommandLineVerb {
    Run(Box<verb::run::RunArguments>),
    Link(Box<verb::link::LinkArguments>),
    Check(verb::check::CheckArguments),
    Edit(verb::edit::EditArguments),
    Init(verb::init::InitArguments),
    Generate(Box<verb::generate::GenerateArguments>),
    Import(Box<verb::import::ImportArguments>),
    Exec(verb::exec::ExecArguments),
    Shell(verb::shell::ShellArguments),
    Ps(verb::ps::PsArguments),
    Ls(verb::ps::LsArguments),
    Links(verb::links::LinksArguments),
    Top(verb::top::TopArguments),
    Web(verb::web::WebArguments),
    Set(verb::set::SetArguments),
    Down(verb::state::DownArguments),
    Up(verb::state::UpArguments),
    Do(verb::happen::DoArguments),
    Service(Box<verb::service::ServiceArguments>),
    Record(Box<verb::record::RecordArguments>),
    Limit(Box<verb::limit::LimitArguments>),
    Reserve(verb::reserve::ReserveArguments),
    Capture(verb::capture::CaptureArguments),
    Records(verb::records::RecordsArguments),
    Stop(verb::stop::StopArguments),
    Report(verb::report::ReportArguments),
    Explain(verb::explain::ExplainArguments),
    Plot(Box<verb::plot::PlotArguments>),
    Schema(verb::schema::SchemaArguments),
    Keygen(verb::keygen::KeygenArguments),
    Agent(Box<verb::agent::AgentArguments>),
    Hosts(verb::hosts::HostsArguments),
    Attach(verb::attach::AttachArguments),
    #[command(hide = true)]
    Part(verb::part::PartArguments),
    #[command(hide = true)]
    Play(verb::play::PlayArguments),
    Images(verb::images::ImagesArguments),
    Doctor(verb::doctor::DoctorArguments),
    Completions(verb::completions::CompletionsArguments),
    #[command(hide = true)]
    Complete(verb::complete::CompleteArguments),
    Manual(verb::manual::ManualArguments),
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
pub(crate) struct OutputFormat {
    /// Write JSON to standard output, with the fields of the human output; failures too
    #[arg(long, env = "WINDTUNNEL_JSON", value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

/// What is added to the scenario.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReservationOptions {
    /// Give several nodes something together, as `reserve` of a scenario does, beside what that
    /// reserves, such as 'site={of: [web, db], cpu: {min: 80%}}'; may be given more than once. A name
    /// that the scenario has is refused. The variable holds one
    #[arg(long, value_name = "NAME={of: …}", env = "WINDTUNNEL_RESERVE")]
    pub(crate) reserve: Vec<String>,
}
