use std::process::{Child, Command, Stdio};

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

fn end(mut child: Child, tree: &Tree) {
    let all = tree.walk();
    all.into_iter().for_each(|pid| drop(process::kill(pid, Signal::KILL)));
    child.wait().unwrap();
}

/// The members of a tree, once it has so many.
fn members(tree: &Tree, count: usize) -> Vec<Pid> {
    loop {
        let all = tree.walk();
        if all.len() == count {
            return all;
        }
        std::thread::yield_now();
    }
}

fn is_stopped(pid: Pid) -> bool {
    State::of(pid).is_some_and(|state| !state.can_run())
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
    let tree = Tree::new(None);
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
    let tree = Tree::new(None);
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
    let tree = Tree::new(None);
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
    let tree = Tree::new(None);
    let mut all = members(&tree, 4);
    let mut others = tree.walker.without_children_files().walk(&[]);
    let number = |pid: &Pid| pid.as_raw_nonzero().get();
    all.sort_by_key(number);
    others.sort_by_key(number);
    assert_eq!(all, others);
    end(child, &tree);
}
