//! The processes of a tree, parents before their children.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use windtunnel_sys::clock;
use windtunnel_sys::process::{self, Pid};

use super::orphans::OrphanedProcessTracker;
use super::state::ProcessState;
use crate::scope;

/// How the processes of a tree are found.
#[derive(Debug)]
pub(super) struct Walker {
    root: ProcessTreeRoot,
    /// Whether the kernel says what children a thread has.
    has_children: bool,
}

/// Where a tree begins.
#[derive(Debug, Clone, Copy)]
enum ProcessTreeRoot {
    /// Below the calling process, but for one of its children.
    Own { except: Option<Pid> },
    /// A process that is no child of this one, and all below it.
    Other { root: Pid, began: u64 },
}

/// The processes that the last walk has found.
#[derive(Debug, Default)]
pub(super) struct ProcessTreeMembers {
    pub(super) all: Vec<ProcessTreeMember>,
    walked_ns: u64,
    /// Of a tree whose orphans do not come to this process.
    orphans: Option<OrphanedProcessTracker>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessTreeMember {
    pub(super) pid: Pid,
    /// When it began: a number is given to another process later. 0: it is not needed.
    pub(super) began: u64,
}

impl Walker {
    /// Below the calling process, but for one of its children.
    pub(super) fn new(except: Option<Pid>) -> Walker {
        Walker { root: ProcessTreeRoot::Own { except }, has_children: has_children() }
    }

    /// A process and all below it.
    pub(super) fn of(root: Pid) -> Walker {
        let began = ProcessState::of(root).map_or(0, |state| state.began);
        Walker { root: ProcessTreeRoot::Other { root, began }, has_children: has_children() }
    }

    #[cfg(test)]
    pub(super) fn without_children_files(&self) -> Walker {
        Walker { has_children: false, ..*self }
    }

    /// Whether orphans of the tree become children of another process than this one.
    pub(super) fn is_of_other(&self) -> bool {
        matches!(self.root, ProcessTreeRoot::Other { .. })
    }

    /// All that there are, where those were known which may have lost their parents since.
    pub(super) fn walk(&self, known: &[ProcessTreeMember]) -> Vec<Pid> {
        let parents = if self.has_children { BTreeMap::new() } else { by_parents() };
        let mut found = match self.root {
            ProcessTreeRoot::Own { except } => {
                let mut all = self.children(process::current(), &parents);
                all.retain(|pid| Some(*pid) != except);
                all
            }
            ProcessTreeRoot::Other { root, began } if is_same(root, began) => vec![root],
            ProcessTreeRoot::Other { .. } => Vec::new(),
        };
        let mut seen: HashSet<Pid> = found.iter().copied().collect();
        self.walk_from(0, &mut found, &mut seen, &parents);
        if self.is_of_other() {
            for member in known {
                if !seen.contains(&member.pid) && is_same(member.pid, member.began) {
                    let at = found.len();
                    seen.insert(member.pid);
                    found.push(member.pid);
                    self.walk_from(at, &mut found, &mut seen, &parents);
                }
            }
        }
        found
    }

    /// Adds what is below those from a place on.
    fn walk_from(
        &self,
        mut at: usize,
        found: &mut Vec<Pid>,
        seen: &mut HashSet<Pid>,
        parents: &BTreeMap<i32, Vec<Pid>>,
    ) {
        while let Some(pid) = found.get(at) {
            let children = self.children(*pid, parents);
            // One whose parent ended meanwhile can appear twice.
            found.extend(children.into_iter().filter(|child| seen.insert(*child)));
            at += 1;
        }
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

fn has_children() -> bool {
    let own = process::current().as_raw_nonzero();
    Path::new(&format!("/proc/{own}/task/{own}/children")).exists()
}

/// Whether a process lives, and is the one that began then.
fn is_same(pid: Pid, began: u64) -> bool {
    ProcessState::of(pid).is_some_and(|state| state.began == began && !state.has_ended())
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
        if let Some(state) = ProcessState::of(pid) {
            parents.entry(state.parent).or_default().push(pid);
        }
    }
    parents
}

impl ProcessTreeMembers {
    /// Of the tree of another process: its orphans have to be looked for.
    pub(super) fn of_other(walker: &Walker) -> ProcessTreeMembers {
        let mut members = ProcessTreeMembers::default();
        members.walk(walker);
        let all = members.all.iter().map(|member| member.pid);
        members.orphans = Some(OrphanedProcessTracker::of(&all.collect::<Vec<_>>()));
        members
    }

    pub(super) fn is_old(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.walked_ns) >= WALK_EVERY_NS
    }

    pub(super) fn walk(&mut self, walker: &Walker) {
        self.walked_ns = clock::monotonic_ns();
        let known: HashMap<Pid, ProcessTreeMember> =
            self.all.iter().map(|member| (member.pid, *member)).collect();
        let mut found = walker.walk(&self.all);
        if let Some(orphans) = &mut self.orphans {
            let has_ended = known.keys().any(|pid| !found.contains(pid));
            found.extend(orphans.look(&found, has_ended, self.walked_ns));
        }
        let needs_began = walker.is_of_other();
        let new = |pid| ProcessTreeMember::new(pid, needs_began);
        let found = found.into_iter();
        self.all = found.map(|pid| known.get(&pid).copied().unwrap_or_else(|| new(pid))).collect();
    }
}

impl ProcessTreeMember {
    fn new(pid: Pid, needs_began: bool) -> ProcessTreeMember {
        let began =
            needs_began.then(|| ProcessState::of(pid)).flatten().map_or(0, |state| state.began);
        ProcessTreeMember { pid, began }
    }
}

/// The longest that a process is not seen which has just been made. What it does meanwhile counts.
const WALK_EVERY_NS: u64 = 5_000_000;
