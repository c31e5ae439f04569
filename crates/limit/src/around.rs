//! A control group that processes are moved into which run already, and out of again.
//!
//! It is made in the group that they are in, so that what limits that one holds for them still, and
//! what watches over it finds them. That needs all of them to be in one group, and in version 2 no
//! other process beside them, as a group of which groups inside are limited has no processes
//! (Documentation/admin-guide/cgroup-v2.rst, "No Internal Process Constraint").

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_model::{LimitMechanism, Resource};
use windtunnel_sys::process::Pid;

use crate::choice::LimitMechanismChoice;
use crate::group::{CgroupLimits, ControlGroup};
use crate::tree::{self, ProcessTree};
use crate::way::{self, EvacuatedCgroup, ROUNDS_MAX};

/// The way of processes that run already into a control group, and out of it. Dropping it puts them
/// back; what limits them ends with the group itself.
#[derive(Debug)]
pub struct CgroupRelocation {
    choice: LimitMechanismChoice,
    /// The group's folders, of each hierarchy one.
    folders: Vec<PathBuf>,
    emptied: Option<EvacuatedCgroup>,
}

impl CgroupRelocation {
    /// Finds what groups can limit of these resources; no process is limited yet. `None`: nothing.
    ///
    /// # Errors
    /// Why none can be made.
    pub fn choose(tree: &ProcessTree, wanted: &[Resource]) -> io::Result<Option<CgroupRelocation>> {
        let all = tree.walk();
        let Some(root) = all.first().map(|pid| number(*pid)) else { return Ok(None) };
        let group_of = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup"));
        let own = group_of(root)?;
        // One that has ended, and is yet to be waited for, is in none of them.
        let mut living = all.iter().map(|pid| number(*pid)).filter(|pid| lives(*pid));
        if living.any(|pid| group_of(pid).is_ok_and(|other| other != own)) {
            return Err(io::Error::other("its processes are in several control groups"));
        }
        let walked = || tree.walk().into_iter().map(number).collect::<BTreeSet<u32>>();
        let known = RefCell::new(all.iter().map(|pid| number(*pid)).collect::<BTreeSet<u32>>());
        let is_inside = |pid: u32| {
            if !known.borrow().contains(&pid) {
                // It may have been made since.
                *known.borrow_mut() = walked();
            }
            known.borrow().contains(&pid)
        };
        let (choice, emptied) = LimitMechanismChoice::around(root, &is_inside)?;
        let around = CgroupRelocation { choice, folders: Vec::new(), emptied };
        let is_useful = wanted.iter().any(|resource| around.mechanism(*resource).is_some());
        Ok(is_useful.then_some(around))
    }

    /// The version of groups that limits a resource, if one can.
    #[must_use]
    pub fn mechanism(&self, resource: Resource) -> Option<LimitMechanism> {
        self.choice.group_of(resource)
    }

    /// Limits what groups can limit of this, and moves all processes of a tree into the group, also
    /// those that are made meanwhile. Where that fails all are where they were.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn enter(&mut self, tree: &ProcessTree, bounds: &CgroupLimits) -> io::Result<ControlGroup> {
        let group = self.choice.group(None, bounds)?;
        self.folders = group.folders(self.choice.outside());
        if let Err(error) = self.gather(tree) {
            self.leave();
            return Err(error);
        }
        Ok(group)
    }

    /// Moves processes of the tree into the group that are not in it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn gather(&self, tree: &ProcessTree) -> io::Result<()> {
        // Each by itself: what a process makes between two of these is in the first alone.
        self.folders.iter().try_for_each(|folder| CgroupRelocation::gather_into(folder, tree))
    }

    fn gather_into(folder: &Path, tree: &ProcessTree) -> io::Result<()> {
        for _ in 0..ROUNDS_MAX {
            let inside = way::processes(folder)?;
            let all = tree.walk().into_iter().map(number);
            let outside: Vec<u32> = all.filter(|pid| !inside.contains(pid)).collect();
            // One that has ended, and is yet to be waited for, cannot be moved.
            let outside: Vec<u32> = outside.into_iter().filter(|pid| lives(*pid)).collect();
            if outside.is_empty() {
                return Ok(());
            }
            outside.into_iter().try_for_each(|pid| way::put(folder, pid))?;
        }
        Err(io::Error::other("its processes are made faster than they can be moved"))
    }

    /// Whether no process that runs is in the group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let inside = self.folders.first().map(|folder| way::processes(folder));
        inside.is_none_or(|inside| inside.is_ok_and(|all| !all.into_iter().any(lives)))
    }

    /// Moves all processes back, and removes what is empty then.
    pub fn leave(&mut self) {
        for folder in std::mem::take(&mut self.folders) {
            let outside = folder.parent().map(|parent| match &self.emptied {
                Some(emptied) if emptied.leaf().parent() == Some(parent) => emptied.leaf(),
                _ => parent,
            });
            if let Some(outside) = outside {
                // What cannot be moved keeps its limits: the group is not removed then.
                let _ = way::move_all(&folder, outside, &|_| true);
            }
            // The group itself would do so a moment later.
            let _ = fs::remove_dir(&folder);
        }
        self.emptied = None;
    }
}

impl Drop for CgroupRelocation {
    fn drop(&mut self) {
        self.leave();
    }
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

/// Whether a process runs: also one whose first thread alone has ended.
fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !tree::has_ended(pid))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use windtunnel_model::ResourceAmounts;

    use super::*;
    use crate::tree::tests::ALONE;

    #[test]
    fn processes_enter_a_group_and_leave_it_where_groups_can_be_made() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut child = Command::new("sh").args(["-c", "sleep 100 & wait"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let tree = ProcessTree::of(pid);
        while tree.walk().len() < 2 {
            std::thread::yield_now();
        }
        let groups = |pid| fs::read_to_string(format!("/proc/{}/cgroup", number(pid))).unwrap();
        let before = groups(pid);
        if let Ok(Some(mut around)) = CgroupRelocation::choose(&tree, &[Resource::Pids]) {
            let bounds = CgroupLimits::of(ResourceAmounts::only(Resource::Pids, 100));
            let mut group = around.enter(&tree, &bounds).unwrap();
            assert!(!around.is_empty());
            for member in tree.walk() {
                assert!(groups(member).contains("/windtunnel-"), "{}", groups(member));
            }
            assert_eq!(group.pids().unwrap().unwrap().count, 2);
        }
        for member in tree.walk() {
            assert_eq!(groups(member), before);
            let _ = windtunnel_sys::process::kill(member, windtunnel_sys::process::Signal::KILL);
        }
        child.wait().unwrap();
    }
}
