//! Processes of a tree whose parents have ended before they were seen.
//!
//! They become children of a process outside, and nothing of the kernel says where they come from.
//! But they stay in the process group and the session of the one that made them, unless they begin
//! others: one that is in a group or a session that a process of the tree has begun is taken to be of
//! the tree. Groups and sessions that had other processes as well when the tree was first seen do not
//! count.

use std::collections::{BTreeSet, HashSet};

use windtunnel_sys::process::Pid;

use super::state::ProcessState;
use crate::scope;

/// What is known of groups and sessions.
#[derive(Debug)]
pub(super) struct OrphanedProcessTracker {
    /// Numbers of processes of the tree, which groups and sessions that they begin have as well.
    members: BTreeSet<i32>,
    /// Groups and sessions in which others were.
    foreign: BTreeSet<i32>,
    /// What has begun before has not been made by the tree since.
    since: u64,
    looked_ns: u64,
    /// Whether a process has ended since.
    is_asked: bool,
}

impl OrphanedProcessTracker {
    /// Of a tree with these processes.
    pub(super) fn of(all: &[Pid]) -> OrphanedProcessTracker {
        let members: BTreeSet<i32> = all.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        let mut foreign = BTreeSet::new();
        let mut since = 0;
        for (pid, state) in states() {
            since = since.max(state.began);
            if !members.contains(&pid.as_raw_nonzero().get()) {
                foreign.extend([state.group, state.session]);
            }
        }
        OrphanedProcessTracker { members, foreign, since, looked_ns: 0, is_asked: false }
    }

    /// Looks for more, if a process of the tree has ended since the last look; not too often, as that
    /// reads the state of all processes of the machine.
    pub(super) fn look(&mut self, found: &[Pid], has_ended: bool, now_ns: u64) -> Vec<Pid> {
        let numbers = found.iter().map(|pid| pid.as_raw_nonzero().get());
        self.members.extend(numbers);
        // Numbers come again: those of long ago could be others' by now.
        while self.members.len() > MEMBERS_MAX {
            self.members.pop_first();
        }
        let is_due = now_ns.saturating_sub(self.looked_ns) >= LOOK_EVERY_NS;
        self.is_asked |= has_ended;
        if !self.is_asked || !is_due {
            return Vec::new();
        }
        (self.looked_ns, self.is_asked) = (now_ns, false);
        let known: HashSet<Pid> = found.iter().copied().collect();
        let others = states().filter(|(pid, _)| !known.contains(pid));
        others.filter(|(_, state)| self.is_ours(state)).map(|(pid, _)| pid).collect()
    }

    fn is_ours(&self, state: &ProcessState) -> bool {
        let is_ours = |number| self.members.contains(&number) && !self.foreign.contains(&number);
        let has_begun_since = state.began >= self.since && !state.has_ended();
        has_begun_since && (is_ours(state.group) || is_ours(state.session))
    }
}

fn states() -> impl Iterator<Item = (Pid, ProcessState)> {
    scope::numbers().filter_map(|pid| Some((pid, ProcessState::of(pid)?)))
}

const LOOK_EVERY_NS: u64 = 100_000_000;
const MEMBERS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_group_that_the_tree_began_is_of_the_tree() {
        let pid = Pid::from_raw(7).unwrap();
        let mut orphans = OrphanedProcessTracker::of(&[pid]);
        orphans.since = 100;
        let state = |group, session, began| ProcessState {
            group,
            session,
            began,
            ..ProcessState::default()
        };
        assert!(orphans.is_ours(&state(7, 3, 100)) && orphans.is_ours(&state(9, 7, 200)));
        assert!(!orphans.is_ours(&state(9, 3, 200)), "another group and session");
        assert!(!orphans.is_ours(&state(7, 3, 99)), "it was there before");
        orphans.foreign.insert(7);
        assert!(!orphans.is_ours(&state(7, 7, 200)), "others were in that group");
    }
}
