//! What the machine allows and how loaded it is. Source: getrlimit(2), sched_setaffinity(2),
//! proc_pid_schedstat(5), proc_stat(5), statvfs(3).

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit};
use rustix::thread::{CpuSet, Pid};

/// A limit of the process; none is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessResourceLimit {
    /// What holds now.
    pub soft: Option<u64>,
    /// What it can be raised to without privilege.
    pub hard: Option<u64>,
}

/// What a thread has had of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpuStatistics {
    /// Nanoseconds of running.
    pub run_ns: u64,
    /// Nanoseconds of wanting to run and having to wait.
    pub wait_ns: u64,
    /// How often it was put onto a processor.
    pub slices: u64,
}

/// The limit of open descriptors.
pub fn open_files() -> ProcessResourceLimit {
    ProcessResourceLimitKind::OpenFiles.limit()
}

/// Raises the limit of open descriptors as far as possible and returns what holds now.
///
/// # Errors
/// What setrlimit(2) says.
pub fn raise_open_files() -> io::Result<ProcessResourceLimit> {
    let ProcessResourceLimit { hard, .. } = open_files();
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard })?;
    Ok(open_files())
}

/// What a process can be limited in, each for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessResourceLimitKind {
    /// `RLIMIT_NOFILE`: open descriptors.
    OpenFiles,
    /// `RLIMIT_DATA`: memory that it maps for itself.
    Data,
    /// `RLIMIT_AS`: all that it maps.
    AddressSpace,
    /// `RLIMIT_FSIZE`: the length of a file that it writes; beyond, SIGXFSZ.
    FileSize,
    /// `RLIMIT_STACK`: the stack of its first thread.
    Stack,
}

impl ProcessResourceLimitKind {
    /// The limit of this process.
    #[must_use]
    pub fn limit(self) -> ProcessResourceLimit {
        let limit = rustix::process::getrlimit(match self {
            ProcessResourceLimitKind::OpenFiles => Resource::Nofile,
            ProcessResourceLimitKind::Data => Resource::Data,
            ProcessResourceLimitKind::AddressSpace => Resource::As,
            ProcessResourceLimitKind::FileSize => Resource::Fsize,
            ProcessResourceLimitKind::Stack => Resource::Stack,
        });
        ProcessResourceLimit { soft: limit.current, hard: limit.maximum }
    }
}

/// A limit of another process.
///
/// # Errors
/// `EPERM` for one of another user, `ESRCH` when it has ended.
pub fn limit_of(process: Pid, what: ProcessResourceLimitKind) -> io::Result<ProcessResourceLimit> {
    prlimit(process, what, None)
}

/// Gives another process a limit. Without `CAP_SYS_RESOURCE` the hard one can only be lowered, for
/// good.
///
/// # Errors
/// As [`limit_of`], also for a hard limit that would be raised.
pub fn set_limit_of(
    process: Pid,
    what: ProcessResourceLimitKind,
    limit: ProcessResourceLimit,
) -> io::Result<()> {
    prlimit(process, what, Some(limit)).map(drop)
}

/// The limit that was there before.
fn prlimit(
    process: Pid,
    what: ProcessResourceLimitKind,
    new: Option<ProcessResourceLimit>,
) -> io::Result<ProcessResourceLimit> {
    let which = match what {
        ProcessResourceLimitKind::OpenFiles => libc::RLIMIT_NOFILE,
        ProcessResourceLimitKind::Data => libc::RLIMIT_DATA,
        ProcessResourceLimitKind::AddressSpace => libc::RLIMIT_AS,
        ProcessResourceLimitKind::FileSize => libc::RLIMIT_FSIZE,
        ProcessResourceLimitKind::Stack => libc::RLIMIT_STACK,
    };
    let raw = |part: Option<u64>| part.unwrap_or(libc::RLIM_INFINITY);
    let new = new.map(|it| libc::rlimit { rlim_cur: raw(it.soft), rlim_max: raw(it.hard) });
    let at = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let process = process.as_raw_nonzero().get();
    // SAFETY: the pointers are to live structures, or the first is null, and the kernel writes to the
    // second only.
    crate::ffi::check(unsafe { libc::prlimit(process, which, at, &raw mut old) })?;
    let part = |raw| (raw != libc::RLIM_INFINITY).then_some(raw);
    Ok(ProcessResourceLimit { soft: part(old.rlim_cur), hard: part(old.rlim_max) })
}

/// The numbers of the processors on which the calling thread may run.
///
/// # Errors
/// What sched_getaffinity(2) says: `EINVAL` on a machine of more than 1024 processors.
pub fn cpus() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Restricts the calling thread to the given processors.
///
/// # Errors
/// `EINVAL` when none of them exists for the process.
pub fn set_cpus(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        set.set(*cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Ticks of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTickCounters {
    /// Running something.
    pub busy: u64,
    /// With nothing to run.
    pub idle: u64,
    /// Kept from us by the machine's host.
    pub stolen: u64,
}

/// The calling thread's number, for [`schedule_of`].
pub fn current_thread() -> Pid {
    rustix::thread::gettid()
}

/// What a thread of the calling process has had of processors so far.
///
/// # Errors
/// `ENOENT` for a thread that is gone, or on a kernel without these statistics.
pub fn schedule_of(thread: Pid) -> io::Result<ThreadCpuStatistics> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = fs::read_to_string(&path)?;
    parse_schedule(&text).ok_or_else(|| malformed(&path, &text))
}

/// What all processors together have done since the machine started, in ticks of
/// [`ticks_per_second`].
///
/// # Errors
/// What reading /proc/stat says.
pub fn processors() -> io::Result<CpuTickCounters> {
    let text = fs::read_to_string("/proc/stat")?;
    parse_processors(&text).ok_or_else(|| malformed("/proc/stat", &text))
}

/// How many ticks the kernel counts in a second, usually 100.
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf(3) takes no pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100)
}

/// The size of a page of memory, in bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf(3) takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// How many bytes an unprivileged user can still write to the file system that holds `path`.
///
/// # Errors
/// `ENOENT`, `EACCES` for the path.
pub fn free_bytes(path: impl AsRef<Path>) -> io::Result<u64> {
    let system = rustix::fs::statvfs(path.as_ref())?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

fn parse_schedule(text: &str) -> Option<ThreadCpuStatistics> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let (run_ns, wait_ns) = (numbers.next()??, numbers.next()??);
    Some(ThreadCpuStatistics { run_ns, wait_ns, slices: numbers.next()?? })
}

/// The first line: `cpu`, user, nice, system, idle, iowait, irq, softirq, steal.
fn parse_processors(text: &str) -> Option<CpuTickCounters> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    if words.next() != Some("cpu") {
        return None;
    }
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok()?;
    }
    let [user, nice, system, idle, waiting, interrupts, soft, stolen] = ticks;
    let busy = user + nice + system + interrupts + soft;
    Some(CpuTickCounters { busy, idle: idle + waiting, stolen })
}

fn malformed(path: &str, text: &str) -> io::Error {
    let line = text.lines().next().unwrap_or_default();
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed line in {path}: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_line_has_three_numbers() {
        let expected = ThreadCpuStatistics { run_ns: 4_034_712, wait_ns: 86_231, slices: 17 };
        assert_eq!(parse_schedule("4034712 86231 17\n"), Some(expected));
        assert_eq!(parse_schedule("4034712 86231\n"), None);
        assert_eq!(parse_schedule("a b c\n"), None);
    }

    #[test]
    fn a_limit_of_a_process_is_lowered_and_raised_again() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let before = limit_of(pid, ProcessResourceLimitKind::OpenFiles).unwrap();
        assert_eq!(before, open_files());
        let lower = ProcessResourceLimit { soft: Some(9), ..before };
        set_limit_of(pid, ProcessResourceLimitKind::OpenFiles, lower).unwrap();
        assert_eq!(limit_of(pid, ProcessResourceLimitKind::OpenFiles).unwrap(), lower);
        set_limit_of(pid, ProcessResourceLimitKind::OpenFiles, before).unwrap();
        assert_eq!(limit_of(pid, ProcessResourceLimitKind::OpenFiles).unwrap(), before);
        assert!(limit_of(pid, ProcessResourceLimitKind::Data).is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(limit_of(pid, ProcessResourceLimitKind::Data).is_err());
    }

    #[test]
    fn processors_are_busy_idle_or_stolen() {
        let text = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(
            parse_processors(text),
            Some(CpuTickCounters { busy: 10 + 20 + 30 + 60 + 70, idle: 90, stolen: 80 })
        );
        assert_eq!(parse_processors("cpu 1 2 3\n"), None);
        assert_eq!(parse_processors(""), None);
    }
}
