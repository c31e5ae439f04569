//! The processor time of all processes that a PID namespace has had, read by its init; or that a
//! tree has had, read by the process that it is below.
//!
//! Of each process that lives, its clock is exact. The time of children that have ended is in their
//! parents' accounts, in ticks of the kernel (10 ms), or in the reader's own, exactly; so the sum is
//! behind by less than two ticks for each living parent, and never drifts. A child that its parent
//! has the kernel forget (SIGCHLD ignored) is in no account: what was last seen of it counts.
//!
//! No time counts twice: accounts are read before the clocks of processes that live, and a process
//! that ends in between counts from the next reading on.

mod below;
mod ended;
mod excess;

use std::collections::BTreeMap;
use std::fs;

use windtunnel_sys::process::Pid;
use windtunnel_sys::{clock, limits};

use crate::scope::ProcessScope;
pub use below::{below, of_children};
use ended::ExitedProcessCpuTime;
pub use excess::CpuTimeExcess;

/// Reads the processor time of processes of which the calling one inherits the orphans.
#[derive(Debug)]
pub struct ProcessCpuTimeMeter {
    scope: ProcessScope,
    /// By process number, those seen last time.
    seen: BTreeMap<i32, ProcessCpuTimeReading>,
    /// Those that the last reading was the first to see.
    new: Vec<Pid>,
    ended: ExitedProcessCpuTime,
    /// Last seen of processes that ended after the accounts were read.
    ended_late_ns: Option<u64>,
    /// Nanoseconds, never less than before.
    total_ns: u64,
    /// Of these, what processes had before they were first looked at.
    before_ns: u64,
    readings: u32,
    /// In which of them accounts are read.
    accounts_every: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct ProcessCpuTimeReading {
    own_ns: u64,
    /// Whether it computed between the last two readings.
    computed: bool,
    /// How long its threads have waited for a processor, when that was last read.
    waited_ns: u64,
    /// Of its children that have ended.
    children_ns: u64,
    /// In which look at all processes it was there.
    reading: u32,
}

impl ProcessCpuTimeMeter {
    /// Of all processes of a scope.
    #[must_use]
    pub fn of(scope: ProcessScope) -> Self {
        let is_of_other = matches!(&scope, ProcessScope::Tree(tree) if tree.is_of_other());
        let mut usage = ProcessCpuTimeMeter {
            scope,
            seen: BTreeMap::new(),
            new: Vec::new(),
            ended: ExitedProcessCpuTime::default(),
            ended_late_ns: None,
            total_ns: 0,
            before_ns: 0,
            readings: 0,
            accounts_every: ACCOUNTS_EVERY,
        };
        if is_of_other {
            // With the accounts of children that had ended before.
            usage.readings = ACCOUNTS_EVERY - 1;
            usage.before_ns = usage.read();
        }
        usage
    }

    /// The same, for a few readings: each has what ended between two of them without having been seen.
    #[must_use]
    pub fn exactly_of(scope: ProcessScope) -> Self {
        ProcessCpuTimeMeter { accounts_every: 1, ..ProcessCpuTimeMeter::of(scope) }
    }

    /// Nanoseconds of processor time until now, without that of the calling process itself.
    pub fn read(&mut self) -> u64 {
        self.new.clear();
        let mut children_ns = clock::ended_children_cpu_ns();
        let ended_ns = self.look();
        let ends = ended_ns.is_some() || self.ended_late_ns.is_some();
        if ends || self.readings.is_multiple_of(self.accounts_every) {
            self.read_accounts();
            children_ns = clock::ended_children_cpu_ns();
            let last_seen_ns = self.ended_late_ns.unwrap_or(0) + ended_ns.unwrap_or(0);
            let accounts_ns = children_ns.saturating_add(self.of_parents());
            self.ended.settle(last_seen_ns, accounts_ns, self.rounding_ns());
            // A process that ended since its clock was read may be in an account, too.
            self.ended_late_ns = self.look();
        }
        let living = self.seen.values().map(|seen| seen.own_ns);
        let ended_ns =
            children_ns.saturating_add(self.of_parents()).saturating_add(self.ended.forgotten_ns());
        self.total_ns = self.total_ns.max(living.fold(ended_ns, u64::saturating_add));
        self.total_ns.saturating_sub(self.before_ns)
    }

    /// Reads the clocks of all processes. Returns what was last seen of those that are no more, if
    /// there are any.
    fn look(&mut self) -> Option<u64> {
        self.readings = self.readings.wrapping_add(1);
        for process in self.scope.processes() {
            self.look_at(process);
        }
        let mut ended_ns: Option<u64> = None;
        self.seen.retain(|_, seen| {
            let lives = seen.reading == self.readings;
            if !lives {
                ended_ns = Some(ended_ns.unwrap_or(0).saturating_add(seen.own_ns));
            }
            lives
        });
        ended_ns
    }

    fn look_at(&mut self, process: Pid) {
        let Ok(own_ns) = clock::cpu_ns_of(process) else { return };
        let number = process.as_raw_nonzero().get();
        let seen = self.seen.entry(number).or_default();
        if own_ns < seen.own_ns {
            // The number has been given to another process. What the one before used is in an
            // account, or lost: numbers return after tens of thousands of processes.
            *seen = ProcessCpuTimeReading::default();
        }
        if seen.reading == 0 {
            self.new.push(process);
        }
        seen.computed = own_ns > seen.own_ns;
        (seen.own_ns, seen.reading) = (own_ns, self.readings);
    }

    /// The processes that the last reading was the first to see.
    #[must_use]
    pub fn new_processes(&self) -> &[Pid] {
        &self.new
    }

    /// By how much accounts may be behind: each is cut to ticks, for user and system time.
    #[must_use]
    pub fn rounding_ns(&self) -> u64 {
        let parents = self.seen.values().filter(|seen| seen.children_ns > 0).count() as u64;
        (parents + 1).saturating_mul(2 * tick_ns())
    }

    /// What living processes' accounts have of children that ended.
    fn of_parents(&self) -> u64 {
        self.seen.values().map(|seen| seen.children_ns).fold(0, u64::saturating_add)
    }

    /// Nanoseconds for which threads of processes that compute have waited for a processor since
    /// this was last called, as far as their waits have ended. Waits at once are added up.
    pub fn waited(&mut self) -> u64 {
        let mut sum: u64 = 0;
        for (process, seen) in self.seen.iter_mut().filter(|(_, seen)| seen.computed) {
            let waited_ns = waited_ns(*process);
            sum = sum.saturating_add(waited_ns.saturating_sub(seen.waited_ns));
            seen.waited_ns = waited_ns;
        }
        sum
    }

    /// Whether all that computed between the last two readings sleeps now: no thread of it runs, or waits
    /// for a processor.
    #[must_use]
    pub fn sleeps(&self) -> bool {
        let mut computed = self.seen.iter().filter(|(_, seen)| seen.computed).peekable();
        computed.peek().is_some() && computed.all(|(process, _)| !wants_processor(*process))
    }

    /// What children that have ended have left with their parents.
    fn read_accounts(&mut self) {
        for (process, seen) in &mut self.seen {
            if let Some(children_ns) = ended_children_ns(*process) {
                seen.children_ns = children_ns;
            }
        }
    }
}

/// Of all threads of a process: the second field of proc_pid_schedstat(5), 0 where the kernel does
/// not have it.
fn waited_ns(process: i32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    let waits = texts.filter_map(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    waits.fold(0, u64::saturating_add)
}

/// Whether a thread of a process runs, or could.
fn wants_processor(process: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    texts.any(|text| text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')))
}

/// Of the children of a process that have ended and that it has waited for, in whole ticks.
fn ended_children_ns(process: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(children_ticks(&text)?.saturating_mul(tick_ns()))
}

/// In which the kernel gives the time of children that have ended.
fn tick_ns() -> u64 {
    1_000_000_000 / limits::ticks_per_second().max(1)
}

/// `pid (name) state …`: the 16th and 17th fields are `cutime` and `cstime`, proc_pid_stat(5).
fn children_ticks(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(13);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user.saturating_add(system))
}

/// Reading an account takes ten times as long as reading a clock.
const ACCOUNTS_EVERY: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_ended_children_is_found_behind_any_name() {
        let text = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 11 12 130 17 20 0 1 0 100 0 0";
        assert_eq!(children_ticks(text), Some(147));
        assert_eq!(children_ticks("7 (a) S 1"), None);
        assert_eq!(children_ticks(""), None);
    }

    #[test]
    fn what_was_read_never_decreases() {
        // All processes of the machine stand for those of a namespace.
        let mut usage = ProcessCpuTimeMeter::of(ProcessScope::Namespace);
        let first = usage.read();
        assert!(first > 0);
        for _ in 0..20 {
            assert!(usage.read() >= first);
        }
    }
}
