//! Processes: their attributes, signals to them, waiting for them, starting programs in them.
//! Source: prctl(2), kill(2), waitpid(2), pidfd_open(2), proc_pid_syscall(5).

mod spawn;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, WaitStatus};

use crate::ffi::check;

pub use rustix::process::{Pid, Signal};
pub use spawn::{
    ProcessLimits, SpawnError, SpawnPlan, SpawnSession, SpawnStep, UserIdentity, spawn,
};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessExitStatus {
    /// It exited with this code.
    Exited(i32),
    /// A signal of this number ended it.
    Killed(i32),
}

/// The calling process, as seen from its own PID namespace.
pub fn current() -> Pid {
    rustix::process::getpid()
}

/// The effective user and group of the caller.
pub fn current_user() -> UserIdentity {
    UserIdentity {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    }
}

/// How many threads the calling process has.
///
/// # Errors
/// `ENOENT` where /proc is not mounted.
pub fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Has the kernel send `signal` to the caller when the thread that made it ends; none undoes
/// this. A change of user undoes it too. If the parent may have gone before the call, look at
/// [`parent`] after it.
///
/// # Errors
/// What prctl(2) says.
pub fn set_parent_death_signal(signal: Option<Signal>) -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(signal)?)
}

/// The parent, unless it is outside of the caller's PID namespace.
pub fn parent() -> Option<Pid> {
    rustix::process::getppid()
}

/// Makes the caller inherit its descendants' orphans.
///
/// # Errors
/// What prctl(2) says.
pub fn set_child_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(current()))?)
}

/// Begins a session of the calling process's own, without a terminal. Source: setsid(2).
///
/// # Errors
/// `EPERM` for the leader of a process group.
pub fn begin_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Sets which permissions files made by the process do not get; those until now.
pub fn set_umask(mask: u32) -> u32 {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask)).as_raw_mode()
}

/// Names the calling thread, as `ps` shows it; cut to 15 bytes.
///
/// # Errors
/// `EINVAL` when the name holds a zero byte.
pub fn set_name(name: &str) -> io::Result<()> {
    Ok(rustix::thread::set_name(&CString::new(name)?)?)
}

/// Names the machine, in the caller's UTS namespace.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` above 64 bytes.
pub fn set_host_name(name: &str) -> io::Result<()> {
    Ok(rustix::system::sethostname(name.as_bytes())?)
}

/// Sends a signal to a process.
///
/// # Errors
/// `ESRCH` when there is none, `EPERM` when it is another user's.
pub fn kill(pid: Pid, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(pid, signal)?)
}

/// Whether the caller may send signals to a process.
///
/// # Errors
/// As [`kill`].
pub fn test_kill(pid: Pid) -> io::Result<()> {
    Ok(rustix::process::test_kill_process(pid)?)
}

/// Sends a signal to every process of the group that `leader` leads.
///
/// # Errors
/// As [`kill`].
pub fn kill_group(leader: Pid, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process_group(leader, signal)?)
}

/// Sends a signal to every other process of the caller's PID namespace, of which it is the init.
///
/// # Errors
/// `EPERM` when the caller is not PID 1 (as root it would hit the whole machine), `ESRCH` when
/// there is no other.
pub fn kill_all(signal: Signal) -> io::Result<()> {
    if !current().is_init() {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: kill(2) takes no pointers.
    check(unsafe { libc::kill(-1, signal.as_raw()) }).map(drop)
}

/// Whether a process that is stopped is in the system call that forks, as its parent or its child.
///
/// # Errors
/// `EACCES` without the rights to trace it, `ENOENT` or `ESRCH` when it has ended.
pub fn is_in_fork(pid: Pid) -> io::Result<bool> {
    let text = std::fs::read_to_string(format!("/proc/{}/syscall", pid.as_raw_nonzero()))?;
    let number = text.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
    Ok(number.is_some_and(|number| FORKS.contains(&number)))
}

#[cfg(target_arch = "x86_64")]
const FORKS: &[libc::c_long] =
    &[libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[libc::c_long] = &[libc::SYS_clone, libc::SYS_clone3];

/// Opens a process as a descriptor, which becomes readable when it ends.
///
/// # Errors
/// `ESRCH` when there is none.
pub fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// A copy of a descriptor of another process.
///
/// # Errors
/// `EBADF` when it has none of that number, `EPERM` without the rights to trace it, `ESRCH` when it
/// has ended.
pub fn pidfd_getfd(pidfd: impl AsFd, number: i32) -> io::Result<OwnedFd> {
    let flags = rustix::process::PidfdGetfdFlags::empty();
    Ok(rustix::process::pidfd_getfd(pidfd, number, flags)?)
}

/// Reads the memory of another process from `address`: how many bytes.
///
/// # Errors
/// `EFAULT` when it has none there, `EPERM` without the rights to trace it, `ESRCH` when it has
/// ended.
pub fn read_memory(pid: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let pid = pid.as_raw_nonzero().get();
    let base = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0));
    let theirs = libc::iovec { iov_base: base, iov_len: buffer.len() };
    let ours = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the kernel writes to `buffer` only, within its length; the other address is one of
    // the other process, and is checked there.
    let read = unsafe { libc::process_vm_readv(pid, &raw const ours, 1, &raw const theirs, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Writes to the memory of another process at `address`.
///
/// # Errors
/// As [`read_memory`]; `WriteZero` when less than all could be written.
pub fn write_memory(pid: Pid, address: u64, bytes: &[u8]) -> io::Result<()> {
    let pid = pid.as_raw_nonzero().get();
    let base = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0));
    let theirs = libc::iovec { iov_base: base, iov_len: bytes.len() };
    let ours = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the kernel reads `bytes` only, within its length; the other address is one of the
    // other process, and is checked there.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const ours, 1, &raw const theirs, 1, 0) };
    match usize::try_from(written) {
        Ok(count) if count == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to the process of a pidfd.
///
/// # Errors
/// As [`kill`].
pub fn pidfd_send_signal(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::pidfd_send_signal(pidfd, signal)?)
}

/// Reaps any child that has ended. With `nohang` none is returned at once when all live on,
/// otherwise the call waits for one to end.
///
/// # Errors
/// `ECHILD` when there are no children, `EINTR` when a signal handler ran.
pub fn wait_any(nohang: bool) -> io::Result<Option<(Pid, ProcessExitStatus)>> {
    let ended = rustix::process::wait(wait_options(nohang))?;
    Ok(ended.and_then(|(pid, status)| Some((pid, ProcessExitStatus::of(status)?))))
}

/// Reaps one child; otherwise as [`wait_any`].
///
/// # Errors
/// `ECHILD` when it is not an unreaped child of the caller.
pub fn wait_pid(pid: Pid, nohang: bool) -> io::Result<Option<ProcessExitStatus>> {
    let ended = rustix::process::waitpid(Some(pid), wait_options(nohang))?;
    Ok(ended.and_then(|(_, status)| ProcessExitStatus::of(status)))
}

/// Reaps the child of a pidfd; otherwise as [`wait_any`].
///
/// # Errors
/// `ECHILD` when it is not an unreaped child of the caller.
pub fn wait_pidfd(pidfd: impl AsFd, nohang: bool) -> io::Result<Option<ProcessExitStatus>> {
    let nohang = if nohang { WaitIdOptions::NOHANG } else { WaitIdOptions::empty() };
    let which = WaitId::PidFd(pidfd.as_fd());
    let ended = rustix::process::waitid(which, WaitIdOptions::EXITED | nohang)?;
    Ok(ended.as_ref().and_then(ProcessExitStatus::of_id))
}

/// Sets whether other processes of the same user may look into the caller: trace it, read its
/// memory, take its descriptors, and whether it leaves a core dump. Running a program, and most
/// changes of identity or capabilities, set the kernel's default again. A forked child is like its
/// parent.
///
/// # Errors
/// What prctl(2) says.
pub fn set_dumpable(dumpable: bool) -> io::Result<()> {
    use rustix::process::DumpableBehavior::{Dumpable, NotDumpable};
    Ok(rustix::process::set_dumpable_behavior(if dumpable { Dumpable } else { NotDumpable })?)
}

/// Ends the process at once: no destructors, no exit handlers, no flushing.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) is always allowed, and never returns.
    unsafe { libc::_exit(code) }
}

impl ProcessExitStatus {
    /// The exit code that a shell would show: 128 and the signal's number for a killed process.
    pub fn shell_code(self) -> i32 {
        match self {
            ProcessExitStatus::Exited(code) => code,
            ProcessExitStatus::Killed(signal) => 128 + signal,
        }
    }

    fn of(status: WaitStatus) -> Option<ProcessExitStatus> {
        let exited = status.exit_status().map(ProcessExitStatus::Exited);
        exited.or_else(|| status.terminating_signal().map(ProcessExitStatus::Killed))
    }

    fn of_id(status: &WaitIdStatus) -> Option<ProcessExitStatus> {
        let exited = status.exit_status().map(ProcessExitStatus::Exited);
        exited.or_else(|| status.terminating_signal().map(ProcessExitStatus::Killed))
    }
}

fn wait_options(nohang: bool) -> WaitOptions {
    if nohang { WaitOptions::NOHANG } else { WaitOptions::empty() }
}
