//! The life of sockets. Source: socket(2), connect(2), accept(2), shutdown(2), setsockopt(2).

use core::ffi::{c_int, c_void};

use super::export;
use crate::c;
use crate::calls::{connected, control, of_socket};
use crate::descriptors;
use crate::limit;
use crate::names;
use crate::next;
use crate::record::kind::Call;

/// After `connect`, as it returned.
fn after_connect(fd: c_int, name: *const c_void, length: u32, result: c_int) -> bool {
    let Some(socket) = descriptors::known(fd).entry() else { return false };
    let errno = if result < 0 { next::errno() } else { 0 };
    if matches!(errno, c::EFAULT | c::EBADF | c::EINVAL | c::EALREADY | c::EISCONN) {
        return false;
    }
    // SAFETY: the kernel has just read the address.
    let (family, to) = unsafe { (names::family(name, length), names::read(name, length)) };
    if to.is_some() || family == Some(c::AF_UNSPEC) {
        connected(socket, fd, to, result == 0 || errno == c::EINPROGRESS);
    }
    true
}

/// Takes a connection, and keeps what it is.
fn accept_with(fd: c_int, flags: c_int, next: impl FnOnce() -> c_int) -> c_int {
    let Some(listener) = of_socket(fd) else {
        let result = next();
        if result >= 0 {
            descriptors::forget(result);
        }
        return result;
    };
    control(listener, Call::Accept, 0, next, |socket, result| {
        if result < 0 {
            return socket;
        }
        let word = descriptors::accepted(result, listener, flags & c::SOCK_NONBLOCK != 0);
        if word.is_socket() { word.entry().unwrap_or(socket) } else { socket }
    })
}

export! {
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
        // SAFETY: no pointers.
        let result = unsafe { next::socket(family, kind, protocol) };
        limit::forget(result);
        if result >= 0 && crate::region::is_live() {
            descriptors::made(result, family, kind, protocol);
        }
        result
    }

    fn __socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
        // SAFETY: the same function.
        unsafe { socket(family, kind, protocol) }
    }

    fn socketpair(family: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::socketpair(family, kind, protocol, pair) };
        if result >= 0 && crate::region::is_live() {
            for at in 0..2 {
                // SAFETY: the kernel has just written both.
                descriptors::made(unsafe { *pair.add(at) }, family, kind, protocol);
            }
        }
        result
    }

    fn connect(fd: c_int, name: *const c_void, length: u32) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let next = || unsafe { next::connect(fd, name, length) };
        limit::forget_peer(fd);
        let Some(word) = of_socket(fd) else { return next() };
        control(word, Call::Connect, 0, next, |socket, result| {
            after_connect(fd, name, length, result);
            socket
        })
    }

    fn __connect(fd: c_int, name: *const c_void, length: u32) -> c_int {
        // SAFETY: the same function.
        unsafe { connect(fd, name, length) }
    }

    fn accept(fd: c_int, name: *mut c_void, length: *mut u32) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        accept_with(fd, 0, || unsafe { next::accept(fd, name, length) })
    }

    fn accept4(fd: c_int, name: *mut c_void, length: *mut u32, flags: c_int) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        accept_with(fd, flags, || unsafe { next::accept4(fd, name, length, flags) })
    }

    fn shutdown(fd: c_int, how: c_int) -> c_int {
        // SAFETY: no pointers.
        let next = || unsafe { next::shutdown(fd, how) };
        match of_socket(fd) {
            Some(word) => control(word, Call::Shutdown, how as usize, next, |socket, _| socket),
            None => next(),
        }
    }

    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: u32) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { next::setsockopt(fd, level, name, value, length) };
        if result == 0 && level == c::SOL_UDP && name == c::UDP_SEGMENT && length >= 4
            && let Some(socket) = of_socket(fd).and_then(descriptors::DescriptorSocketWord::entry)
        {
            // SAFETY: the kernel has just read a number.
            socket.set_segment(unsafe { value.cast::<c_int>().read_unaligned() } as u16);
        }
        result
    }
}
