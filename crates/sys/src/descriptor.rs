//! Descriptors in bulk. Source: close_range(2).

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// Closes all of them, with one call for each row of successive numbers.
///
/// A forked child that drops a thousand descriptors of its parent one by one makes a thousand
/// calls; their numbers are mostly successive.
pub fn close_all(descriptors: impl IntoIterator<Item = OwnedFd>) {
    let mut numbers: Vec<RawFd> = descriptors.into_iter().map(IntoRawFd::into_raw_fd).collect();
    numbers.sort_unstable();
    for row in numbers.chunk_by(|one, next| one + 1 == *next) {
        close_row(row);
    }
}

fn close_row(row: &[RawFd]) {
    let [first, .., last] = row else { return row.iter().for_each(|number| close(*number)) };
    let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
    // SAFETY: the call touches no memory, and `close_all` owns every number of the row.
    let returned = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    // Before Linux 5.9 there is no such call.
    if returned < 0 {
        row.iter().for_each(|number| close(*number));
    }
}

fn close(number: RawFd) {
    // SAFETY: `close_all` owns the number, and uses it for nothing else.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
}
