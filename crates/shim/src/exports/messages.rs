//! Calls that move messages. Source: sendmsg(2), recvmsg(2), sendmmsg(2), recvmmsg(2), cmsg(3),
//! `UDP_SEGMENT` and `UDP_GRO` in udp(7).

use core::ffi::{c_int, c_void};

use super::bytes::VectoredArguments;
use super::export;
use crate::c::{self, ControlMessageHeader, Messages, SocketMessageHeader};
use crate::calls::{
    self, Spec, SyscallArguments, SyscallOutcome, datagrams, of_socket, segment, transfer,
};
use crate::clock;
use crate::descriptors::{self, DescriptorSocketWord};
use crate::limit::LimitedTransfer;
use crate::names::{self, SocketEnd};
use crate::next;
use crate::paced::{self, IoVecSlice, ReceiveAdmission};
use crate::pacing::TransferDirection;
use crate::record::flag;
use crate::record::kind::Call;
use crate::region::region;
use crate::senders;

/// A message that the kernel has just read or written.
#[derive(Debug, Clone, Copy)]
struct MessageArguments(*const SocketMessageHeader);

impl SyscallArguments for MessageArguments {
    fn asked(self) -> usize {
        let message = self.read();
        VectoredArguments(message.parts, message.parts_count).asked()
    }

    fn peer(self) -> Option<SocketEnd> {
        let message = self.read();
        // SAFETY: the kernel has just read or written the address.
        unsafe { names::read(message.name, message.name_length) }
    }

    fn datagrams(self, bytes: usize, usual: u16) -> u64 {
        let mut size = usual;
        controls(&self.read(), |control, data, length| {
            let is_size = control.kind == c::UDP_SEGMENT || control.kind == c::UDP_GRO;
            if control.level == c::SOL_UDP && is_size && length >= 2 {
                // SAFETY: two bytes are there.
                size = unsafe { data.cast::<u16>().read_unaligned() };
            }
        });
        datagrams(bytes, size)
    }
}

impl MessageArguments {
    fn read(self) -> SocketMessageHeader {
        // SAFETY: the kernel has just read it.
        unsafe { self.0.read_unaligned() }
    }
}

/// Calls `visit` for each control message, with its data and their length.
fn controls(
    message: &SocketMessageHeader,
    mut visit: impl FnMut(ControlMessageHeader, *const c_void, usize),
) {
    const HEAD: usize = size_of::<ControlMessageHeader>();
    let mut at = 0_usize;
    if message.control.is_null() {
        return;
    }
    while at.saturating_add(HEAD) <= message.control_length {
        // SAFETY: within the length, which the kernel has read or written.
        let here = unsafe { message.control.cast::<u8>().add(at) };
        // SAFETY: as above.
        let control = unsafe { here.cast::<ControlMessageHeader>().read_unaligned() };
        if control.length < HEAD || control.length > message.control_length - at {
            return;
        }
        // SAFETY: within the length.
        let data = unsafe { here.add(HEAD) };
        visit(control, data.cast(), control.length - HEAD);
        at = at.saturating_add(control.length.next_multiple_of(size_of::<usize>()));
    }
}

/// Descriptors that a message carries.
fn carried(message: *const SocketMessageHeader, mut visit: impl FnMut(c_int)) {
    controls(&MessageArguments(message).read(), |control, data, length| {
        if control.level != c::SOL_SOCKET || control.kind != c::SCM_RIGHTS {
            return;
        }
        for at in 0..length / size_of::<c_int>() {
            // SAFETY: within the data.
            visit(unsafe { data.cast::<c_int>().add(at).read_unaligned() });
        }
    });
}

/// Descriptors leave in a message: the entries of sockets stay until the receiver has them, at the
/// price of one that stays for good when it never closes them here.
fn sent_away(fd: c_int, message: *const SocketMessageHeader) {
    if descriptors::word(fd).is_other() {
        carried(message, |fd| {
            let word = descriptors::known(fd);
            if word.is_socket() {
                let _ = word.entry().is_some_and(|socket| socket.refer());
            }
        });
    }
}

/// Descriptors have come in a message.
fn arrived(fd: c_int, message: *const SocketMessageHeader) {
    if descriptors::word(fd).is_other() {
        carried(message, descriptors::forget);
    }
}

/// The next `sendmsg`, under the limit.
///
/// # Safety
/// As the function itself.
unsafe fn sent(fd: c_int, message: *const SocketMessageHeader, flags: c_int) -> isize {
    let limit =
        LimitedTransfer::of(fd, TransferDirection::Send, true).filter(|_| !message.is_null());
    let whole = MessageArguments(message);
    let all = if limit.is_some() { whole.asked() } else { 0 };
    let peer = || whole.peer();
    paced::sends(limit, flags, all, peer, |from, part| {
        if from == 0 && part == all {
            // SAFETY: the caller's.
            return unsafe { next::sendmsg(fd, message, flags) };
        }
        let read = whole.read();
        // SAFETY: the kernel is to read the same buffers.
        let cut = unsafe { IoVecSlice::new(read.parts, read.parts_count, from, part) };
        let piece = cut.message(&read, from);
        // SAFETY: the message and its buffers live.
        unsafe { next::sendmsg(fd, &raw const piece, flags) }
    })
}

/// The next `recvmsg`, under the limit.
///
/// # Safety
/// As the function itself.
unsafe fn received(fd: c_int, message: *mut SocketMessageHeader, flags: c_int) -> isize {
    let limit =
        LimitedTransfer::of(fd, TransferDirection::Receive, true).filter(|_| !message.is_null());
    let whole = MessageArguments(message);
    let all = if limit.is_some() { whole.asked() } else { 0 };
    paced::receives(
        limit,
        flags,
        all,
        || whole.peer(),
        |from, part| {
            if from == 0 && part == all {
                // SAFETY: the caller's.
                return unsafe { next::recvmsg(fd, message, flags) };
            }
            let read = whole.read();
            // SAFETY: the kernel is to write the same buffers.
            let cut = unsafe { IoVecSlice::new(read.parts, read.parts_count, from, part) };
            let mut piece = cut.message(&read, from);
            // SAFETY: the message and its buffers live.
            let result = unsafe { next::recvmsg(fd, &raw mut piece, flags) };
            if from == 0 && result >= 0 {
                let all = SocketMessageHeader {
                    parts: read.parts,
                    parts_count: read.parts_count,
                    ..piece
                };
                // SAFETY: the caller's message.
                unsafe { message.write_unaligned(all) };
            }
            result
        },
    )
}

/// The next `sendmmsg`, under the limit: as many messages at once as may go.
///
/// # Safety
/// As the function itself.
unsafe fn sent_many(fd: c_int, messages: *mut Messages, count: u32, flags: c_int) -> c_int {
    let limit =
        LimitedTransfer::of(fd, TransferDirection::Send, true).filter(|_| !messages.is_null());
    let Some(limit) = limit else {
        // SAFETY: the caller's.
        return unsafe { next::sendmmsg(fd, messages, count, flags) };
    };
    let (mut sent, began) = (0, clock::now());
    while sent < count {
        // SAFETY: the caller's.
        let here = unsafe { messages.add(sent as usize) };
        // SAFETY: as above.
        let (some, bytes) = unsafe { gathered(&limit, here, count - sent) };
        // SAFETY: as above.
        let peer = unsafe { MessageArguments(&raw const (*here).message) }.peer();
        let claim = match paced::claimed(&limit, flags, Some(began), bytes, peer) {
            Ok(claim) => claim,
            Err(_) if sent > 0 => break,
            Err(errno) => return paced::fail(errno) as c_int,
        };
        // SAFETY: the caller's.
        let result = unsafe { next::sendmmsg(fd, here, some, flags) };
        // SAFETY: the kernel has just written the lengths of so many.
        let moved = |at: usize| unsafe { (*here.add(at)).length as usize };
        claim.settle(&limit, bytes, (0..result.max(0) as usize).map(moved).sum::<usize>() as isize);
        if result < 0 {
            return if sent > 0 { sent as c_int } else { result };
        }
        sent += result as u32;
        if (result as u32) < some {
            break;
        }
    }
    sent as c_int
}

/// How many of the messages go at once: one, or as many to its peer as are not more than a piece.
///
/// # Safety
/// So many messages are there.
unsafe fn gathered(limit: &LimitedTransfer, messages: *const Messages, count: u32) -> (u32, usize) {
    // SAFETY: the caller's.
    let whole =
        |at: u32| unsafe { MessageArguments(&raw const (*messages.add(at as usize)).message) };
    let is_one_budget = limit.region.per() != crate::pacing::PacingBudgetScope::Peer;
    let (mut some, mut bytes) = (1, whole(0).asked());
    while some < count && is_one_budget {
        let more = bytes.saturating_add(whole(some).asked());
        if !paced::fits(limit.rate(), more) {
            break;
        }
        (some, bytes) = (some + 1, more);
    }
    (some, bytes)
}

/// The next `recvmmsg`, under the limit.
///
/// # Safety
/// As the function itself.
unsafe fn received_many(
    fd: c_int,
    messages: *mut Messages,
    count: u32,
    flags: c_int,
    timeout: *mut c_void,
) -> c_int {
    let moves = flags & (c::MSG_PEEK | c::MSG_ERRQUEUE) == 0;
    let limit = LimitedTransfer::of(fd, TransferDirection::Receive, true)
        .filter(|it| moves && it.rate() != 0);
    let Some(limit) = limit else {
        // SAFETY: the caller's.
        return unsafe { next::recvmmsg(fd, messages, count, flags, timeout) };
    };
    let mut claimed = match paced::admitted(&limit, flags, 1) {
        ReceiveAdmission::Refused => return paced::fail(c::EAGAIN) as c_int,
        ReceiveAdmission::Now(claimed) => Some(claimed),
        ReceiveAdmission::Later => None,
    };
    // SAFETY: the caller's.
    let result = unsafe { next::recvmmsg(fd, messages, count, flags, timeout) };
    for at in 0..result.max(0) as usize {
        // SAFETY: the kernel has just written so many.
        let one = unsafe { messages.add(at) };
        // SAFETY: as above.
        let (message, bytes) =
            unsafe { (MessageArguments(&raw const (*one).message), (*one).length) };
        let peer = if limit.word.is_stream() { None } else { message.peer() };
        match claimed.as_mut().map(core::mem::take) {
            Some(claimed) => limit.correct(peer, claimed, u64::from(bytes)),
            None => limit.settle(peer, u64::from(bytes)),
        }
    }
    if result <= 0
        && let Some(claimed) = claimed
    {
        limit.correct(None, claimed, 0);
    }
    result
}

/// Records a call that moved several messages: each has a record, with the times of the call.
fn many(
    word: DescriptorSocketWord,
    fd: c_int,
    spec: Spec,
    messages: *const Messages,
    next: impl FnOnce() -> c_int,
) -> c_int {
    let Some(socket) = word.entry() else { return next() };
    let recording = region().recording();
    let begin = if recording & 1 == 0 { 0 } else { clock::now() };
    let (_, shared_before) = socket.begin(spec.direction);
    let count = next();
    let (_, shared_after) = socket.end(spec.direction, 0);
    let mut flags = if shared_before | shared_after { flag::SHARED } else { 0 };
    if count < 0 && recording & 1 != 0 {
        let (offset, result) = (socket.advance(spec.direction, 0), count as isize);
        let outcome = SyscallOutcome { begin, offset, flags, result };
        calls::record(&socket, recording, &spec, || 0, &outcome);
    }
    for at in 0..count.max(0) as usize {
        // SAFETY: the kernel has just read and written so many.
        let one = unsafe { messages.add(at) };
        // SAFETY: as above.
        let (message, bytes) =
            unsafe { (MessageArguments(&raw const (*one).message), (*one).length) };
        let (target, moved) = if word.is_stream() {
            (socket, u64::from(bytes))
        } else {
            let usual = segment(&socket, spec.direction);
            let moved = message.datagrams(bytes as usize, usual);
            (calls::datagram_flow(socket, fd, message), moved)
        };
        let is_moved = spec.moves();
        let offset = target.advance(spec.direction, if is_moved { moved } else { 0 });
        if recording & 1 != 0 {
            let outcome = SyscallOutcome { begin, offset, flags, result: bytes as isize };
            calls::record(&target, recording, &spec, || message.asked(), &outcome);
        }
        flags &= flag::SHARED;
    }
    count
}

export! {
    fn sendmsg(fd: c_int, message: *const SocketMessageHeader, flags: c_int) -> isize {
        let spec = Spec::sends(Call::Sendmsg, flags);
        // SAFETY: the caller's arguments are passed on.
        let next = || senders::message(fd, message, || unsafe { sent(fd, message, flags) });
        if let Some(word) = of_socket(fd) {
            return transfer(word, fd, spec, MessageArguments(message), next);
        }
        let result = next();
        if result >= 0 {
            sent_away(fd, message);
        }
        result
    }

    fn recvmsg(fd: c_int, message: *mut SocketMessageHeader, flags: c_int) -> isize {
        let spec = Spec::receives(Call::Recvmsg, flags);
        if let Some(word) = of_socket(fd) {
            // SAFETY: the caller's arguments are passed on.
            return transfer(word, fd, spec, MessageArguments(message), || unsafe { received(fd, message, flags) });
        }
        // SAFETY: as above.
        let result = unsafe { received(fd, message, flags) };
        if result >= 0 {
            arrived(fd, message);
        }
        result
    }

    fn sendmmsg(fd: c_int, messages: *mut Messages, count: u32, flags: c_int) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let next = || unsafe { sent_many(fd, messages, count, flags) };
        let next = || senders::messages(fd, messages, count, next);
        match of_socket(fd) {
            Some(word) => many(word, fd, Spec::sends(Call::Sendmmsg, flags), messages, next),
            None => next(),
        }
    }

    fn __sendmmsg(fd: c_int, messages: *mut Messages, count: u32, flags: c_int) -> c_int {
        // SAFETY: the same function.
        unsafe { sendmmsg(fd, messages, count, flags) }
    }

    fn recvmmsg(fd: c_int, messages: *mut Messages, count: u32, flags: c_int, timeout: *mut c_void) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        let next = || unsafe { received_many(fd, messages, count, flags, timeout) };
        match of_socket(fd) {
            Some(word) => many(word, fd, Spec::receives(Call::Recvmmsg, flags), messages, next),
            None => next(),
        }
    }
}
