//! How the kernel schedules the calling thread. Source: sched_setattr(2), sched(7).

use std::io;

use crate::ffi::check;

/// Asks for time slices of `slice_ns` for the calling thread, 0.1 to 100 ms; its share of the processor
/// stays the same. A thread with short slices is served sooner after it wakes (EEVDF, since Linux 6.12;
/// earlier kernels accept and ignore the value).
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
        std::thread::spawn(|| set_slice(100_000)).join().unwrap().unwrap();
    }

    #[test]
    fn the_structure_is_as_long_as_the_kernels_first_version() {
        assert_eq!(std::mem::size_of::<Attributes>(), 48);
    }
}
