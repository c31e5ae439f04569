//! `records`: what a run has recorded or records now, shown, summed up and handed on.

mod choice;
mod export;
mod follow;
mod line;
mod show;
mod stats;
mod workload;

use clap::Subcommand;

use crate::failure::Outcome;

/// Show, sum up, export or follow the records of a run
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct RecordsArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Show(Box<show::RecordsShowArguments>),
    Stats(Box<stats::RecordsStatsArguments>),
    Export(Box<export::RecordsExportArguments>),
    Follow(Box<follow::RecordsFollowArguments>),
    Workload(Box<workload::RecordsWorkloadArguments>),
}

pub(crate) fn run(arguments: &RecordsArguments) -> Outcome {
    match &arguments.task {
        Task::Show(arguments) => show::run(arguments),
        Task::Stats(arguments) => stats::run(arguments),
        Task::Export(arguments) => export::run(arguments),
        Task::Follow(arguments) => follow::run(arguments),
        Task::Workload(arguments) => workload::run(arguments),
    }
}
