//! Namespaces: leaving old ones, forking into new ones, mapping users. Source: namespaces(7),
//! user_namespaces(7), clone(2), setns(2).

use std::fs::{self, File};
use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use crate::ffi::check;
use crate::process::Pid;

/// A set of kinds of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFlags(libc::c_int);

/// Which side of [`fork_into`] this is.
#[derive(Debug)]
#[must_use]
pub enum NamespaceFork {
    /// The caller goes on; it must wait for the child some day.
    Parent {
        /// The child, as seen from the caller's PID namespace.
        pid: Pid,
        /// The child as a descriptor, for polling and for signals that cannot hit another.
        pidfd: OwnedFd,
    },
    /// The new process, in the new namespaces.
    Child,
}

/// The process whose user namespace is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserNamespaceTarget {
    /// The caller itself.
    Current,
    /// Another process.
    Process(Pid),
}

/// A run of identities: `count` of them, from `inside` in the namespace and from `outside` in its
/// parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first identity in the namespace.
    pub inside: u32,
    /// The first identity in the parent namespace.
    pub outside: u32,
    pub count: u32,
}

/// How a user namespace's users and groups correspond to those of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap {
    pub users: Vec<IdRange>,
    pub groups: Vec<IdRange>,
}

impl NamespaceFlags {
    /// No namespace at all.
    pub const NONE: NamespaceFlags = NamespaceFlags(0);
    /// Users, groups and capabilities.
    pub const USER: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWUSER);
    /// Network devices, addresses, routes, sockets' ports.
    pub const NET: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWNET);
    /// The tree of mounts.
    pub const MOUNT: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWNS);
    /// Process numbers; for [`unshare`], those of the children to come.
    pub const PID: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWPID);
    /// The host's name.
    pub const UTS: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWUTS);
    /// System V and POSIX message queues, shared memory.
    pub const IPC: NamespaceFlags = NamespaceFlags(libc::CLONE_NEWIPC);

    /// Those of both, also for constants.
    pub const fn with(self, other: NamespaceFlags) -> NamespaceFlags {
        NamespaceFlags(self.0 | other.0)
    }

    /// Whether all of `other` are in `self`.
    pub const fn contains(self, other: NamespaceFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for NamespaceFlags {
    type Output = NamespaceFlags;

    fn bitor(self, other: NamespaceFlags) -> NamespaceFlags {
        self.with(other)
    }
}

/// Moves the calling thread into new namespaces (with `USER`, the process must be
/// single-threaded: the kernel checks).
///
/// # Errors
/// `EPERM` where it is not allowed, `ENOSPC` at a limit, `EINVAL` in a process with threads.
pub fn unshare(flags: NamespaceFlags) -> io::Result<()> {
    // SAFETY: unshare(2) with namespace flags only takes no memory and no descriptors away.
    check(unsafe { libc::unshare(flags.0) }).map(drop)
}

/// Forks a child into new namespaces (with none, an ordinary fork): clone3(2) without sharing
/// memory, so the child is a copy of the caller with its own everything.
///
/// The process must have one thread only. A lock that another one holds, such as the allocator's,
/// would stay locked in the child, and what it guards half changed. So this is checked in
/// each call, in `/proc/self/task`; as only the caller could start a thread, it then holds
/// until the fork is done.
///
/// The child has copies of all descriptors. Those that it does not need it closes by dropping the
/// values that own them: closing them by number would be a lie to these values.
///
/// # Errors
/// `EDEADLK` when the process has other threads, `ENOENT` when that cannot be seen because /proc
/// does not show the caller; otherwise as [`unshare`], and `EAGAIN`.
pub fn fork_into(flags: NamespaceFlags) -> io::Result<NamespaceFork> {
    if crate::process::thread_count()? != 1 {
        return Err(io::Error::from_raw_os_error(libc::EDEADLK));
    }
    let mut pidfd: libc::c_int = -1;
    // SAFETY: clone_args consists of numbers, for which zero means "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    let kinds = u64::from(flags.0.cast_unsigned());
    arguments.flags = kinds | u64::from(libc::CLONE_PIDFD.cast_unsigned());
    arguments.pidfd = (&raw mut pidfd).expose_provenance() as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: without CLONE_VM the child has its own copy of all memory; as counted above, there is
    // no other thread whose locks or half-made changes it could inherit; `arguments` is as long
    // as said.
    let returned = unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>())
    };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    let Some(pid) = i32::try_from(returned).ok().and_then(Pid::from_raw) else {
        return Ok(NamespaceFork::Child);
    };
    // SAFETY: the kernel has stored a new close-on-exec descriptor for us alone.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(NamespaceFork::Parent { pid, pidfd })
}

/// Writes a user namespace's maps, each once in its life. A process without privilege outside
/// must deny setgroups(2) and may map only its own user and group.
///
/// # Errors
/// `EPERM` for maps that the writer may not make, `EINVAL` for overlapping ranges, `ENOENT` when
/// there is no such process.
pub fn write_id_maps(
    target: UserNamespaceTarget,
    maps: &IdMap,
    deny_setgroups: bool,
) -> io::Result<()> {
    if deny_setgroups {
        write_once(&target.path("setgroups"), "deny")?;
    }
    write_once(&target.path("uid_map"), &lines(&maps.users))?;
    write_once(&target.path("gid_map"), &lines(&maps.groups))
}

/// The maps of the calling process's user namespace.
///
/// # Errors
/// `ENOENT` where /proc is not mounted.
pub fn current_id_map() -> io::Result<IdMap> {
    let read =
        |file| parse_id_ranges(&fs::read_to_string(UserNamespaceTarget::Current.path(file))?);
    Ok(IdMap { users: read("uid_map")?, groups: read("gid_map")? })
}

/// Moves the calling thread into existing namespaces: those of a pidfd chosen by `flags`, or the
/// one of a namespace descriptor (`flags` then names its kind, or none for any).
///
/// # Errors
/// `EPERM` where it is not allowed, `EINVAL` for the wrong kind.
pub fn setns(descriptor: impl AsFd, flags: NamespaceFlags) -> io::Result<()> {
    let raw = descriptor.as_fd().as_raw_fd();
    // SAFETY: setns(2) takes no pointers, and the descriptor is borrowed for the call.
    check(unsafe { libc::setns(raw, flags.0) }).map(drop)
}

/// Opens the namespace of one kind in which a process is.
///
/// # Errors
/// `EINVAL` when `kind` is not exactly one; `ENOENT`, `EACCES` as open(2) of /proc says.
pub fn open(target: UserNamespaceTarget, kind: NamespaceFlags) -> io::Result<OwnedFd> {
    let name = NAMES.iter().find(|(flag, _)| *flag == kind).map(|(_, name)| *name);
    let name = name.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(File::open(target.path(name))?.into())
}

impl UserNamespaceTarget {
    fn path(self, file: &str) -> PathBuf {
        match self {
            UserNamespaceTarget::Current => PathBuf::from(format!("/proc/self/{file}")),
            UserNamespaceTarget::Process(pid) => {
                PathBuf::from(format!("/proc/{}/{file}", pid.as_raw_nonzero()))
            }
        }
    }
}

/// One write(2), as the kernel demands, into a file that exists.
fn write_once(path: &PathBuf, text: &str) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

fn lines(ranges: &[IdRange]) -> String {
    ranges.iter().map(|r| format!("{} {} {}\n", r.inside, r.outside, r.count)).collect()
}

fn parse_id_ranges(text: &str) -> io::Result<Vec<IdRange>> {
    text.lines().map(|line| parse_id_range(line).ok_or_else(|| malformed(line))).collect()
}

fn parse_id_range(line: &str) -> Option<IdRange> {
    let mut words = line.split_ascii_whitespace().map(|word| word.parse().ok());
    let (inside, outside, count) = (words.next()??, words.next()??, words.next()??);
    Some(IdRange { inside, outside, count })
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed id map line {line:?}"))
}

const NAMES: [(NamespaceFlags, &str); 6] = [
    (NamespaceFlags::USER, "ns/user"),
    (NamespaceFlags::NET, "ns/net"),
    (NamespaceFlags::MOUNT, "ns/mnt"),
    (NamespaceFlags::PID, "ns/pid"),
    (NamespaceFlags::UTS, "ns/uts"),
    (NamespaceFlags::IPC, "ns/ipc"),
];
