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

use crate::arguments::Verb;
use crate::failure::VerbFailure;

/// The exit code, or why there is none of the verb's own.
pub(crate) type Outcome = Result<u8, VerbFailure>;

/// Executes the verb of the command line.
pub(crate) fn run(verb: &Verb) -> Outcome {
    match verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::Limit(arguments) => limit::run(arguments),
        Verb::Link(arguments) => link::run(arguments),
        Verb::Check(arguments) => check::run(arguments),
        Verb::Init(arguments) => init::run(arguments),
        Verb::Generate(arguments) => generate::run(arguments),
        Verb::Import(arguments) => import::run(arguments),
        Verb::Report(arguments) => report::run(arguments),
        Verb::Explain(arguments) => explain::run(arguments),
        Verb::Plot(arguments) => plot::run(arguments),
        Verb::Edit(arguments) => edit::run(arguments),
        Verb::Web(arguments) => web::run(arguments),
        Verb::Exec(arguments) => exec::run(arguments),
        Verb::Shell(arguments) => shell::run(arguments),
        Verb::Ps(arguments) => ps::run(arguments),
        Verb::Ls(arguments) => ps::list(arguments),
        Verb::Links(arguments) => links::run(arguments),
        Verb::Top(arguments) => top::run(arguments),
        Verb::Service(arguments) => service::run(arguments),
        Verb::Set(arguments) => set::run(arguments),
        Verb::Down(arguments) => state::down(arguments),
        Verb::Up(arguments) => state::up(arguments),
        Verb::Do(arguments) => happen::run(arguments),
        Verb::Record(arguments) => record::run(arguments),
        Verb::Reserve(arguments) => reserve::run(arguments),
        Verb::Capture(arguments) => capture::run(arguments),
        Verb::Records(arguments) => records::run(arguments),
        Verb::Stop(arguments) => stop::run(arguments),
        Verb::Schema(arguments) => schema::run(arguments),
        Verb::Keygen(arguments) => keygen::run(arguments),
        Verb::Agent(arguments) => agent::run(arguments),
        Verb::Part(arguments) => part::run(arguments),
        Verb::Play(arguments) => play::run(arguments),
        Verb::Attach(arguments) => attach::run(arguments),
        Verb::Hosts(arguments) => hosts::run(arguments),
        Verb::Images(arguments) => images::run(arguments),
        Verb::Doctor(arguments) => doctor::run(arguments),
        Verb::Completions(arguments) => completions::run(arguments),
        Verb::Complete(arguments) => complete::run(arguments),
        Verb::Manual(arguments) => manual::run(arguments),
    }
}
