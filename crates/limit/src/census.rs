//! All processes of a PID namespace or a tree with what they use.
//!
//! Source: proc_pid_stat(5), proc_pid_smaps(5).

use std::collections::BTreeMap;
use std::fs;

use windtunnel_sys::process::Pid;

use crate::scope::ProcessScope;

/// What a process uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessResourceUsage {
    pub pid: Pid,
    /// As it calls itself.
    pub name: String,
    pub threads: u64,
    pub parent: u64,
    /// Whether it has ended and is yet to be waited for.
    pub has_ended: bool,
    /// When it began, in ticks since the machine did.
    pub began: u64,
    /// Pages that are in memory, with those that it shares.
    pages: u64,
    /// Faults for which a page had to be read from a disk.
    faults: u64,
}

/// All processes but the one that looks.
#[derive(Debug, Default)]
pub struct ProcessCensus {
    pub processes: Vec<ProcessResourceUsage>,
}

impl ProcessCensus {
    /// Looks at all processes of a scope that there are now.
    #[must_use]
    pub fn take(scope: &ProcessScope) -> ProcessCensus {
        ProcessCensus {
            processes: scope
                .processes()
                .into_iter()
                .filter_map(ProcessResourceUsage::read)
                .collect(),
        }
    }

    /// Processes and threads that run.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.living().map(|process| process.threads).sum()
    }

    /// Processes that run.
    pub fn living(&self) -> impl Iterator<Item = &ProcessResourceUsage> {
        self.processes.iter().filter(|process| !process.has_ended)
    }

    /// The process that has most children which it does not wait for, with their number.
    #[must_use]
    pub fn most_forgetful(&self) -> Option<(&ProcessResourceUsage, u64)> {
        let mut children: BTreeMap<u64, u64> = BTreeMap::new();
        for process in self.processes.iter().filter(|process| process.has_ended) {
            *children.entry(process.parent).or_default() += 1;
        }
        let number =
            |process: &ProcessResourceUsage| process.pid.as_raw_nonzero().get().unsigned_abs();
        let count =
            |it: &ProcessResourceUsage| children.get(&u64::from(number(it))).copied().unwrap_or(0);
        self.living().map(|it| (it, count(it))).max_by_key(|(_, count)| *count)
    }

    /// Faults of processes that live.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.processes.iter().map(|process| process.faults).sum()
    }

    /// Bytes in memory, where what is shared counts for each process that has it: no less than what
    /// all have together.
    #[must_use]
    pub fn resident(&self, page_bytes: u64) -> u64 {
        self.processes.iter().map(|process| process.pages.saturating_mul(page_bytes)).sum()
    }

    /// Bytes of each process, where what is shared counts in parts; the most first.
    #[must_use]
    pub fn proportional(&self, page_bytes: u64) -> Vec<(&ProcessResourceUsage, u64)> {
        let bytes = |process: &ProcessResourceUsage| {
            // One that may not be looked into has what is resident.
            process.proportional().unwrap_or_else(|| process.pages.saturating_mul(page_bytes))
        };
        let mut all: Vec<_> = self.living().map(|it| (it, bytes(it))).collect();
        all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        all
    }

    /// The newest processes that have so many threads together, or a few more.
    #[must_use]
    pub fn newest(&self, mut threads: u64) -> Vec<&ProcessResourceUsage> {
        let mut all: Vec<&ProcessResourceUsage> = self.living().collect();
        all.sort_by_key(|it| std::cmp::Reverse((it.began, it.pid.as_raw_nonzero().get())));
        let mut chosen = Vec::new();
        for process in all {
            if threads == 0 {
                break;
            }
            threads = threads.saturating_sub(process.threads);
            chosen.push(process);
        }
        chosen
    }
}

impl ProcessResourceUsage {
    /// What no other process ever equals.
    #[must_use]
    pub fn identity(&self) -> (i32, u64) {
        (self.pid.as_raw_nonzero().get(), self.began)
    }

    fn read(pid: Pid) -> Option<ProcessResourceUsage> {
        let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        ProcessResourceUsage::of_line(pid, &text)
    }

    /// `pid (name) state …`: a name may hold anything.
    fn of_line(pid: Pid, text: &str) -> Option<ProcessResourceUsage> {
        let (front, rest) = text.rsplit_once(") ")?;
        let name = front.split_once('(')?.1.to_owned();
        // The third field is the first here.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let (parent, faults) = (field(4)?, field(12)?);
        let (threads, began, pages) = (field(20)?.max(1), field(22)?, field(24)?);
        let has_ended = fields.first().is_some_and(|state| matches!(*state, "Z" | "X"));
        Some(ProcessResourceUsage { pid, name, threads, parent, has_ended, began, pages, faults })
    }

    /// `Pss:` in kB.
    fn proportional(&self) -> Option<u64> {
        let path = format!("/proc/{}/smaps_rollup", self.pid.as_raw_nonzero());
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes.saturating_mul(1024))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 5 0 11 12 130 17 20 0 3 0 900 1000 250";

    fn process(number: i32, threads: u64, began: u64) -> ProcessResourceUsage {
        let pid = Pid::from_raw(number).unwrap();
        ProcessResourceUsage { threads, began, ..ProcessResourceUsage::of_line(pid, LINE).unwrap() }
    }

    #[test]
    fn a_process_is_read_behind_any_name() {
        let process = ProcessResourceUsage::of_line(Pid::from_raw(7).unwrap(), LINE).unwrap();
        let seen = (process.name.as_str(), process.threads, process.began);
        assert_eq!(seen, ("a ) b", 3, 900));
        assert_eq!((process.pages, process.faults), (250, 5));
        assert!(ProcessResourceUsage::of_line(process.pid, "7 (a) S 1").is_none());
    }

    #[test]
    fn the_newest_go_until_no_more_are_too_many() {
        let processes = vec![process(2, 4, 10), process(3, 1, 30), process(4, 3, 20)];
        let census = ProcessCensus { processes };
        assert_eq!(census.threads(), 8);
        let numbers = |threads| {
            let newest = census.newest(threads).into_iter();
            newest.map(|it| it.pid.as_raw_nonzero().get()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0), []);
        assert_eq!(numbers(1), [3]);
        assert_eq!(numbers(3), [3, 4]);
        assert_eq!(numbers(99), [3, 4, 2]);
    }

    #[test]
    fn what_has_ended_does_not_count_and_its_parent_is_known() {
        let ended =
            |number| ProcessResourceUsage { has_ended: true, parent: 4, ..process(number, 1, 50) };
        let processes = vec![process(2, 4, 10), process(4, 3, 20), ended(5), ended(6)];
        let census = ProcessCensus { processes };
        assert_eq!(census.threads(), 7);
        let (parent, count) = census.most_forgetful().unwrap();
        assert_eq!((parent.pid.as_raw_nonzero().get(), count), (4, 2));
    }

    #[test]
    fn the_calling_process_is_among_those_of_its_namespace() {
        let census = ProcessCensus::take(&ProcessScope::Namespace);
        let own = std::process::id().cast_signed();
        let found = census.processes.iter().find(|it| it.pid.as_raw_nonzero().get() == own);
        assert!(found.unwrap().proportional().unwrap() > 100_000);
        assert!(census.resident(4096) > 100_000);
    }
}
