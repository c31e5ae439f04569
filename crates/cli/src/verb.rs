//! The verbs, one a file.

pub(crate) mod agent;
pub(crate) mod attach;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod happen;
pub(crate) mod hosts;
pub(crate) mod images;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod keygen;
pub(crate) mod limit;
pub(crate) mod link;
pub(crate) mod links;
pub(crate) mod manual;
pub(crate) mod part;
pub(crate) mod play;
pub(crate) mod plot;
pub(crate) mod ps;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod service;
pub(crate) mod set;
pub(crate) mod shell;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod top;
pub(crate) mod web;

use crate::arguments::CommandLineVerb;
use crate::failure::VerbFailure;

/// The exit code, or why there is none of the verb's own.
pub(crate) type Outcome<T = u8> = Result<T, VerbFailure>;

/// Executes the verb of the command line.
pub(crate) fn run(verb: &CommandLineVerb) -> Outcome {
    match verb {
        CommandLineVerb::Run(arguments) => run::run(arguments),
        CommandLineVerb::Limit(arguments) => limit::run(arguments),
        CommandLineVerb::Link(arguments) => link::run(arguments),
        CommandLineVerb::Check(arguments) => check::run(arguments),
        CommandLineVerb::Init(arguments) => init::run(arguments),
        CommandLineVerb::Generate(arguments) => generate::run(arguments),
        CommandLineVerb::Import(arguments) => import::run(arguments),
        CommandLineVerb::Report(arguments) => report::run(arguments),
        CommandLineVerb::Explain(arguments) => explain::run(arguments),
        CommandLineVerb::Plot(arguments) => plot::run(arguments),
        CommandLineVerb::Edit(arguments) => edit::run(arguments),
        CommandLineVerb::Web(arguments) => web::run(arguments),
        CommandLineVerb::Exec(arguments) => exec::run(arguments),
        CommandLineVerb::Shell(arguments) => shell::run(arguments),
        CommandLineVerb::Ps(arguments) => ps::run(arguments),
        CommandLineVerb::Ls(arguments) => ps::list(arguments),
        CommandLineVerb::Links(arguments) => links::run(arguments),
        CommandLineVerb::Top(arguments) => top::run(arguments),
        CommandLineVerb::Service(arguments) => service::run(arguments),
        CommandLineVerb::Set(arguments) => set::run(arguments),
        CommandLineVerb::Down(arguments) => state::down(arguments),
        CommandLineVerb::Up(arguments) => state::up(arguments),
        CommandLineVerb::Do(arguments) => happen::run(arguments),
        CommandLineVerb::Record(arguments) => record::run(arguments),
        CommandLineVerb::Reserve(arguments) => reserve::run(arguments),
        CommandLineVerb::Capture(arguments) => capture::run(arguments),
        CommandLineVerb::Records(arguments) => records::run(arguments),
        CommandLineVerb::Stop(arguments) => stop::run(arguments),
        CommandLineVerb::Schema(arguments) => schema::run(arguments),
        CommandLineVerb::Keygen(arguments) => keygen::run(arguments),
        CommandLineVerb::Agent(arguments) => agent::run(arguments),
        CommandLineVerb::Part(arguments) => part::run(arguments),
        CommandLineVerb::Play(arguments) => play::run(arguments),
        CommandLineVerb::Attach(arguments) => attach::run(arguments),
        CommandLineVerb::Hosts(arguments) => hosts::run(arguments),
        CommandLineVerb::Images(arguments) => images::run(arguments),
        CommandLineVerb::Doctor(arguments) => doctor::run(arguments),
        CommandLineVerb::Completions(arguments) => completions::run(arguments),
        CommandLineVerb::Complete(arguments) => complete::run(arguments),
        CommandLineVerb::Manual(arguments) => manual::run(arguments),
    }
}
