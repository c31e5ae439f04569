//! Descriptors in bulk. Source: close_range(2).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

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

/// In a forked child that goes on without what its parent had: closes all but these, and has its
/// standard streams lead nowhere. Values that own one of the others must not be dropped any more: the
/// child ends by [`exit_now`](crate::process::exit_now).
///
/// # Errors
/// Where `/dev/null` cannot be opened, or there is no close_range(2): then more stay open.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let mut numbers: Vec<u32> = kept.iter().map(|it| it.as_raw_fd().cast_unsigned()).collect();
    numbers.sort_unstable();
    let mut from = 3;
    for number in numbers.into_iter().filter(|number| *number > 2).chain([u32::MAX]) {
        if from < number {
            let last = if number == u32::MAX { number } else { number - 1 };
            // SAFETY: the call touches no memory; that no value uses these numbers any more is what
            // the caller promises, and a number that it does use after all fails with `EBADF`.
            let returned = unsafe { libc::syscall(libc::SYS_close_range, from, last, 0) };
            if returned < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        from = number.saturating_add(1);
    }
    // It is closed.
    std::mem::forget(null);
    Ok(())
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
