//! The child's side, between fork(2) and execve(2): no allocation, no locks, system calls only.

use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use rustix::thread::{Gid, Uid};

use crate::seccomp;

use super::{
    FIRST_BEYOND_STDIO, ProcessLimits, SpawnPlan, SpawnSession, SpawnStep, UserIdentity, empty_set,
    restore_signals,
};

/// What the child needs, made before the fork.
pub(super) struct ForkedChildContext<'a> {
    /// INVARIANT: these end with a null pointer and point into the plan.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// The paths to try, in order.
    programs: Vec<CString>,
    /// For what turns out to be a shell script: as `arguments`, with the shell and a place for
    /// the program in front.
    script_arguments: Vec<*const c_char>,
    /// Clear of the numbers that standard input, output and error are about to take.
    supervisor: Option<OwnedFd>,
    supplementary: Option<Vec<Gid>>,
    plan: &'a SpawnPlan<'a>,
}

impl<'a> ForkedChildContext<'a> {
    pub(super) fn new(plan: &'a SpawnPlan<'a>) -> io::Result<ForkedChildContext<'a>> {
        let arguments = pointers(plan.arguments);
        let programs = programs(plan)?;
        let rest = arguments.iter().copied().skip(1);
        let script_arguments = [SHELL.as_ptr(), ptr::null()].into_iter().chain(rest).collect();
        let environment = pointers(plan.environment);
        let copy = |socket| rustix::io::fcntl_dupfd_cloexec(socket, FIRST_BEYOND_STDIO);
        let supervisor = plan.supervisor.map(copy).transpose()?;
        let none = plan.user.map(|_| &[][..]);
        let gids = |groups: &[u32]| groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let supplementary = plan.supplementary.or(none).map(gids);
        Ok(ForkedChildContext {
            arguments,
            environment,
            programs,
            script_arguments,
            supervisor,
            supplementary,
            plan,
        })
    }

    /// Runs in the child: async-signal-safe calls only, and no allocation.
    pub(super) fn become_program(&mut self) -> Result<Infallible, (SpawnStep, Errno)> {
        let plan = self.plan;
        let at = |step| move |errno| (step, errno);
        enter_session(plan.session).map_err(at(SpawnStep::Session))?;
        enter_groups(plan.groups).map_err(at(SpawnStep::Group))?;
        place_stdio(plan.stdio, plan.inherits).map_err(at(SpawnStep::Stdio))?;
        if plan.session == SpawnSession::NewWithTerminal {
            let terminal = rustix::stdio::stdin();
            rustix::process::ioctl_tiocsctty(terminal).map_err(at(SpawnStep::Terminal))?;
        }
        if let Some(nice) = plan.nice {
            rustix::process::setpriority_process(None, nice).map_err(at(SpawnStep::Limit))?;
        }
        if let Some(namespace) = plan.user_namespace {
            join_user_namespace(namespace).map_err(at(SpawnStep::Namespace))?;
        }
        // Before the rights that it needs are given up. None of the calls from here to execve(2)
        // are shown.
        if let Some(supervisor) = &self.supervisor {
            if plan.no_new_privs {
                rustix::thread::set_no_new_privs(true).map_err(at(SpawnStep::Privileges))?;
            }
            let program = plan.arguments.first().map_or(&b""[..], |program| program.to_bytes());
            let install = seccomp::install(supervisor.as_fd(), program, plan.filter);
            let errno = install.map_err(at(SpawnStep::Supervisor))?;
            if let Some(errno) = errno.filter(|_| plan.must_show) {
                return Err((SpawnStep::Supervisor, errno));
            }
        }
        if let Some(groups) = &self.supplementary {
            set_supplementary(groups).map_err(at(SpawnStep::User))?;
        }
        if let Some(user) = plan.user {
            become_user(user).map_err(at(SpawnStep::User))?;
        }
        if let Some(folder) = plan.folder {
            rustix::process::chdir(folder).map_err(at(SpawnStep::Folder))?;
        }
        drop_privileges(plan).map_err(at(SpawnStep::Privileges))?;
        set_limits(plan.limits).map_err(at(SpawnStep::Limit))?;
        if plan.inherits {
            // Those that are ignored here whatever the caller's caller does: by Rust's own start, and
            // to have an error in place of a death.
            reset_signal(libc::SIGPIPE);
            reset_signal(libc::SIGXFSZ);
            restore_signals(&empty_set());
        } else {
            reset_signals();
        }
        Err((SpawnStep::Exec, self.exec()))
    }

    /// Tries one path after the other, as execvp(3) does: a program that may not be run is
    /// remembered, and is the error if no other one is found; a text without `#!` is for the
    /// shell.
    fn exec(&mut self) -> Errno {
        let mut error = Errno::NOENT;
        for program in &self.programs {
            match execute(program, &self.arguments, &self.environment) {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => error = Errno::ACCESS,
                Errno::NOEXEC => {
                    self.script_arguments[1] = program.as_ptr();
                    return execute(SHELL, &self.script_arguments, &self.environment);
                }
                other => return other,
            }
        }
        error
    }
}

/// execve(2), which returns only to say why it failed. The lists end with a null pointer.
fn execute(program: &CStr, arguments: &[*const c_char], environment: &[*const c_char]) -> Errno {
    // SAFETY: all strings are alive, and both lists were made with a null pointer at their end.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    last_errno()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// The paths at which the program may be. Relative ones count from the new working folder.
fn programs(plan: &SpawnPlan<'_>) -> io::Result<Vec<CString>> {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let program = plan.arguments.first().ok_or_else(invalid)?;
    if program.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    if program.to_bytes().contains(&b'/') {
        return Ok(vec![program.clone()]);
    }
    let path = plan.environment.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let folders = path.unwrap_or(PATH_DEFAULT).split(|byte| *byte == b':');
    let join = |folder: &[u8]| {
        let folder = if folder.is_empty() { b"." } else { folder };
        CString::new([folder, b"/", program.to_bytes()].concat())
            .expect("parts of C strings hold no zero byte")
    };
    Ok(folders.map(join).collect())
}

fn enter_session(session: SpawnSession) -> Result<(), Errno> {
    match session {
        SpawnSession::Inherited => Ok(()),
        SpawnSession::NewGroup => rustix::process::setpgid(None, None),
        SpawnSession::New | SpawnSession::NewWithTerminal => rustix::process::setsid().map(drop),
    }
}

/// Before the descriptors are closed or given other numbers. A process names itself by 0, whatever
/// its number is in the namespace of those that opened the file.
fn enter_groups(groups: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    groups.iter().try_for_each(|group| rustix::io::write(group, b"0").map(drop))
}

/// Last, as what is done before may need more. The hard limit, too: only root can raise it again.
fn set_limits(limits: ProcessLimits) -> Result<(), Errno> {
    let all = [
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.pids),
        (Resource::Data, limits.data),
    ];
    for (resource, limit) in all {
        let Some(limit) = limit else { continue };
        let limit = Some(limit);
        rustix::process::setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
    }
    Ok(())
}

/// Puts the three descriptors in place and marks all others to be closed by exec, unless they are
/// inherited.
fn place_stdio(stdio: [BorrowedFd<'_>; 3], inherits: bool) -> Result<(), Errno> {
    let mut sources: [RawFd; 3] = [0; 3];
    for (source, descriptor) in sources.iter_mut().zip(stdio) {
        // Copies above the three numbers, so that placing one cannot overwrite another.
        let raw = descriptor.as_raw_fd();
        // SAFETY: fcntl(2) with F_DUPFD_CLOEXEC takes no pointers.
        *source = sys(unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, FIRST_BEYOND_STDIO) })?;
    }
    for (place, source) in (0..).zip(sources) {
        // SAFETY: this process is about to become another: nothing here uses the old ones.
        sys(unsafe { libc::dup2(source, place) })?;
    }
    if inherits {
        return Ok(());
    }
    // Ours are so marked already; this is for those that our own parent left us. Linux before
    // 5.11 cannot, and then they stay.
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: marking descriptors touches no memory and closes nothing yet.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST_BEYOND_STDIO, libc::c_uint::MAX, flags) };
    Ok(())
}

/// A process with rights in the new namespace must not look into this copy of the caller before it
/// has become another program, whatever the machine's default is (fs.suid_dumpable) that joining
/// has set.
fn join_user_namespace(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: setns(2) takes no pointers, and the descriptor is borrowed for the call.
    sys(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWUSER) })?;
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
}

fn set_supplementary(groups: &[Gid]) -> Result<(), Errno> {
    match rustix::thread::set_thread_groups(groups) {
        // A user namespace without setgroups(2): what groups there are must stay.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn become_user(user: UserIdentity) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}

fn drop_privileges(plan: &SpawnPlan<'_>) -> Result<(), Errno> {
    if plan.drop_capabilities {
        crate::capability::drop_all()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))?;
    }
    if plan.no_new_privs {
        rustix::thread::set_no_new_privs(true)?;
    }
    // After the change of user, which would undo it.
    match plan.parent_death_signal {
        Some(signal) => rustix::process::set_parent_process_death_signal(Some(signal)),
        None => Ok(()),
    }
}

/// Every signal at its default and none blocked: ignored and blocked ones would be inherited.
fn reset_signals() {
    (1..=SIGNAL_MAX).for_each(reset_signal);
    restore_signals(&empty_set());
}

fn reset_signal(number: libc::c_int) {
    // All zero is the default disposition in the kernel's own layout, on every architecture. Not
    // through the C library, which refuses to touch the two numbers that it keeps for itself.
    let default = [0_u64; 8];
    let set_bytes: libc::size_t = 8;
    // SAFETY: the structure is longer than the kernel's, and only read. SIGKILL and SIGSTOP cannot
    // be set, and have their defaults already.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            number,
            default.as_ptr(),
            ptr::null_mut::<u64>(),
            set_bytes,
        )
    };
}

fn sys(returned: libc::c_int) -> Result<libc::c_int, Errno> {
    if returned < 0 { Err(last_errno()) } else { Ok(returned) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// The highest signal number of Linux, `SIGRTMAX`.
const SIGNAL_MAX: libc::c_int = 64;

/// What runs texts without `#!`.
const SHELL: &CStr = c"/bin/sh";

/// As the C library searches without a `PATH`.
const PATH_DEFAULT: &[u8] = b"/bin:/usr/bin";
