//! Calls that move one run of bytes, or runs that an array names. Source: read(2), readv(2), recv(2),
//! send(2), sendfile(2), splice(2).

use core::ffi::{c_int, c_void};

use super::export;
use crate::c::IoVec;
use crate::calls::{
    SingleBufferArguments, Spec, SyscallArguments, datagrams, of_any, of_socket, transfer,
};
use crate::limit::LimitedTransfer;
use crate::names::{self, SocketEnd};
use crate::next;
use crate::paced::{self, IoVecSlice};
use crate::pacing::TransferDirection;
use crate::record::kind::Call;
use crate::senders;

/// The array of `readv` and `writev`.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectoredArguments(pub(super) *const IoVec, pub(super) usize);

impl SyscallArguments for VectoredArguments {
    fn asked(self) -> usize {
        // SAFETY: the kernel has just read the array.
        (0..self.1).map(|at| unsafe { (*self.0.add(at)).length }).fold(0, usize::saturating_add)
    }
}

/// The address of `recvfrom` and `sendto`.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressedCallArguments {
    count: usize,
    name: *const c_void,
    length: AddressLength,
}

/// The address's length.
#[derive(Debug, Clone, Copy)]
enum AddressLength {
    Is(u32),
    At(*const u32),
}

impl SyscallArguments for AddressedCallArguments {
    #[inline(always)]
    fn asked(self) -> usize {
        self.count
    }

    fn peer(self) -> Option<SocketEnd> {
        if self.name.is_null() {
            return None;
        }
        let length = match self.length {
            AddressLength::Is(length) => length,
            // SAFETY: the kernel has just written it.
            AddressLength::At(length) => unsafe { *length },
        };
        // SAFETY: the kernel has just read or written the address.
        unsafe { names::read(self.name, length) }
    }

    fn datagrams(self, bytes: usize, usual: u16) -> u64 {
        datagrams(bytes, usual)
    }
}

/// Makes the next call, recorded when the descriptor is a socket.
macro_rules! transfer {
    ($find:ident($fd:expr), $spec:expr, $arguments:expr, $next:expr) => {
        match $find($fd) {
            Some(word) => transfer(word, $fd, $spec, $arguments, || {
                // SAFETY: the caller's arguments are passed on.
                unsafe { $next }
            }),
            // SAFETY: as above.
            None => unsafe { $next },
        }
    };
}

/// The next call that receives, under the limit: a function of where from and how much.
macro_rules! received {
    ($fd:expr, $is_socket:expr, $flags:expr, $count:expr, $next:expr) => {
        paced::receives(
            LimitedTransfer::of($fd, TransferDirection::Receive, $is_socket),
            $flags,
            $count,
            || None,
            $next,
        )
    };
}

/// The same for one that sends.
macro_rules! sent {
    ($fd:expr, $is_socket:expr, $flags:expr, $count:expr, $next:expr) => {
        paced::sends(
            LimitedTransfer::of($fd, TransferDirection::Send, $is_socket),
            $flags,
            $count,
            || None,
            $next,
        )
    };
}

/// Calls `next` with the buffers from a byte on.
///
/// # Safety
/// The buffers are there.
unsafe fn with_parts(
    parts: *const IoVec,
    count: c_int,
    from: usize,
    bytes: usize,
    all: usize,
    mut next: impl FnMut(*const IoVec, c_int) -> isize,
) -> isize {
    if from == 0 && bytes == all {
        return next(parts, count);
    }
    // SAFETY: the caller's.
    let cut = unsafe { IoVecSlice::new(parts, count as usize, from, bytes) };
    next(cut.parts(), cut.count as c_int)
}

/// The bytes of a call's buffers, where there is a limit.
///
/// # Safety
/// The buffers are there, unless the descriptor is not limited.
unsafe fn bytes_of(
    fd: c_int,
    direction: TransferDirection,
    parts: *const IoVec,
    count: c_int,
) -> usize {
    if parts.is_null() || count < 0 || LimitedTransfer::of(fd, direction, false).is_none() {
        return 0;
    }
    VectoredArguments(parts, count as usize).asked()
}

export! {
    fn read(fd: c_int, to: *mut c_void, count: usize) -> isize {
        transfer!(of_any(fd), Spec::receives(Call::Read, 0), SingleBufferArguments(count), received!(fd, false, 0, count, |from, part| next::read(fd, to.byte_add(from), part)))
    }

    fn __read(fd: c_int, to: *mut c_void, count: usize) -> isize {
        transfer!(of_any(fd), Spec::receives(Call::Read, 0), SingleBufferArguments(count), received!(fd, false, 0, count, |from, part| next::read(fd, to.byte_add(from), part)))
    }

    fn __read_chk(fd: c_int, to: *mut c_void, count: usize, room: usize) -> isize {
        let spec = Spec::receives(Call::Read, 0);
        transfer!(of_any(fd), spec, SingleBufferArguments(count), received!(fd, false, 0, count, |from, part| next::read_chk(fd, to.byte_add(from), part, room.saturating_sub(from))))
    }

    fn readv(fd: c_int, parts: *const IoVec, count: c_int) -> isize {
        let (spec, arguments) = (Spec::receives(Call::Readv, 0), VectoredArguments(parts, count as usize));
        transfer!(of_any(fd), spec, arguments, {
            let all = bytes_of(fd, TransferDirection::Receive, parts, count);
            received!(fd, false, 0, all, |from, part| with_parts(parts, count, from, part, all, |parts, count| next::readv(fd, parts, count)))
        })
    }

    fn preadv2(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        if at != -1 {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::preadv2(fd, parts, count, at, flags) };
        }
        let (spec, arguments) = (Spec::receives(Call::Readv, 0), VectoredArguments(parts, count as usize));
        transfer!(of_any(fd), spec, arguments, {
            let all = bytes_of(fd, TransferDirection::Receive, parts, count);
            received!(fd, false, 0, all, |from, part| with_parts(parts, count, from, part, all, |parts, count| next::preadv2(fd, parts, count, at, flags)))
        })
    }

    fn preadv64v2(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        // SAFETY: the same function on machines of 64 bits.
        unsafe { preadv2(fd, parts, count, at, flags) }
    }

    fn recv(fd: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize {
        let spec = Spec::receives(Call::Recv, flags);
        transfer!(of_socket(fd), spec, SingleBufferArguments(count), received!(fd, true, flags, count, |from, part| next::recv(fd, to.byte_add(from), part, flags)))
    }

    fn __recv(fd: c_int, to: *mut c_void, count: usize, flags: c_int) -> isize {
        // SAFETY: the same function.
        unsafe { recv(fd, to, count, flags) }
    }

    fn __recv_chk(fd: c_int, to: *mut c_void, count: usize, room: usize, flags: c_int) -> isize {
        let spec = Spec::receives(Call::Recv, flags);
        transfer!(of_socket(fd), spec, SingleBufferArguments(count), received!(fd, true, flags, count, |from, part| next::recv_chk(fd, to.byte_add(from), part, room.saturating_sub(from), flags)))
    }

    fn recvfrom(fd: c_int, to: *mut c_void, count: usize, flags: c_int, name: *mut c_void, length: *mut u32) -> isize {
        let spec = Spec::receives(Call::Recvfrom, flags);
        let arguments = AddressedCallArguments { count, name, length: AddressLength::At(length) };
        transfer!(of_socket(fd), spec, arguments, paced::receives(LimitedTransfer::of(fd, TransferDirection::Receive, true), flags, count, || arguments.peer(), |from, part| next::recvfrom(fd, to.byte_add(from), part, flags, name, length)))
    }

    fn __recvfrom_chk(fd: c_int, to: *mut c_void, count: usize, room: usize, flags: c_int, name: *mut c_void, length: *mut u32) -> isize {
        let spec = Spec::receives(Call::Recvfrom, flags);
        let arguments = AddressedCallArguments { count, name, length: AddressLength::At(length) };
        transfer!(of_socket(fd), spec, arguments, paced::receives(LimitedTransfer::of(fd, TransferDirection::Receive, true), flags, count, || arguments.peer(), |from, part| next::recvfrom_chk(fd, to.byte_add(from), part, room.saturating_sub(from), flags, name, length)))
    }

    fn write(fd: c_int, from: *const c_void, count: usize) -> isize {
        senders::bytes(fd, from, count, || transfer!(of_any(fd), Spec::sends(Call::Write, 0), SingleBufferArguments(count), sent!(fd, false, 0, count, |at, part| next::write(fd, from.byte_add(at), part))))
    }

    fn __write(fd: c_int, from: *const c_void, count: usize) -> isize {
        senders::bytes(fd, from, count, || transfer!(of_any(fd), Spec::sends(Call::Write, 0), SingleBufferArguments(count), sent!(fd, false, 0, count, |at, part| next::write(fd, from.byte_add(at), part))))
    }

    fn writev(fd: c_int, parts: *const IoVec, count: c_int) -> isize {
        let (spec, arguments) = (Spec::sends(Call::Writev, 0), VectoredArguments(parts, count as usize));
        senders::parts(fd, parts, count, || transfer!(of_any(fd), spec, arguments, {
            let all = bytes_of(fd, TransferDirection::Send, parts, count);
            sent!(fd, false, 0, all, |from, part| with_parts(parts, count, from, part, all, |parts, count| next::writev(fd, parts, count)))
        }))
    }

    fn pwritev2(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        if at != -1 {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::pwritev2(fd, parts, count, at, flags) };
        }
        let (spec, arguments) = (Spec::sends(Call::Writev, 0), VectoredArguments(parts, count as usize));
        senders::parts(fd, parts, count, || transfer!(of_any(fd), spec, arguments, {
            let all = bytes_of(fd, TransferDirection::Send, parts, count);
            sent!(fd, false, 0, all, |from, part| with_parts(parts, count, from, part, all, |parts, count| next::pwritev2(fd, parts, count, at, flags)))
        }))
    }

    fn pwritev64v2(fd: c_int, parts: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        // SAFETY: the same function on machines of 64 bits.
        unsafe { pwritev2(fd, parts, count, at, flags) }
    }

    fn send(fd: c_int, from: *const c_void, count: usize, flags: c_int) -> isize {
        let spec = Spec::sends(Call::Send, flags);
        senders::bytes(fd, from, count, || transfer!(of_socket(fd), spec, SingleBufferArguments(count), sent!(fd, true, flags, count, |at, part| next::send(fd, from.byte_add(at), part, flags))))
    }

    fn __send(fd: c_int, from: *const c_void, count: usize, flags: c_int) -> isize {
        // SAFETY: the same function.
        unsafe { send(fd, from, count, flags) }
    }

    fn sendto(fd: c_int, from: *const c_void, count: usize, flags: c_int, name: *const c_void, length: u32) -> isize {
        let spec = Spec::sends(Call::Sendto, flags);
        let arguments = AddressedCallArguments { count, name, length: AddressLength::Is(length) };
        senders::bytes(fd, from, count, || transfer!(of_socket(fd), spec, arguments, paced::sends(LimitedTransfer::of(fd, TransferDirection::Send, true), flags, count, || arguments.peer(), |at, part| next::sendto(fd, from.byte_add(at), part, flags, name, length))))
    }

    fn sendfile(out: c_int, file: c_int, at: *mut i64, count: usize) -> isize {
        let spec = Spec::sends(Call::Sendfile, 0);
        transfer!(of_any(out), spec, SingleBufferArguments(count), sent!(out, false, 0, count, |_, part| next::sendfile(out, file, at, part)))
    }

    fn sendfile64(out: c_int, file: c_int, at: *mut i64, count: usize) -> isize {
        // SAFETY: the same function on machines of 64 bits.
        unsafe { sendfile(out, file, at, count) }
    }

    fn splice(from: c_int, from_at: *mut i64, to: c_int, to_at: *mut i64, count: usize, flags: u32) -> isize {
        // One end is a pipe; so only one is a socket.
        let arguments = SingleBufferArguments(count);
        if of_any(to).is_some() || LimitedTransfer::of(to, TransferDirection::Send, false).is_some() {
            let spec = Spec::sends(Call::SpliceTo, 0);
            return transfer!(of_any(to), spec, arguments, sent!(to, false, 0, count, |_, part| next::splice(from, from_at, to, to_at, part, flags)));
        }
        let spec = Spec::receives(Call::SpliceFrom, 0);
        transfer!(of_any(from), spec, arguments, received!(from, false, 0, count, |_, part| next::splice(from, from_at, to, to_at, part, flags)))
    }
}
