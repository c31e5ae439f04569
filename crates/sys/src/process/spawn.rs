//! Starting a program.
//!
//! Theory of operation. Everything that allocates is done before fork(2): the argument and
//! environment arrays, the list of paths to try. All signals are blocked across the fork, so that
//! no handler of ours ever runs in the child. The child makes system calls only, until execve(2)
//! replaces it. A pipe that closes on exec reports the outcome: it ends empty when the program
//! runs, or carries the step that failed and its errno.

mod child;

use std::ffi::{CStr, CString};
use std::fmt;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal};

use child::ForkedChildContext;

use crate::ffi::check;
use crate::seccomp::SeccompFilterKind;

/// What to start, and as what. Lists are complete: nothing is inherited by name.
#[derive(Clone, Copy, Debug)]
pub struct SpawnPlan<'a> {
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `environment`.
    pub arguments: &'a [CString],
    /// Every variable, as `NAME=value`.
    pub environment: &'a [CString],
    /// The working folder, or the caller's.
    pub folder: Option<&'a CStr>,
    /// Standard input, output and error. All other descriptors are closed, unless it inherits them.
    pub stdio: [BorrowedFd<'a>; 3],
    /// Whether the program has the caller's other descriptors, and ignores the signals that the
    /// caller ignores, as a program that a shell starts.
    pub inherits: bool,
    /// The session and process group.
    pub session: SpawnSession,
    /// A user namespace to join, which gives all capabilities in it, or the caller's.
    pub user_namespace: Option<BorrowedFd<'a>>,
    /// Another user, or the caller's.
    pub user: Option<UserIdentity>,
    /// Its supplementary groups: exactly these, or as they are without `user`, and none with it. Where
    /// the user namespace denies it to change them (setgroups(2)), they are the caller's.
    pub supplementary: Option<&'a [u32]>,
    /// Whether to give up every capability. Note that a program run as user 0 of its namespace
    /// gets those back that are in the bounding set, if that could not be emptied.
    pub drop_capabilities: bool,
    /// Whether the program may gain no rights by running others.
    pub no_new_privs: bool,
    /// Where the calls of the program, and of all that it will start, are shown: to the process at
    /// the other end of this socket ([`crate::seccomp`]). Needs `CAP_SYS_ADMIN` in the user
    /// namespace in which the program starts, or else `no_new_privs`.
    pub supervisor: Option<BorrowedFd<'a>>,
    /// Which calls are shown.
    pub filter: SeccompFilterKind,
    /// Whether the program does not start where its calls cannot be shown.
    pub must_show: bool,
    /// The nice value, -20 to 19, or the caller's.
    pub nice: Option<i32>,
    /// Control groups that the program enters, as their open `cgroup.procs`.
    pub groups: &'a [BorrowedFd<'a>],
    /// Limits that the program and all that it starts have, each for itself: soft and hard.
    pub limits: ProcessLimits,
    /// The signal that the program gets when the thread that started it ends.
    pub parent_death_signal: Option<Signal>,
}

/// The session and process group of a new program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpawnSession {
    /// The caller's.
    #[default]
    Inherited,
    /// The caller's session, a process group of its own.
    NewGroup,
    /// A session (and group) of its own, without a terminal.
    New,
    /// A session of its own, controlled by the terminal that is its standard input.
    NewWithTerminal,
}

/// What the kernel limits for each process by itself, setrlimit(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Descriptors.
    pub open_files: Option<u64>,
    /// Processes and threads of its user in its user namespace (before Linux 5.14, in all of them);
    /// does not hold for the machine's root.
    pub pids: Option<u64>,
    /// Bytes that it can write to and has for itself, whether they are in use or not.
    pub data: Option<u64>,
}

/// A user and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserIdentity {
    /// The user, in the caller's user namespace.
    pub uid: u32,
    pub gid: u32,
}

/// Why a program was not started.
#[derive(Debug)]
pub struct SpawnError {
    pub step: SpawnStep,
    pub error: io::Error,
}

/// The steps on the way to a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnStep {
    Fork,
    /// The new session or group.
    Session,
    /// Making standard input the controlling terminal.
    Terminal,
    /// Standard input, output and error.
    Stdio,
    /// Entering control groups.
    Group,
    /// Limits of the process, and its nice value.
    Limit,
    Namespace,
    User,
    Folder,
    /// Giving up capabilities, and the other attributes.
    Privileges,
    /// Showing the program's calls to a supervisor.
    Supervisor,
    Exec,
}

impl<'a> SpawnPlan<'a> {
    /// A plan with the caller's folder, session, user and rights.
    pub fn new(
        arguments: &'a [CString],
        environment: &'a [CString],
        stdio: [BorrowedFd<'a>; 3],
    ) -> SpawnPlan<'a> {
        SpawnPlan {
            arguments,
            environment,
            folder: None,
            stdio,
            inherits: false,
            session: SpawnSession::Inherited,
            user_namespace: None,
            user: None,
            supplementary: None,
            drop_capabilities: false,
            no_new_privs: false,
            supervisor: None,
            filter: SeccompFilterKind::Bytes,
            must_show: false,
            nice: None,
            groups: &[],
            limits: ProcessLimits::default(),
            parent_death_signal: None,
        }
    }
}

/// Starts a program in a new process and returns when it runs. Its signals are all unblocked, and
/// at their defaults unless it inherits them. The caller must wait for it some day.
///
/// # Errors
/// The step that failed and its errno: for example `Exec` with `ENOENT` for an unknown program.
pub fn spawn(plan: &SpawnPlan<'_>) -> Result<Pid, SpawnError> {
    let fork_failed = |error| SpawnError { step: SpawnStep::Fork, error };
    let mut prepared = ForkedChildContext::new(plan)
        .map_err(|error| SpawnError { step: SpawnStep::Exec, error })?;
    let (reader, writer) = report_pipe().map_err(fork_failed)?;
    let before = block_all_signals().map_err(fork_failed)?;
    // SAFETY: the child only makes system calls on memory prepared above, until it has become
    // another program or is gone.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        let Err((step, errno)) = prepared.become_program();
        report(&writer, step, errno);
        super::exit_now(127);
    }
    let forked = check(forked);
    restore_signals(&before);
    drop(writer);
    let pid = forked.and_then(|pid| Pid::from_raw(pid).ok_or_else(malformed));
    let pid = pid.map_err(fork_failed)?;
    match read_report(reader) {
        Ok(None) => Ok(pid),
        Ok(Some(failure)) => {
            // The child ends by itself now. Another thread that reaps any child may be faster.
            let _ = super::wait_pid(pid, false);
            Err(failure)
        }
        Err(error) => Err(fork_failed(error)),
    }
}

/// The report's pipe, its writing end clear of the numbers that standard input, output and error
/// are about to take.
fn report_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((reader, rustix::io::fcntl_dupfd_cloexec(&writer, FIRST_BEYOND_STDIO)?))
}

fn report(writer: &OwnedFd, step: SpawnStep, errno: Errno) {
    let step = STEPS.iter().position(|known| *known == step).unwrap_or(STEPS.len() - 1);
    let [step, ..] = step.to_le_bytes();
    let [a, b, c, d] = errno.raw_os_error().to_ne_bytes();
    // Five bytes into an empty pipe: they fit, and need not be read.
    let _ = rustix::io::write(writer, &[step, a, b, c, d]);
}

fn read_report(reader: OwnedFd) -> io::Result<Option<SpawnError>> {
    let mut bytes = Vec::with_capacity(5);
    std::fs::File::from(reader).read_to_end(&mut bytes)?;
    match *bytes.as_slice() {
        [] => Ok(None),
        [step, a, b, c, d] => {
            let step = STEPS.get(usize::from(step)).copied().ok_or_else(malformed)?;
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]));
            Ok(Some(SpawnError { step, error }))
        }
        _ => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

fn block_all_signals() -> io::Result<libc::sigset_t> {
    let (mut all, mut before) = (empty_set(), empty_set());
    // SAFETY: the set is valid for writes.
    check(unsafe { libc::sigfillset(&raw mut all) })?;
    // SAFETY: both sets are valid; only this thread's mask changes.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &raw mut before) };
    if error == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn restore_signals(set: &libc::sigset_t) {
    // SAFETY: the set is valid. The only possible error, an unknown first argument, is excluded.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, ptr::null_mut()) };
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: a sigset_t is an array of numbers, and all zero is the empty set on Linux.
    unsafe { std::mem::zeroed() }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.step {
            SpawnStep::Fork => "cannot make a process",
            SpawnStep::Session => "cannot make a session",
            SpawnStep::Terminal => "cannot take the terminal",
            SpawnStep::Stdio => "cannot set up standard input and output",
            SpawnStep::Group => "cannot enter the control group",
            SpawnStep::Limit => "cannot set the limits of the process",
            SpawnStep::Namespace => "cannot join the user namespace",
            SpawnStep::User => "cannot change the user",
            SpawnStep::Folder => "cannot enter the working folder",
            SpawnStep::Privileges => "cannot give up privileges",
            SpawnStep::Supervisor => "cannot have its calls shown",
            SpawnStep::Exec => "cannot run the program",
        })
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

const STEPS: [SpawnStep; 12] = [
    SpawnStep::Fork,
    SpawnStep::Session,
    SpawnStep::Terminal,
    SpawnStep::Stdio,
    SpawnStep::Group,
    SpawnStep::Limit,
    SpawnStep::Namespace,
    SpawnStep::User,
    SpawnStep::Folder,
    SpawnStep::Privileges,
    SpawnStep::Supervisor,
    SpawnStep::Exec,
];

const FIRST_BEYOND_STDIO: RawFd = 3;
