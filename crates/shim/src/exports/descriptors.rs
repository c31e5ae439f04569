//! Calls that copy, change or close descriptors. Source: close(2), close_range(2), dup(2), fcntl(2),
//! ioctl(2), fdopen(3), fclose(3).

use core::ffi::{c_char, c_int, c_void};

use super::export;
use crate::c;
use crate::calls::{control, of_any};
use crate::clock;
use crate::descriptors::{self, closing, closing_range, duplicated, forget, known, release};
use crate::limit::{self, LimitedTransfer};
use crate::next;
use crate::pacing::TransferDirection;
use crate::record::kind::Call;
use crate::record::region::socket_state::NONBLOCKING;
use crate::region::region;
use crate::senders;
use crate::sockets::RegionSocketEntry;
use crate::watch;

/// Closes by `next`, recorded if it is a socket.
#[inline(always)]
fn close_with(fd: c_int, next: impl FnOnce() -> c_int) -> c_int {
    let Some(word) = closing(fd) else { return next() };
    let result = control(word, Call::Close, 0, next, |socket, _| socket);
    release(word);
    result
}

/// `to` is another number for what `from` is, in place of what it was.
fn replaced(from: c_int, to: c_int, result: c_int) -> c_int {
    if result >= 0 && from != to {
        if let Some(word) = closing(to) {
            release(word);
        }
        copied(from, to);
        if to < 3 && limit::is_live() {
            crate::launch::hold_stream(to);
        }
    }
    result
}

/// `to` is a new number for what `from` is.
fn copied(from: c_int, to: c_int) -> c_int {
    if to >= 0 {
        duplicated(known(from), to);
    }
    to
}

/// Whether calls on a socket block has been changed.
fn set_nonblocking(fd: c_int, is_nonblocking: bool) {
    if let Some(socket) = of_any(fd).and_then(descriptors::DescriptorSocketWord::entry) {
        let (set, clear) = if is_nonblocking { (NONBLOCKING, 0) } else { (0, NONBLOCKING) };
        socket.change_state(set, clear);
    }
}

/// After fcntl(2).
#[inline(always)]
fn after_fcntl(fd: c_int, order: c_int, argument: usize, result: c_int) -> c_int {
    match order {
        _ if result < 0 => {}
        c::F_DUPFD | c::F_DUPFD_CLOEXEC => {
            copied(fd, result);
        }
        c::F_SETFL => set_nonblocking(fd, argument as c_int & c::O_NONBLOCK != 0),
        _ => {}
    }
    result
}

/// The C library reads and writes the socket of a stream itself.
#[cold]
fn note_stdio(socket: &RegionSocketEntry<'_>) {
    let recording = region().recording();
    socket.set_stdio();
    if recording & 1 != 0 {
        let (time, ring) = clock::now_and_processor();
        socket.define(ring, time, recording);
    }
}

export! {
    fn close(fd: c_int) -> c_int {
        // SAFETY: no pointers.
        close_with(fd, || unsafe { next::close(fd) })
    }

    fn __close(fd: c_int) -> c_int {
        // SAFETY: no pointers.
        close_with(fd, || unsafe { next::close(fd) })
    }

    fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
        // SAFETY: no pointers.
        let result = unsafe { next::close_range(first, last, flags) };
        if result == 0 && flags as u32 & c::CLOSE_RANGE_CLOEXEC == 0 {
            closing_range(first, last);
        }
        result
    }

    fn closefrom(first: c_int) {
        closing_range(first.max(0) as u32, u32::MAX);
        // SAFETY: no pointers.
        unsafe { next::closefrom(first) }
    }

    fn dup(fd: c_int) -> c_int {
        // SAFETY: no pointers.
        copied(fd, unsafe { next::dup(fd) })
    }

    fn dup2(fd: c_int, to: c_int) -> c_int {
        // SAFETY: no pointers.
        replaced(fd, to, unsafe { next::dup2(fd, to) })
    }

    fn __dup2(fd: c_int, to: c_int) -> c_int {
        // SAFETY: no pointers.
        replaced(fd, to, unsafe { next::dup2(fd, to) })
    }

    fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
        // SAFETY: no pointers.
        replaced(fd, to, unsafe { next::dup3(fd, to, flags) })
    }

    fn fcntl(fd: c_int, order: c_int, argument: usize) -> c_int {
        // SAFETY: the caller's arguments are passed on. One that it has not given is not read.
        after_fcntl(fd, order, argument, unsafe { next::fcntl(fd, order, argument) })
    }

    fn __fcntl(fd: c_int, order: c_int, argument: usize) -> c_int {
        // SAFETY: the same function.
        unsafe { fcntl(fd, order, argument) }
    }

    fn fcntl64(fd: c_int, order: c_int, argument: usize) -> c_int {
        // SAFETY: as for `fcntl`.
        after_fcntl(fd, order, argument, unsafe { next::fcntl64(fd, order, argument) })
    }

    fn ioctl(fd: c_int, order: usize, argument: usize) -> c_int {
        // SAFETY: the caller's arguments are passed on. One that it has not given is not read.
        let result = unsafe { next::ioctl(fd, order, argument) };
        if order as u32 as usize == c::FIONBIO && result == 0 {
            let flag = core::ptr::with_exposed_provenance::<c_int>(argument);
            // SAFETY: the kernel has just read the number there.
            set_nonblocking(fd, unsafe { flag.read_unaligned() } != 0);
        }
        result
    }

    fn epoll_ctl(set: c_int, order: c_int, fd: c_int, event: *mut c::EpollEvent) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::epoll_ctl(set, order, fd, event) };
        if result == 0 && limit::is_live() {
            // SAFETY: the kernel has just read it, unless it is null.
            let event = (!event.is_null()).then(|| unsafe { event.read_unaligned() });
            watch::watched(set, order, fd, event);
        }
        result
    }

    fn fdopen(fd: c_int, mode: *const c_char) -> *mut c_void {
        // SAFETY: the caller's arguments are passed on.
        let stream = unsafe { next::fdopen(fd, mode) };
        if !stream.is_null() && LimitedTransfer::of(fd, TransferDirection::Send, true).is_some() {
            crate::launch::hold_stream(fd);
        }
        if !stream.is_null() && let Some(socket) = of_any(fd).and_then(descriptors::DescriptorSocketWord::entry) {
            note_stdio(&socket);
        }
        stream
    }

    fn fclose(stream: *mut c_void) -> c_int {
        // The C library closes the descriptor itself.
        if (crate::region::is_live() || limit::is_live() || senders::is_live()) && !stream.is_null() {
            let errno = next::errno();
            // SAFETY: the caller's stream is open.
            let fd = unsafe { next::fileno(stream) };
            next::set_errno(errno);
            match closing(fd) {
                Some(word) => release(word),
                None if fd >= 0 && !known(fd).is_socket() => forget(fd),
                None => {}
            }
        }
        // SAFETY: the caller's argument is passed on.
        unsafe { next::fclose(stream) }
    }
}
