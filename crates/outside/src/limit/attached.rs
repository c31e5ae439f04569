//! Limits of a program that runs already, and of all below it.
//!
//! What can be undone is done first; the filter, which cannot, comes after it. Once a signal ends the
//! limit, processes leave their control group, go on and have the limits that they had; the calls of
//! those under a filter go on to be shown, to the keeper, which lets them pass.

use std::cell::Cell;

use windtunnel_limit::SeccompKeeper;
use windtunnel_limit::attach::keeper::AttachOutcome;
use windtunnel_sys::process::Signal;
use windtunnel_sys::seccomp::has_filters_for_running;
use windtunnel_sys::{clock, ptrace, signal};

use super::control::LimitControlThread;
use super::destination::AllowedDestination;
use super::error::LimitError;
use super::holding::CommandLimitEnforcer;
use super::network::CommandNetworkLimiter;
use super::options::CommandLimitOptions;
use super::registry::LimitRegistryEntry;
use super::resources;
use super::status::{AttachedProcessStatus, CommandLimitReport};
use super::target::LimitTargetProcess;
use crate::error::system;
use crate::signals::CommandSignalReader;

/// Limits a process that runs already with all below it, until the last of them has ended or a signal
/// comes. `begins` is called once all is limited.
///
/// # Errors
/// If it cannot be limited: then it is as before.
pub fn attach(
    wanted: &CommandLimitOptions,
    number: i32,
    begins: impl FnOnce(Option<AttachOutcome>),
) -> Result<CommandLimitReport, LimitError> {
    let LimitTargetProcess { pid, words } = LimitTargetProcess::find(number)?;
    let is_shown = wanted.moves() || !wanted.connect.is_empty();
    if is_shown {
        check_kernel(number)?;
    }
    // What forks comes before there are threads. The keeper has no descriptors but its own.
    let keeper =
        is_shown.then(SeccompKeeper::start).transpose().map_err(system("start a keeper"))?;
    let shared = LimitRegistryEntry::join(wanted)?;
    check_group(wanted, &shared)?;
    let mut holding = CommandLimitEnforcer::around(&wanted.resources, pid)?;
    // Threads must not take them; and a limit that is stopped would stop the programs.
    let signals = CommandSignalReader::open()?;
    STOPPING.into_iter().try_for_each(signal::ignore).map_err(system("ignore signals"))?;
    let shown = keeper
        .map(|(keeper, door)| CommandNetworkLimiter::attach(wanted, &shared, keeper, door, pid))
        .transpose();
    let (network, attached) = match shown {
        Ok(shown) => shown.unzip(),
        Err(error) => {
            holding.give_up();
            return Err(error);
        }
    };
    holding.begin()?;
    let control = LimitControlThread::start(shared.socket(), holding, wanted.moves());
    let control = control.map_err(system("answer for the limit"))?;
    let began_ns = clock::monotonic_ns();
    begins(attached);
    let is_over = || {
        let has_programs = network.as_ref().is_some_and(CommandNetworkLimiter::has_programs);
        !has_programs && control.holding().is_over()
    };
    signals.wait_until(slowly(&is_over));
    let detached = !is_over();
    let duration_ns = clock::monotonic_ns().saturating_sub(began_ns);
    let keeper = network.as_ref().and_then(CommandNetworkLimiter::keeper_pid);
    let refused = network.map(CommandNetworkLimiter::finish).unwrap_or_default();
    let (used, cpu_windows) = shared.end(control, began_ns);
    let running = AttachedProcessStatus {
        pid: number,
        attached: attached.map(|it| it.processes),
        stopped_ns: attached.map(|it| it.stopped_ns),
        detached,
        keeper: keeper.filter(|_| detached).map(|pid| pid.as_raw_nonzero().get()),
    };
    Ok(CommandLimitReport {
        program: format!("windtunnel {}", env!("CARGO_PKG_VERSION")),
        command: words,
        duration_ns,
        exit_code: 0,
        denied: Vec::new(),
        not_denied: Vec::new(),
        connect: wanted.connect.iter().map(AllowedDestination::to_string).collect(),
        refused: (!wanted.connect.is_empty()).then_some(refused),
        status: shared.status(used),
        cpu_windows,
        running: Some(running),
    })
}

/// Whether this machine can have a process install a filter that runs already.
fn check_kernel(pid: i32) -> Result<(), LimitError> {
    let refused = |why: &str| {
        let hint = "--cpu, --memory, --pids and --open-files need no filter; a command can be started \
                    under a limit";
        Err(LimitError::NoTarget { pid, why: why.to_owned(), hint })
    };
    if !ptrace::SUPPORTED {
        return refused(
            "a filter for its calls can be installed on x86-64 only, and this is another processor",
        );
    }
    if !has_filters_for_running() {
        return refused(
            "a filter for the calls of all of its threads needs Linux 5.19, and this is older",
        );
    }
    Ok(())
}

/// A group of commands has its control group around the first of them, which a process that runs
/// already would have to leave its own for.
fn check_group(
    wanted: &CommandLimitOptions,
    shared: &LimitRegistryEntry,
) -> Result<(), LimitError> {
    let has_parts = !resources::shared(&wanted.resources).is_none();
    match &wanted.group {
        Some(name) if has_parts || shared.has_group() => {
            Err(LimitError::GroupOfRunning(name.clone()))
        }
        _ => Ok(()),
    }
}

/// The same, but looked at now and then only: a look reads the states of processes.
fn slowly(holds: &impl Fn() -> bool) -> impl Fn() -> bool {
    let next_ns = Cell::new(0);
    move || {
        let now_ns = clock::monotonic_ns();
        let is_due = now_ns >= next_ns.get();
        is_due && {
            let holds = holds();
            next_ns.set(clock::monotonic_ns() + LOOK_NS);
            holds
        }
    }
}

/// By which a terminal stops programs.
const STOPPING: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
const LOOK_NS: u64 = 100_000_000;
