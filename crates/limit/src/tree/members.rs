//! The processes of a tree, parents before their children.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid};

use super::state::State;
use crate::scope;

/// How the processes of a tree are found.
#[derive(Debug)]
pub(super) struct Walker {
    root: Pid,
    except: Option<Pid>,
    /// Whether the kernel says what children a thread has.
    has_children: bool,
}

/// The processes that the last walk has found.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) all: Vec<Member>,
    walked_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) pid: Pid,
    /// By the tree, which is to continue it.
    stopped: bool,
    /// The processor time that it had used when it was last seen stopped.
    used_ns: u64,
}

impl Walker {
    /// Below the calling process, but for one of its children.
    pub(super) fn new(except: Option<Pid>) -> Walker {
        let root = process::current();
        let own = root.as_raw_nonzero();
        let has_children = Path::new(&format!("/proc/{own}/task/{own}/children")).exists();
        Walker { root, except, has_children }
    }

    #[cfg(test)]
    pub(super) fn without_children_files(&self) -> Walker {
        Walker { has_children: false, ..*self }
    }

    pub(super) fn walk(&self) -> Vec<Pid> {
        let parents = if self.has_children { BTreeMap::new() } else { by_parents() };
        let mut found = self.children(self.root, &parents);
        found.retain(|pid| Some(*pid) != self.except);
        let mut seen: HashSet<Pid> = found.iter().copied().collect();
        let mut at = 0;
        while let Some(pid) = found.get(at) {
            let children = self.children(*pid, &parents);
            // One whose parent ended meanwhile can appear twice.
            found.extend(children.into_iter().filter(|child| seen.insert(*child)));
            at += 1;
        }
        found
    }

    fn children(&self, pid: Pid, parents: &BTreeMap<i32, Vec<Pid>>) -> Vec<Pid> {
        let number = pid.as_raw_nonzero().get();
        if !self.has_children {
            return parents.get(&number).cloned().unwrap_or_default();
        }
        let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
        let lists = lists.map(Result::unwrap_or_default);
        lists.flat_map(|list| numbers_of(&list)).collect()
    }
}

/// `1 2 3 `.
fn numbers_of(list: &str) -> Vec<Pid> {
    let words = list.split_ascii_whitespace();
    words.filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

/// All processes of the machine by their parents.
fn by_parents() -> BTreeMap<i32, Vec<Pid>> {
    let mut parents: BTreeMap<i32, Vec<Pid>> = BTreeMap::new();
    for pid in scope::numbers() {
        if let Some(state) = State::of(pid) {
            parents.entry(state.parent).or_default().push(pid);
        }
    }
    parents
}

impl Members {
    pub(super) fn is_old(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.walked_ns) >= WALK_EVERY_NS
    }

    pub(super) fn walk(&mut self, walker: &Walker) {
        self.walked_ns = clock::monotonic_ns();
        let known: HashMap<Pid, Member> =
            self.all.iter().map(|member| (member.pid, *member)).collect();
        let new = |pid| Member { pid, stopped: false, used_ns: 0 };
        let found = walker.walk().into_iter();
        self.all = found.map(|pid| known.get(&pid).copied().unwrap_or_else(|| new(pid))).collect();
    }

    /// Those that the tree has stopped.
    pub(super) fn stopped(&self) -> impl DoubleEndedIterator<Item = Pid> {
        self.all.iter().filter(|member| member.stopped).map(|member| member.pid)
    }

    /// A process is about to go on.
    pub(super) fn release(&mut self, pid: Pid) {
        let found = self.all.iter_mut().filter(|member| member.pid == pid);
        found.for_each(|member| member.stopped = false);
    }
}

impl Member {
    /// Whether it runs, or could, and is to be stopped. One that the tree has stopped does if
    /// something else has continued it.
    pub(super) fn is_to_stop(&mut self) -> bool {
        if !self.stopped {
            return State::of(self.pid).is_some_and(|state| state.can_run());
        }
        let used_ns = clock::cpu_ns_of(self.pid).unwrap_or(0);
        let computes = used_ns > self.used_ns.saturating_add(STILL_NS);
        self.used_ns = self.used_ns.max(used_ns);
        computes
    }

    /// The tree has stopped it.
    pub(super) fn note_stopped(&mut self) {
        self.stopped = true;
        self.used_ns = clock::cpu_ns_of(self.pid).unwrap_or(0);
    }
}

/// The longest that a process is not seen which has just been made. What it does meanwhile counts.
const WALK_EVERY_NS: u64 = 5_000_000;
/// What a process may still use after it was stopped: the signal has to reach all its processors.
const STILL_NS: u64 = 500_000;
