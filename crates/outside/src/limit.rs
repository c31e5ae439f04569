//! Limits of programs outside any emulation, on the machine's own network.
//!
//! Bandwidth: [`command`] starts a program with the preload library, which has its calls wait for the
//! budget in a region ([`windtunnel_budget::pacing`]); the programs that it starts are under the same.
//! Calls of those that the library cannot enter wait for a thread of this process (`supervision`).
//! The region is a file in a folder of this user, by which [`set`] changes a limit and [`list`] shows
//! them. One that has a name is shared by all commands that name it.
//!
//! A program that runs already is held by [`attach`]: its calls wait for the same thread.
//!
//! Processor time, memory and processes: a control group, or what this process can do itself
//! (`holding`). It answers at a socket beside the file (`control`).

mod attached;
mod control;
mod destination;
mod error;
mod holding;
mod network;
mod note;
mod options;
mod paths;
mod registry;
mod resources;
mod status;
mod supervision;
mod target;

use std::ffi::{OsStr, OsString};

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid, SpawnError};

use crate::error::{CommandStartError, system};
use crate::program::{CommandInvocation, gains_rights, program_of};
use crate::signals::CommandSignalReader;
use control::LimitControlThread;
use holding::CommandLimitEnforcer;
use network::CommandNetworkLimiter;
use registry::LimitRegistryEntry;

pub use attached::attach;
pub use destination::AllowedDestination;
pub use error::LimitError;
pub use options::CommandLimitOptions;
pub use registry::{list, set};
pub use resources::{CommandCpuSample, CommandCpuUsage, CommandResourceUsage};
pub use status::{
    AttachedProcessStatus, CommandLimitReport, CommandLimitStatus, DirectionThroughput,
    LimitEnforcementCounts, NotLimited,
};
pub use supervision::RefusedDestinations;
pub use windtunnel_limit::attach::keeper::AttachOutcome;

/// Runs a command to its end under a limit. Its standard streams, its group and its other
/// descriptors are the caller's; signals that a process sends to the caller are passed on.
///
/// The caller inherits the orphans of the command from now on. Where some are left it waits for
/// their end as well, once `waits` has been called, or for a signal. Where bandwidth is limited, the
/// calling thread, and all that it starts from now on, cannot use io_uring or MPTCP.
///
/// # Errors
/// If it does not start, or cannot be limited.
pub fn command(
    wanted: &CommandLimitOptions,
    arguments: &[OsString],
    waits: impl FnOnce(),
) -> Result<CommandLimitReport, LimitError> {
    let (program, moves) = (program_of(arguments), wanted.moves());
    check(program, moves)?;
    let denied = paths::resolve(&wanted.denied)?;
    let mut shared = LimitRegistryEntry::join(wanted)?;
    // What forks, and what changes namespaces, comes before there are threads.
    let mut holding = CommandLimitEnforcer::prepare(&wanted.resources, shared.shelf())?;
    shared.publish(&holding, &wanted.resources)?;
    let not_denied = if denied.is_empty() { Vec::new() } else { paths::deny(&denied)? };
    // Threads must not take them.
    let signals = CommandSignalReader::open_for_command()?;
    let is_looked_at = moves || !wanted.connect.is_empty();
    let network =
        is_looked_at.then(|| CommandNetworkLimiter::start(wanted, &shared)).transpose()?;
    holding.begin()?;
    let guard = holding.guard_pid();
    let control = LimitControlThread::start(shared.socket(), holding, moves);
    let control = control.map_err(system("answer for the limit"))?;
    let began_ns = clock::monotonic_ns();
    let pid = spawn(arguments, network.as_ref(), &shared, &control.holding());
    let pid = pid.map_err(|source| CommandStartError::new(program.to_owned(), source))?;
    let status = signals.wait_for(pid);
    let duration_ns = clock::monotonic_ns().saturating_sub(began_ns);
    signals.wait_for_rest(|| count_children(guard), |_| waits());
    let refused = network.map(CommandNetworkLimiter::finish).unwrap_or_default();
    let (used, cpu_windows) = shared.end(control, began_ns);
    Ok(CommandLimitReport {
        program: format!("windtunnel {}", env!("CARGO_PKG_VERSION")),
        command: arguments.iter().map(|word| word.display().to_string()).collect(),
        duration_ns,
        exit_code: status.shell_code(),
        denied,
        not_denied,
        connect: wanted.connect.iter().map(AllowedDestination::to_string).collect(),
        refused: (!wanted.connect.is_empty()).then_some(refused),
        status: shared.status(used),
        cpu_windows,
        running: None,
    })
}

/// Whether a program can be held to a limit.
fn check(program: &OsStr, moves: bool) -> Result<(), LimitError> {
    let preloaded = [network::VARIABLE, windtunnel_record::preload::REGION_VARIABLE];
    if moves && preloaded.iter().any(|name| std::env::var_os(name).is_some()) {
        return Err(LimitError::Nested);
    }
    if moves && gains_rights(program) {
        return Err(LimitError::GainsRights(program.to_owned()));
    }
    Ok(())
}

fn spawn(
    arguments: &[OsString],
    network: Option<&CommandNetworkLimiter>,
    shared: &LimitRegistryEntry,
    holding: &CommandLimitEnforcer,
) -> Result<Pid, SpawnError> {
    let command = CommandInvocation::new(arguments, |variables| {
        network.into_iter().for_each(|network| network.add_variables(variables, shared));
    })?;
    let mut plan = command.plan();
    let groups = holding.entrances();
    plan.groups = &groups;
    plan.limits = holding.process_limits();
    if let Some(network) = network {
        network.show(program_of(arguments), &mut plan);
    }
    process::spawn(&plan)
}

/// How many children are left that have not been waited for, but for one.
fn count_children(but: Option<Pid>) -> u64 {
    let own = process::current().as_raw_nonzero();
    let but = but.map(|pid| pid.as_raw_nonzero().to_string());
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
    let children = children.unwrap_or_default();
    children.split_ascii_whitespace().filter(|child| Some(*child) != but.as_deref()).count() as u64
}
