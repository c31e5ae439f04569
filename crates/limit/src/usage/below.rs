//! The processor time of a process that inherits the orphans of all below it, and of all these: the
//! init of a PID namespace, read by the process that made it; or the calling process.

use windtunnel_sys::clock;
use windtunnel_sys::process::Pid;

use super::ended_children_ns;

/// Nanoseconds that `root` and all that was ever below it have used; `processes` are those below it,
/// parents before their children, as [`ProcessTree::below`](crate::ProcessTree::below) finds them.
///
/// It is never more than they used, and less by two ticks of the kernel at most for each that has
/// children, and by what a child had whose parent has the kernel forget it (SIGCHLD ignored). No
/// time counts twice: a process that its parent's account had when that was read has no clock afterwards.
#[must_use]
pub fn below(root: Pid, processes: &[Pid]) -> u64 {
    let all = std::iter::once(&root).chain(processes);
    all.map(|pid| of_one(*pid)).fold(0, u64::saturating_add)
}

/// The same of the calling process's children and all below these, `processes`, without itself: it
/// inherits the orphans among them, and its account of those that have ended is exact.
#[must_use]
pub fn of_children(processes: &[Pid]) -> u64 {
    let ended_ns = clock::ended_children_cpu_ns();
    let each = processes.iter().map(|pid| of_one(*pid));
    each.fold(ended_ns, u64::saturating_add)
}

/// With its children that have ended.
fn of_one(process: Pid) -> u64 {
    let ended_ns = ended_children_ns(process.as_raw_nonzero().get()).unwrap_or(0);
    ended_ns.saturating_add(own_ns(process))
}

/// 0 of a process that is gone.
fn own_ns(process: Pid) -> u64 {
    clock::cpu_ns_of(process).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::ProcessTree;

    #[test]
    fn what_has_ended_below_a_process_counts_with_what_lives() {
        let burn = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{burn}'; sh -c '{burn}' & wait; {burn}; sleep 100 & wait");
        let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let root = Pid::from_raw(i32::try_from(shell.id()).unwrap()).unwrap();
        let name = |pid: &Pid| fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
        let sleeps = |pid: &Pid| name(pid).is_ok_and(|name| name == "sleep\n");
        let is_asleep = || ProcessTree::below(root).iter().any(sleeps);
        while !is_asleep() {
            std::thread::yield_now();
        }
        let (all, own) = (below(root, &ProcessTree::below(root)), own_ns(root));
        let before = clock::ended_children_cpu_ns();
        for pid in ProcessTree::below(root).into_iter().chain([root]) {
            let _ = windtunnel_sys::process::kill(pid, windtunnel_sys::process::Signal::KILL);
        }
        shell.wait().unwrap();
        // Other tests of this process may have children, too.
        let counted = clock::ended_children_cpu_ns() - before;
        assert!(all > own && all <= counted + 30_000_000, "{own} {all} {counted}");
    }
}
