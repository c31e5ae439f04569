//! `cargo run -p xtask -- bpf [--check] | docs [--check] | tidy`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the repository
#[derive(Debug, Parser)]
struct ChoreArguments {
    #[command(subcommand)]
    chore: ChoreSubcommand,
}

#[derive(Debug, Subcommand)]
enum ChoreSubcommand {
    /// Compile the BPF programs below crates/record/bpf/
    Bpf {
        /// Only say whether the object is of the present source
        #[arg(long)]
        check: bool,
    },
    /// Write the generated pages below docs/
    Docs {
        /// Only list those that are not current
        #[arg(long)]
        check: bool,
    },
    /// Check the tree mechanically, and its dependencies against deny.toml
    Tidy,
}

fn main() -> ExitCode {
    let root = xtask::root();
    let faults = match ChoreArguments::parse().chore {
        ChoreSubcommand::Bpf { check: true } => xtask::bpf::stale(&root),
        ChoreSubcommand::Bpf { check: false } => xtask::bpf::write(&root),
        ChoreSubcommand::Docs { check: true } => xtask::docs::stale(&root),
        ChoreSubcommand::Docs { check: false } => xtask::docs::write(&root),
        ChoreSubcommand::Tidy => xtask::tidy::faults(&root).and_then(|mut faults| {
            faults.extend(xtask::supply::faults(&root)?);
            Ok(faults)
        }),
    };
    match faults {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            for fault in faults {
                println!("{fault}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
