//! How the kernel schedules the calling thread. Source: sched_setattr(2), sched(7).

use std::io;

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
    let mut attributes = Attributes { size: ATTRIBUTES_BYTES, ..Attributes::default() };
    // SAFETY: the pointer is to a live value of the size that is passed.
    let returned = unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, ATTRIBUTES_BYTES, 0)
    };
    check(libc::c_int::try_from(returned).unwrap_or(-1))?;
    attributes.runtime = slice_ns;
    // SAFETY: the pointer is to a live value that holds its own size.
    let returned = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(libc::c_int::try_from(returned).unwrap_or(-1))?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_thread_may_ask_for_short_slices() {
        std::thread::spawn(|| set_slice(SHORTEST_SLICE_NS)).join().unwrap().unwrap();
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
