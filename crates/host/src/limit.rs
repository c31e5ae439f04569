//! Limits of programs outside any emulation, on the machine's own network.
//!
//! [`command`] starts a program with the preload library, which has its calls wait for the budget in
//! a region ([`windtunnel_budget::pacing`]); the programs that it starts are under the same. Calls of
//! those that the library cannot enter wait for a thread of this process (`supervision`). The
//! region is a file in a folder of this user, by which [`set`] changes a limit and [`list`] shows
//! them. One that has a name is shared by all commands that name it.

mod paths;
mod place;
mod registry;
mod supervision;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use windtunnel_budget::pacing::{Direction, Escape, Hold, Per};
use windtunnel_sys::process::{self, Pid, SpawnError, SpawnPlan, Step};
use windtunnel_sys::{capability, clock, seccomp};

use crate::outside::end::Signals;
use crate::outside::start;
use place::Place;
pub use registry::{Shared, list, set};
use supervision::Supervision;

/// What limits a command.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The name of a group; without one the limit is the command's alone.
    pub group: Option<String>,
    /// Of a group that there is already, `None` takes what it has.
    pub per: Option<Per>,
    /// Bits a second to send and to receive, 0 for no limit; `None`: as it is.
    pub rates: [Option<u64>; 2],
    /// Files and folders that the command and all that it starts may not see.
    pub denied: Vec<PathBuf>,
}

/// A limit as it is: for JSON, and for tables.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The name of the group, or the number of the process that started the command.
    pub id: String,
    /// What has a budget of its own: tree, process, socket or peer.
    pub per: &'static str,
    pub send: Moved,
    pub receive: Moved,
    /// Times that sockets or peers had to share the budget of others, because there were too many.
    pub crowded: u64,
    pub held: Held,
    /// Programs, or ways to move bytes, that were seen and that the limit does not hold.
    pub escapes: u64,
    /// Of these, how many for which reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_limited: Vec<NotLimited>,
}

/// How programs are held.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Held {
    /// Programs that the preload library was loaded into.
    pub by_library: u64,
    /// Processes whose calls the kernel shows before it does them.
    pub by_notification: u64,
    /// Calls on sockets that were shown so.
    pub notified_calls: u64,
}

/// What is not held, for one reason.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NotLimited {
    pub count: u64,
    pub what: &'static str,
}

/// What has moved in a direction.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Moved {
    /// Asked: the limit, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bps: Option<u64>,
    pub bytes: u64,
    /// From the first byte to the last.
    pub duration_ns: u64,
    /// Delivered in that time; not there if nothing took any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_bps: Option<u64>,
    /// Time that calls waited for the limit, all threads together.
    pub waited_ns: u64,
    /// Calls that waited.
    pub waits: u64,
}

/// A command that has ended.
#[derive(Debug, Serialize)]
pub struct Ended {
    /// What wrote it.
    pub program: String,
    pub command: Vec<String>,
    pub duration_ns: u64,
    /// As a shell shows it.
    pub exit_code: i32,
    /// What the command could not see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<PathBuf>,
    /// By what else that can be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_denied: Vec<String>,
    /// Of a group: of all its commands so far.
    #[serde(flatten)]
    pub status: Status,
}

/// Why nothing was limited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    #[error("{0:?} gains rights by its file, so that no library can be loaded into it")]
    GainsRights(OsString),
    #[error("programs here are under a limit, or recorded, already")]
    Nested,
    #[error("cannot deny {path:?}")]
    Deny {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot deny {0:?}: the working folder is in it")]
    DenyHere(PathBuf),
    #[error("cannot deny paths: no namespace can be made for that")]
    NoNamespace(#[source] io::Error),
    #[error("there is no limit {0:?}")]
    NoLimit(String),
    #[error("the group {name:?} has a budget for each {is}, and not for each {wanted}")]
    Per { name: String, is: &'static str, wanted: &'static str },
    #[error("cannot run {program:?}")]
    Command {
        program: OsString,
        #[source]
        source: SpawnError,
    },
    #[error("cannot {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Runs a command to its end under a limit. Its standard streams, its group and its other
/// descriptors are the caller's; signals that a process sends to the caller are passed on.
///
/// The caller inherits the orphans of the command from now on. Where some are left it waits for
/// their end as well, once `waits` has been called, or for a signal. The calling thread, and all
/// that it starts from now on, cannot use io_uring or MPTCP.
///
/// # Errors
/// If it does not start, or cannot be limited.
pub fn command(
    wanted: &Wanted,
    arguments: &[OsString],
    waits: impl FnOnce(),
) -> Result<Ended, LimitError> {
    let program = arguments.first().map_or(OsStr::new(""), |program| program);
    check(program)?;
    let denied = paths::resolve(&wanted.denied)?;
    let not_denied = if denied.is_empty() { Vec::new() } else { paths::deny(&denied)? };
    // Before there are threads, which must not take them.
    let signals = Signals::open().map_err(system("read signals"))?;
    process::set_child_subreaper().map_err(system("inherit orphans"))?;
    let shared = Shared::join(wanted)?;
    let place = Place::make().map_err(system("give programs the library"))?;
    let region = shared.region_again().map_err(system("map the file of a limit"))?;
    let door = place.make_door().map_err(system("give programs a door for listeners"))?;
    let supervision = Supervision::start(region, door).map_err(system("hold static programs"))?;
    seccomp::refuse_hidden_ways().map_err(system("refuse io_uring to programs"))?;
    let began_ns = clock::monotonic_ns();
    let pid = spawn(arguments, &place, &shared, &supervision).map_err(|source| {
        let program = program.to_owned();
        LimitError::Command { program, source }
    })?;
    let status = signals.wait_for(pid);
    let duration_ns = clock::monotonic_ns().saturating_sub(began_ns);
    let ended_ns = clock::monotonic_ns();
    let is_patient = || clock::monotonic_ns().saturating_sub(ended_ns) < PATIENCE_NS;
    signals.wait_until(|| !has_children() || !is_patient());
    if has_children() {
        waits();
        signals.wait_until(|| !has_children());
    }
    supervision.finish();
    Ok(Ended {
        program: format!("windtunnel {}", env!("CARGO_PKG_VERSION")),
        command: arguments.iter().map(|word| word.display().to_string()).collect(),
        duration_ns,
        exit_code: status.shell_code(),
        denied,
        not_denied,
        status: shared.status(),
    })
}

/// Whether a program can be held to a limit.
fn check(program: &OsStr) -> Result<(), LimitError> {
    if [place::VARIABLE, windtunnel_record::preload::REGION_VARIABLE]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return Err(LimitError::Nested);
    }
    if start::gains_rights(program) {
        return Err(LimitError::GainsRights(program.to_owned()));
    }
    Ok(())
}

fn spawn(
    arguments: &[OsString],
    place: &Place,
    shared: &Shared,
    supervision: &Supervision,
) -> Result<Pid, SpawnError> {
    use std::os::fd::AsFd;
    let failed = |error: io::Error| SpawnError { step: Step::Exec, error };
    let mut variables: std::collections::BTreeMap<OsString, OsString> =
        std::env::vars_os().collect();
    let own = variables.get(OsStr::new("LD_PRELOAD")).cloned();
    variables.extend(place.variables(own, shared.path()));
    let (words, environment) = start::strings(arguments, variables).map_err(failed)?;
    let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
    let mut plan =
        SpawnPlan::new(&words, &environment, [input.as_fd(), output.as_fd(), error.as_fd()]);
    plan.inherits = true;
    let program = arguments.first().map_or(OsStr::new(""), |program| program);
    plan.supervisor = start::is_direct(program).then(|| supervision.socket());
    // What a filter needs of a user without rights.
    let has_rights = capability::effective().is_ok_and(|has| has.sys_admin);
    plan.no_new_privs = plan.supervisor.is_some() && !has_rights;
    process::spawn(&plan)
}

/// Whether a child is left that has not been waited for.
fn has_children() -> bool {
    let own = process::current().as_raw_nonzero();
    std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"))
        .is_ok_and(|children| !children.trim().is_empty())
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> LimitError {
    move |source| LimitError::System { what, source }
}

impl Moved {
    fn of(sum: windtunnel_budget::pacing::region::Sum) -> Moved {
        let duration_ns = sum.last_ns.saturating_sub(sum.first_ns);
        let bits = u128::from(sum.bytes) * 8_000_000_000;
        let delivered = bits.checked_div(u128::from(duration_ns));
        Moved {
            limit_bps: (sum.rate_bps != 0).then_some(sum.rate_bps),
            bytes: sum.bytes,
            duration_ns,
            delivered_bps: delivered.and_then(|rate| u64::try_from(rate).ok()),
            waited_ns: sum.waited_ns,
            waits: sum.waits,
        }
    }
}

/// The name of what has a budget of its own.
#[must_use]
pub fn name_of(per: Per) -> &'static str {
    match per {
        Per::Tree => "tree",
        Per::Process => "process",
        Per::Socket => "socket",
        Per::Peer => "peer",
    }
}

impl Status {
    fn of(id: String, region: &windtunnel_budget::pacing::Region) -> Status {
        Status {
            id,
            per: name_of(region.per()),
            send: Moved::of(region.sum(Direction::Send)),
            receive: Moved::of(region.sum(Direction::Receive)),
            crowded: region.crowded(),
            held: Held {
                by_library: region.held(Hold::Library),
                by_notification: region.held(Hold::Notification),
                notified_calls: region.shown(),
            },
            escapes: Escape::ALL.into_iter().map(|why| region.escapes(why)).sum(),
            not_limited: not_limited(region),
        }
    }
}

fn not_limited(region: &windtunnel_budget::pacing::Region) -> Vec<NotLimited> {
    let each = Escape::ALL.into_iter();
    let each = each.map(|why| NotLimited { count: region.escapes(why), what: sentence(why) });
    each.filter(|it| it.count > 0).collect()
}

/// What something is that is not held, in the plural, and why.
fn sentence(why: Escape) -> &'static str {
    match why {
        Escape::Spawned => {
            "static programs that were started by posix_spawn(3), system(3) or popen(3), where a \
             filter would hold the program that starts them as well"
        }
        Escape::NoFilter => {
            "programs that the library cannot enter and for which no filter could be installed"
        }
        Escape::Stdio => "streams of the C library on sockets (fdopen(3))",
        Escape::Hidden => "processes whose descriptors may not be looked at",
    }
}

/// How long programs that are left are waited for without a word.
const PATIENCE_NS: u64 = 200_000_000;
