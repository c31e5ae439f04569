//! How the kernel schedules the calling thread. Source: sched_setattr(2), sched(7).

use std::io;
use std::ptr;

use rustix::thread::Pid;

use crate::ffi::check;

/// The shortest slice that the kernel gives.
pub const SHORTEST_SLICE_NS: u64 = 100_000;

/// Asks for time slices of `slice_ns` for the calling thread, 0.1 to 100 ms, or 0 for those that
/// the kernel gives to all threads; its share of the processor stays the same. What it starts
/// inherits them. A thread with short slices is served sooner after it wakes (EEVDF, since Linux
/// 6.12; earlier kernels accept and ignore the value).
///
/// # Errors
/// `EPERM` where the policy or nice value of the thread may not be set again, `E2BIG`, `EINVAL`.
pub fn set_slice(slice_ns: u64) -> io::Result<()> {
    let mut attributes = attributes(None)?;
    attributes.runtime = slice_ns;
    set_attributes(None, &attributes)
}

fn attributes(thread: Option<Pid>) -> io::Result<Attributes> {
    let mut attributes = Attributes { size: ATTRIBUTES_BYTES, ..Attributes::default() };
    let id = Pid::as_raw(thread);
    // SAFETY: the pointer is to a live value of the size that is passed.
    let returned = unsafe {
        libc::syscall(libc::SYS_sched_getattr, id, &raw mut attributes, ATTRIBUTES_BYTES, 0)
    };
    check(libc::c_int::try_from(returned).unwrap_or(-1))?;
    Ok(attributes)
}

fn set_attributes(thread: Option<Pid>, attributes: &Attributes) -> io::Result<()> {
    let id = Pid::as_raw(thread);
    // SAFETY: the pointer is to a live value that holds its own size.
    let returned =
        unsafe { libc::syscall(libc::SYS_sched_setattr, id, ptr::from_ref(attributes), 0) };
    check(libc::c_int::try_from(returned).unwrap_or(-1))?;
    Ok(())
}

/// How a thread competes for processors (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// By nice values.
    Normal,
    /// Before all threads that are not real-time, and those of a lower priority (`SCHED_RR`, 1 to
    /// 99).
    RealTime(u32),
}

/// Sets the policy of a thread, of the calling one for `None`. What it starts inherits a normal
/// policy, and is normal where this one is real-time. The nice value stays.
///
/// # Errors
/// `EPERM` for [`SchedulingPolicy::RealTime`] without `CAP_SYS_NICE` in the initial user namespace or room in
/// `RLIMIT_RTPRIO`; `EINVAL` for a priority that there is not; `ESRCH`.
pub fn set_policy(thread: Option<Pid>, policy: SchedulingPolicy) -> io::Result<()> {
    let mut attributes = attributes(thread)?;
    (attributes.policy, attributes.priority, attributes.flags) = match policy {
        SchedulingPolicy::Normal => (libc::SCHED_OTHER.cast_unsigned(), 0, 0),
        SchedulingPolicy::RealTime(priority) => {
            (libc::SCHED_RR.cast_unsigned(), priority, RESET_ON_FORK)
        }
    };
    set_attributes(thread, &attributes)
}

/// The nice value of the calling thread, -20 (most of the processor) to 19 (setpriority(2)).
///
/// # Errors
/// What getpriority(2) says.
pub fn nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(None)?)
}

/// Sets the nice value of the calling thread; what it makes from now on inherits it.
///
/// # Errors
/// `EACCES` for less than now without `CAP_SYS_NICE` in the initial user namespace or room in
/// `RLIMIT_NICE`.
pub fn set_nice(nice: i32) -> io::Result<()> {
    Ok(rustix::process::setpriority_process(None, nice)?)
}

/// `struct sched_attr` in its first version.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTRIBUTES_BYTES: u32 = 48;
/// `SCHED_FLAG_RESET_ON_FORK` of include/uapi/linux/sched.h.
const RESET_ON_FORK: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_thread_may_ask_for_short_slices() {
        std::thread::spawn(|| set_slice(SHORTEST_SLICE_NS)).join().unwrap().unwrap();
    }

    #[test]
    fn a_real_time_thread_becomes_normal_again_and_starts_normal_ones() {
        let both = || {
            // Where that is refused it stays as it is.
            let refused = set_policy(None, SchedulingPolicy::RealTime(2)).err();
            let during = attributes(None)?;
            let started = std::thread::spawn(|| attributes(None)).join().unwrap()?;
            assert_eq!(started.policy, libc::SCHED_OTHER.cast_unsigned());
            if refused.is_none() {
                assert_eq!(during.priority, 2);
            }
            set_policy(None, SchedulingPolicy::Normal)?;
            let after = attributes(None)?;
            let expected = if refused.is_some() { libc::SCHED_OTHER } else { libc::SCHED_RR };
            assert_eq!(during.policy, expected.cast_unsigned(), "{refused:?}");
            assert_eq!((after.policy, after.priority), (0, 0));
            io::Result::Ok(())
        };
        std::thread::spawn(both).join().unwrap().unwrap();
    }

    #[test]
    fn anyone_may_be_nicer() {
        let nicer = std::thread::spawn(|| set_nice(nice()? + 1).and_then(|()| nice()));
        assert_eq!(nicer.join().unwrap().unwrap(), nice().unwrap() + 1);
    }

    #[test]
    fn the_structure_is_as_long_as_the_kernels_first_version() {
        assert_eq!(size_of::<Attributes>(), 48);
    }
}
