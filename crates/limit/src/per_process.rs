//! Limits that each process of a tree has for itself, of processes that run already: prlimit(2).
//!
//! Each new process has those of the one that made it. They are lowered, never raised, and put back
//! in the end. A process without `CAP_SYS_RESOURCE` cannot raise a hard limit again, so it lowers the
//! soft ones only, which the programs may raise themselves: what does is counted, and lowered again
//! at the next look.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use windtunnel_sys::capability;
use windtunnel_sys::limits::{self, ProcessResourceLimit, ProcessResourceLimitKind};
use windtunnel_sys::process::Pid;

use crate::membership;

/// Lowers the limits again that processes have raised which were started with them, and says so of each,
/// in a sentence. Only those with the rights of the machine's root can.
#[must_use]
pub fn lower_again(processes: &[Pid], what: ProcessResourceLimitKind, most: u64) -> Vec<String> {
    if !capability::effective().is_ok_and(|has| has.sys_resource) {
        return Vec::new();
    }
    let own = membership::program(Path::new("/proc/self/exe"));
    // What is about to become another program gets its limits before it does.
    let is_other = |pid: &&Pid| {
        let link = format!("/proc/{}/exe", pid.as_raw_nonzero());
        membership::program(Path::new(&link)).is_some_and(|program| Some(program) != own)
    };
    let raised = |pid: &Pid| {
        let now = limits::limit_of(*pid, what).ok()?;
        let is_raised = now.soft.is_none_or(|soft| soft > most);
        is_raised.then_some((*pid, now.soft))
    };
    let lower = |(pid, soft): (Pid, Option<u64>)| {
        let wanted = ProcessResourceLimit { soft: Some(most), hard: Some(most) };
        let number = pid.as_raw_nonzero();
        let had = soft.map_or_else(|| "any number".to_owned(), |soft| soft.to_string());
        match limits::set_limit_of(pid, what, wanted) {
            Ok(()) => format!("process {number} had raised its own limit to {had}"),
            Err(error) => format!("process {number} has raised its own limit to {had}: {error}"),
        }
    };
    processes.iter().filter(is_other).filter_map(raised).map(lower).collect()
}

/// The limits of the processes of a tree.
#[derive(Debug)]
pub struct PerProcess {
    asked: Vec<(ProcessResourceLimitKind, u64)>,
    /// Whether hard limits can be raised again.
    has_rights: bool,
    /// What processes had before they were lowered.
    before: BTreeMap<(i32, ProcessResourceLimitKind), ProcessResourceLimit>,
    /// Of the first process: of one that was made later the limits before are not known.
    first: BTreeMap<ProcessResourceLimitKind, ProcessResourceLimit>,
    raised: u64,
    failure: Option<String>,
}

impl PerProcess {
    /// Nothing is lowered yet.
    #[must_use]
    pub fn new(asked: Vec<(ProcessResourceLimitKind, u64)>) -> PerProcess {
        let has_rights = capability::effective().is_ok_and(|has| has.sys_resource);
        let (before, first) = (BTreeMap::new(), BTreeMap::new());
        PerProcess { asked, has_rights, before, first, raised: 0, failure: None }
    }

    /// Lowers the limits of processes, of which the first has been there longest.
    pub fn look(&mut self, processes: &[Pid]) {
        for (what, most) in self.asked.clone() {
            for process in processes {
                self.lower(*process, what, most);
            }
        }
        let living: Vec<i32> = processes.iter().map(|it| it.as_raw_nonzero().get()).collect();
        self.before.retain(|(process, _), _| living.contains(process));
    }

    /// Why a limit does not hold, if it does not.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let raised = (self.raised > 0)
            .then(|| format!("{} times a process had raised its own limit again", self.raised));
        self.failure.clone().or(raised)
    }

    /// Puts back what was.
    pub fn restore(&mut self, processes: &[Pid]) {
        for (what, most) in self.asked.clone() {
            for process in processes {
                let number = process.as_raw_nonzero().get();
                let known = self.before.get(&(number, what)).or(self.first.get(&what)).copied();
                let is_lowered =
                    limits::limit_of(*process, what).is_ok_and(|it| it.soft == Some(most));
                if let Some(before) = known.filter(|_| is_lowered) {
                    // One that has ended needs none.
                    let _ = limits::set_limit_of(*process, what, before);
                }
            }
        }
    }

    fn lower(&mut self, process: Pid, what: ProcessResourceLimitKind, most: u64) {
        // One that has ended needs none.
        let Ok(now) = limits::limit_of(process, what) else { return };
        let number = process.as_raw_nonzero().get();
        if now.soft.is_some_and(|soft| soft <= most) {
            return;
        }
        let wanted = ProcessResourceLimit { soft: Some(most), hard: self.hard(now, most) };
        if let Err(error) = limits::set_limit_of(process, what, wanted) {
            let why = format!("the limit of process {number} cannot be set: {error}");
            self.failure.get_or_insert(why);
            return;
        }
        match self.before.entry((number, what)) {
            Entry::Occupied(_) => self.raised += 1,
            Entry::Vacant(place) => {
                place.insert(now);
                self.first.entry(what).or_insert(now);
            }
        }
    }

    fn hard(&self, now: ProcessResourceLimit, most: u64) -> Option<u64> {
        if self.has_rights { Some(now.hard.map_or(most, |hard| hard.min(most))) } else { now.hard }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::tree::tests::ALONE;

    #[test]
    fn limits_are_lowered_and_put_back_also_of_what_was_made_meanwhile() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut children: Vec<_> =
            (0..3).map(|_| Command::new("sleep").arg("100").spawn().unwrap()).collect();
        let pid = |at: usize| Pid::from_raw(i32::try_from(children[at].id()).unwrap()).unwrap();
        let [first, second, later] = [0, 1, 2].map(pid);
        let before = limits::limit_of(first, ProcessResourceLimitKind::OpenFiles).unwrap();
        let few = ProcessResourceLimit { soft: Some(9), ..before };
        limits::set_limit_of(second, ProcessResourceLimitKind::OpenFiles, few).unwrap();
        let mut limit = PerProcess::new(vec![(ProcessResourceLimitKind::OpenFiles, 20)]);
        limit.look(&[first, second]);
        let soft = |pid| limits::limit_of(pid, ProcessResourceLimitKind::OpenFiles).unwrap().soft;
        assert_eq!((soft(first), soft(second)), (Some(20), Some(9)), "none is raised");
        // As a process that the first has made.
        let lowered = limits::limit_of(first, ProcessResourceLimitKind::OpenFiles).unwrap();
        limits::set_limit_of(later, ProcessResourceLimitKind::OpenFiles, lowered).unwrap();
        limit.look(&[first, second, later]);
        assert_eq!(limit.failure(), None);
        limits::set_limit_of(first, ProcessResourceLimitKind::OpenFiles, before).unwrap();
        limit.look(&[first, second, later]);
        assert_eq!(soft(first), Some(20));
        assert!(limit.failure().unwrap().starts_with("1 times a process had raised"));
        limit.restore(&[first, second, later]);
        assert_eq!(limits::limit_of(first, ProcessResourceLimitKind::OpenFiles).unwrap(), before);
        assert_eq!(limits::limit_of(later, ProcessResourceLimitKind::OpenFiles).unwrap(), before);
        assert_eq!(soft(second), Some(9));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
