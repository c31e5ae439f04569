//! A limit as it is, and a command that has ended under it: for JSON, and for tables.

use std::path::PathBuf;

use serde::Serialize;
use windtunnel_budget::pacing::region::TransferTotals;
use windtunnel_budget::pacing::{
    Escape, PacingBudgetScope, PacingMechanism, PacingRegion, TransferDirection,
};

use super::resources::{CommandCpuSample, CommandResourceUsage};
use super::supervision::RefusedDestinations;

/// A limit as it is.
#[derive(Debug, Clone, Serialize)]
pub struct CommandLimitStatus {
    /// The name of the group, or the number of the process that started the command.
    pub id: String,
    /// What has a budget of its own: tree, process, socket or peer.
    pub per: &'static str,
    pub send: DirectionThroughput,
    pub receive: DirectionThroughput,
    /// Times that sockets or peers had to share the budget of others, because there were too many.
    pub crowded: u64,
    pub held: LimitEnforcementCounts,
    /// Programs, or ways to move bytes, that were seen and that the limit does not hold.
    pub escapes: u64,
    /// Of these, how many for which reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_limited: Vec<NotLimited>,
    /// Of the machine.
    #[serde(flatten)]
    pub used: CommandResourceUsage,
}

/// How programs are held.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LimitEnforcementCounts {
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
pub struct DirectionThroughput {
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
pub struct CommandLimitReport {
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
    /// Where it could connect and send to, if not anywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// What was refused of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedDestinations>,
    /// Of a group: of all its commands so far.
    #[serde(flatten)]
    pub status: CommandLimitStatus,
    /// Processor time, where that is limited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_windows: Vec<CommandCpuSample>,
    /// Where the command ran already.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub running: Option<AttachedProcessStatus>,
}

/// A program that ran already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AttachedProcessStatus {
    /// Its process.
    pub pid: i32,
    /// Processes that have installed a filter, and how long all were stopped for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Whether a signal has ended the limit before the programs did.
    pub detached: bool,
    /// The process that lets calls pass of programs that run on under a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeper: Option<i32>,
}

impl DirectionThroughput {
    fn of(sum: TransferTotals) -> DirectionThroughput {
        let duration_ns = sum.last_ns.saturating_sub(sum.first_ns);
        let bits = u128::from(sum.bytes) * 8_000_000_000;
        let delivered = bits.checked_div(u128::from(duration_ns));
        DirectionThroughput {
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
pub(super) fn name_of(per: PacingBudgetScope) -> &'static str {
    match per {
        PacingBudgetScope::Tree => "tree",
        PacingBudgetScope::Process => "process",
        PacingBudgetScope::Socket => "socket",
        PacingBudgetScope::Peer => "peer",
    }
}

impl CommandLimitStatus {
    pub(super) fn of(
        id: String,
        region: &PacingRegion,
        used: CommandResourceUsage,
    ) -> CommandLimitStatus {
        CommandLimitStatus {
            id,
            per: name_of(region.per()),
            send: DirectionThroughput::of(region.sum(TransferDirection::Send)),
            receive: DirectionThroughput::of(region.sum(TransferDirection::Receive)),
            crowded: region.crowded(),
            held: LimitEnforcementCounts {
                by_library: region.held(PacingMechanism::Library),
                by_notification: region.held(PacingMechanism::Notification),
                notified_calls: region.shown(),
            },
            escapes: Escape::ALL.into_iter().map(|why| region.escapes(why)).sum(),
            not_limited: not_limited(region),
            used,
        }
    }
}

fn not_limited(region: &PacingRegion) -> Vec<NotLimited> {
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
        Escape::Stdio => "programs of several threads with streams of the C library on sockets",
        Escape::Hidden => "processes whose descriptors may not be looked at",
        Escape::Raw => "programs that make system calls on sockets by syscall(2)",
        Escape::Foreign => {
            "programs of 32 bits, or of another user, who may not open the file of the limit"
        }
    }
}
