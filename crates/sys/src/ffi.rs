//! The few conversions between C's conventions and Rust's that every family needs.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Turns C's "negative means look at errno" into a result.
pub(crate) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The size of `T` as the socket calls want it.
#[expect(clippy::cast_possible_truncation, reason = "C structures are far below 4 GiB")]
pub(crate) const fn socklen<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

/// setsockopt(2) with a plain C value.
pub(crate) fn set_option<T: Copy>(
    socket: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is valid for reads of the given length, and the kernel only reads it.
    let returned = unsafe {
        libc::setsockopt(raw, level, name, std::ptr::from_ref(value).cast(), socklen::<T>())
    };
    check(returned).map(drop)
}

/// Nanoseconds of a time that is not before the clock's origin.
pub(crate) fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(NS_PER_SECOND).saturating_add(nanoseconds)
}

/// The reverse of [`nanoseconds`].
pub(crate) fn timespec(nanoseconds: u64) -> rustix::time::Timespec {
    let seconds = nanoseconds / NS_PER_SECOND;
    let rest = nanoseconds % NS_PER_SECOND;
    rustix::time::Timespec {
        tv_sec: i64::try_from(seconds).expect("u64 nanoseconds are below i64 seconds"),
        tv_nsec: i64::try_from(rest).expect("a remainder below 10^9 fits"),
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;
