//! What a process is like that cannot be attached, and why: found out without touching it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use windtunnel_sys::process::{self, Pid};

use super::AttachRefusal;

/// Whether a process can be made to install a filter, as far as that shows. One that has ended can.
pub(super) fn check(pid: Pid) -> Result<(), AttachRefusal> {
    let number = pid.as_raw_nonzero().get();
    let Ok(status) = fs::read_to_string(format!("/proc/{number}/status")) else { return Ok(()) };
    check_status(pid, &status)?;
    for thread in folder(&format!("/proc/{number}/task")) {
        let comm = fs::read_to_string(format!("/proc/{number}/task/{thread}/comm"));
        if comm.is_ok_and(|name| WORKERS_OF_RINGS.iter().any(|prefix| name.starts_with(prefix))) {
            return Err(has_rings(pid));
        }
        let status = fs::read_to_string(format!("/proc/{number}/task/{thread}/status"));
        check_status(pid, &status.unwrap_or_default())?;
    }
    match fs::read_dir(format!("/proc/{number}/fd")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !has_ended(pid) => {
            Err(denied(pid, &error))
        }
        Err(_) => Ok(()),
        Ok(descriptors) => {
            let links = descriptors.flatten().filter_map(|it| fs::read_link(it.path()).ok());
            let mut rings = links.filter(|link| link.as_os_str() == RING);
            if rings.next().is_some() { Err(has_rings(pid)) } else { Ok(()) }
        }
    }
}

/// Why a process may not be traced.
pub(super) fn denied(pid: Pid, error: &io::Error) -> AttachRefusal {
    let number = pid.as_raw_nonzero().get();
    let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    if let Err(refusal) = check_status(pid, &status) {
        return refusal;
    }
    let own = process::current_user().uid;
    let users = field(&status, "Uid:").unwrap_or_default();
    if users.split_ascii_whitespace().any(|user| user.parse() != Ok(own)) && own != 0 {
        return AttachRefusal::of(
            pid,
            "it is another user's",
            "run windtunnel as that user, or as root",
        );
    }
    // Of what is in the folder, not of the folder itself.
    let owner = fs::metadata(format!("/proc/{number}/status")).map_or(own, |about| about.uid());
    if owner != own && own != 0 {
        let why = "it may not be looked into: it has made itself not dumpable, or gained rights by \
                   its file";
        return AttachRefusal::of(pid, why, "run windtunnel as root");
    }
    if let Some(scope) = yama_scope().filter(|scope| *scope > 0) {
        let why = format!("the kernel lets no process trace it ({YAMA} is {scope})");
        let hint = "as root: sysctl kernel.yama.ptrace_scope=0; or run windtunnel as root";
        return AttachRefusal::of(pid, why, if scope < 3 { hint } else { "" });
    }
    AttachRefusal::of(
        pid,
        format!("the kernel refuses to trace it: {error}"),
        "run windtunnel as root",
    )
}

/// Whether a process or thread has ended, or is about to: it has no memory any more.
pub(super) fn has_ended(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let state = field(&status, "State:").unwrap_or("X");
    state.starts_with(['Z', 'X']) || field(&status, "VmSize:").is_none()
}

/// What `status` of proc_pid_status(5) says against it.
fn check_status(pid: Pid, status: &str) -> Result<(), AttachRefusal> {
    let number = |name| field(status, name).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let tracer = number("TracerPid:");
    // Once it is stopped that is this process.
    if tracer != 0 && tracer != std::process::id() {
        let why = format!("process {tracer} traces it already, as a debugger does");
        return Err(AttachRefusal::of(pid, why, "end that one first"));
    }
    if number("Seccomp:") != 0 {
        let why = "it is under a filter (seccomp) already, which may end it for a call that it does \
                   not know, or may show calls itself";
        let hint = "--cpu, --memory, --pids and --open-files need no filter; a command can be \
                    started under a limit";
        return Err(AttachRefusal::of(pid, why, hint));
    }
    Ok(())
}

fn has_rings(pid: Pid) -> AttachRefusal {
    let why = "it uses io_uring, whose rings move bytes without calls that could be looked at";
    AttachRefusal::of(pid, why, "started under a limit it gets none, and uses other calls")
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn yama_scope() -> Option<u32> {
    fs::read_to_string(YAMA).ok()?.trim().parse().ok()
}

fn folder(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
const RING: &str = "anon_inode:[io_uring]";
/// Threads of the kernel that work for rings whose descriptors are closed.
const WORKERS_OF_RINGS: [&str; 2] = ["iou-sqp-", "iou-wrk-"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_traced_or_under_a_filter_is_refused_with_the_cause() {
        let own = process::current();
        let refused = |status: &str| check_status(own, status).unwrap_err().to_string();
        assert!(refused("Name:\tx\nTracerPid:\t7\n").contains("process 7 traces it already"));
        assert!(refused("Seccomp:\t2\nSeccomp_filters:\t1\n").contains("under a filter"));
        assert!(check_status(own, "Name:\tx\nTracerPid:\t0\nSeccomp:\t0\n").is_ok());
        assert!(check(Pid::from_raw(i32::MAX).unwrap()).is_ok());
    }
}
