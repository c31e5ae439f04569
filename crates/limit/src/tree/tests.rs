use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use windtunnel_sys::process::{self, Signal};

use super::*;

/// A tree is all that this process has started: one test at a time has some.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

/// A shell with two children, one of which it has made an orphan's child.
fn shell() -> Child {
    let script = "sleep 100 & (sleep 100 & exec sleep 100) & wait";
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::null()).spawn().unwrap()
}

fn end(mut child: Child, tree: &ProcessTree) {
    let all = tree.walk();
    all.into_iter().for_each(|pid| drop(process::kill(pid, Signal::KILL)));
    child.wait().unwrap();
}

/// The members of a tree, once it has so many.
fn members(tree: &ProcessTree, count: usize) -> Vec<Pid> {
    loop {
        let all = tree.walk();
        if all.len() == count {
            return all;
        }
        std::thread::yield_now();
    }
}

fn is_stopped(pid: Pid) -> bool {
    ProcessState::of(pid).is_some_and(|state| !state.can_run())
}

/// A signal takes effect a moment after it was sent.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn all_below_a_process_stops_and_goes_on_but_what_was_stopped_by_others() {
    let _alone = lock(&ALONE);
    let child = shell();
    let tree = ProcessTree::new(None);
    let all = members(&tree, 4);
    assert_eq!(all[0].as_raw_nonzero().get(), child.id().cast_signed(), "parents come first");
    process::kill(all[3], Signal::STOP).unwrap();
    until(|| is_stopped(all[3]));
    tree.stop();
    until(|| all.iter().all(|pid| is_stopped(*pid)));
    tree.resume(|| false);
    until(|| all[..3].iter().all(|pid| !is_stopped(*pid)));
    assert!(is_stopped(all[3]));
    end(child, &tree);
}

#[test]
fn what_something_else_continues_is_stopped_again_once_it_computes() {
    let _alone = lock(&ALONE);
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let tree = ProcessTree::new(None);
    let all = members(&tree, 1);
    tree.stop();
    until(|| is_stopped(all[0]));
    process::kill(all[0], Signal::CONT).unwrap();
    until(|| {
        tree.stop();
        is_stopped(all[0])
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_tree_that_is_to_stop_again_is_not_continued_further() {
    let _alone = lock(&ALONE);
    let child = shell();
    let tree = ProcessTree::new(None);
    let all = members(&tree, 4);
    tree.stop();
    until(|| all.iter().all(|pid| is_stopped(*pid)));
    tree.resume(|| true);
    assert!(all.iter().all(|pid| is_stopped(*pid)));
    end(child, &tree);
}

#[test]
fn both_ways_to_find_a_tree_find_the_same() {
    let _alone = lock(&ALONE);
    let child = shell();
    let tree = ProcessTree::new(None);
    let mut all = members(&tree, 4);
    let mut others = tree.walker.without_children_files().walk(&[]);
    let number = |pid: &Pid| pid.as_raw_nonzero().get();
    all.sort_by_key(number);
    others.sort_by_key(number);
    assert_eq!(all, others);
    end(child, &tree);
}

/// Notes what is done to processes, of which 1 is the parent of 2 and 3.
#[derive(Debug, Default)]
struct Notes {
    all: Mutex<Vec<(&'static str, i32)>>,
    /// Let through the one that is about to go on.
    pass: Option<mpsc::SyncSender<()>>,
    may_pass: Option<Mutex<mpsc::Receiver<()>>>,
}

impl Notes {
    fn note(&self, what: &'static str, pid: Pid) {
        lock(&self.all).push((what, pid.as_raw_nonzero().get()));
    }
}

impl stops::ProcessController for Notes {
    fn state(&self, pid: Pid) -> Option<ProcessState> {
        let parent = i32::from(pid.as_raw_nonzero().get() > 1);
        Some(ProcessState { letter: 'S', parent, threads: 1, began: 7, ..ProcessState::default() })
    }

    fn used_ns(&self, _: Pid) -> u64 {
        0
    }

    fn pending_stops(&self, _: Pid) -> Vec<Signal> {
        Vec::new()
    }

    fn mark(&self, _: Pid, _: u64) {}

    fn stop(&self, pid: Pid, _: u64) -> std::io::Result<()> {
        self.note("stop", pid);
        Ok(())
    }

    fn await_stop(&self, pid: Pid) {
        self.note("await", pid);
    }

    fn await_passage(&self, pid: Pid, list: &Mutex<stops::StoppedProcessList>) {
        let is_passing = || self.share(list, |list| list.is_passing(pid));
        if is_passing() {
            self.pass.iter().for_each(|pass| pass.send(()).unwrap());
            while is_passing() {
                std::thread::yield_now();
            }
        }
    }

    fn signal(&self, pid: Pid, _: Signal) -> std::io::Result<()> {
        let is_parent = pid.as_raw_nonzero().get() == 1;
        let may_pass = self.may_pass.iter().filter(|_| is_parent);
        may_pass.for_each(|may_pass| lock(may_pass).recv().unwrap());
        self.note("continue", pid);
        Ok(())
    }
}

#[test]
fn a_parent_is_stopped_before_its_children_are_stopped() {
    let notes = Notes::default();
    let all = [1, 2, 3].map(|number| Pid::from_raw(number).unwrap());
    let _ = StoppedProcessRegistry::default().stop(&all, &notes);
    let expected = [("stop", 1), ("await", 1), ("stop", 2), ("stop", 3)];
    assert_eq!(*lock(&notes.all), expected);
}

/// The one thread has taken the parent from the list and is about to continue it when the other begins
/// to stop: without a wait it would find the parent stopped, and stop only its child.
#[test]
fn a_parent_that_is_about_to_go_on_is_stopped_again_before_its_children() {
    let (pass, may_pass) = mpsc::sync_channel(1);
    let notes =
        Notes { pass: Some(pass), may_pass: Some(Mutex::new(may_pass)), ..Notes::default() };
    let stops = StoppedProcessRegistry::default();
    let [parent, child] = [1, 2].map(|number| Pid::from_raw(number).unwrap());
    let _ = stops.stop(&[parent], &notes);
    std::thread::scope(|scope| {
        scope.spawn(|| stops.resume(|| lock(&notes.all).contains(&("continue", 1)), &notes));
        while !stops.is_passing(parent) {
            std::thread::yield_now();
        }
        let _ = stops.stop(&[parent, child], &notes);
    });
    let seen = lock(&notes.all).clone();
    let expected = [("stop", 1), ("continue", 1), ("stop", 1), ("await", 1), ("stop", 2)];
    assert_eq!(seen[..5], expected, "{seen:?}");
}
