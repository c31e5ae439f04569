//! A call on a socket: what is done before and after the C library's function, and the record.

use core::ffi::c_int;

use crate::c::{MSG_DONTWAIT, MSG_ERRQUEUE, MSG_PEEK};
use crate::clock;
use crate::descriptors::{self, DescriptorSocketWord};
use crate::names::{self, SocketEnd};
use crate::next::errno;
use crate::process;
use crate::record::kind::{Call, Kind, NO_FLOW};
use crate::record::region::socket_state::{CONNECTED, NONBLOCKING, OFFSET_UNKNOWN};
use crate::record::{EventRecord, flag, halves};
use crate::region::region;
use crate::sockets::{RegionSocketEntry, SocketCallDirection, SocketTuple};

/// What is known of a call before it is made.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    pub call: Call,
    pub direction: SocketCallDirection,
    /// Of `send` and the like; 0 for others.
    pub flags: c_int,
}

/// What is read of a call's arguments once it has returned.
pub trait SyscallArguments: Copy {
    /// Whether there can be no address among them.
    const IS_PLAIN: bool = false;

    /// The bytes that were asked for.
    fn asked(self) -> usize;

    /// The other side, of a socket that is not connected.
    fn peer(self) -> Option<SocketEnd> {
        None
    }

    /// Into how many datagrams so many bytes were cut; `usual`: the socket's size of them, or 0.
    fn datagrams(self, bytes: usize, usual: u16) -> u64 {
        datagrams(bytes, usual)
    }
}

/// A call that has one run of bytes.
#[derive(Debug, Clone, Copy)]
pub struct SingleBufferArguments(pub usize);

impl SyscallArguments for SingleBufferArguments {
    const IS_PLAIN: bool = true;

    #[inline(always)]
    fn asked(self) -> usize {
        self.0
    }
}

/// Datagrams of a size that so many bytes are.
pub fn datagrams(bytes: usize, size: u16) -> u64 {
    match usize::from(size) {
        0 => 1,
        size => bytes.div_ceil(size).max(1) as u64,
    }
}

/// Makes a call that moves bytes, and records it.
#[inline(always)]
pub fn transfer<A: SyscallArguments>(
    word: DescriptorSocketWord,
    fd: c_int,
    spec: Spec,
    arguments: A,
    next: impl FnOnce() -> isize,
) -> isize {
    match word.entry() {
        Some(socket) if word.is_stream() || A::IS_PLAIN => {
            counted(word, socket, fd, spec, arguments, next)
        }
        Some(socket) => datagram(socket, fd, spec, arguments, next),
        None => next(),
    }
}

/// A call whose flow is the socket's: its calls and what they move are counted in one word.
#[inline(always)]
fn counted<A: SyscallArguments>(
    word: DescriptorSocketWord,
    socket: RegionSocketEntry<'static>,
    fd: c_int,
    spec: Spec,
    arguments: A,
    next: impl FnOnce() -> isize,
) -> isize {
    let recording = region().recording();
    let moved_by = |result: isize| match result {
        _ if !spec.moves() || result < 0 => 0,
        _ if word.is_stream() => result as u64,
        _ => arguments.datagrams(result as usize, segment(&socket, spec.direction)),
    };
    if recording & 1 == 0 {
        let result = next();
        let moved = moved_by(result);
        if moved != 0 && word.is_of(&socket) {
            socket.advance(spec.direction, moved);
        }
        return result;
    }
    let begin = clock::now();
    let (offset_before, shared_before) = socket.begin(spec.direction);
    let result = next();
    let moved = moved_by(result);
    // Where the socket was closed meanwhile its entry may be another's.
    if !word.is_of(&socket) {
        record_orphan(&spec, begin, result);
        return result;
    }
    let (offset, shared_after) = socket.end(spec.direction, moved);
    if socket.state() & CONNECTED == 0 {
        look_again(word, &socket, fd);
    }
    // Another call may have come and gone meanwhile.
    let is_shared = shared_before | shared_after | (offset != offset_before);
    let flags = if is_shared { flag::SHARED } else { 0 };
    let outcome = SyscallOutcome { begin, offset, flags, result };
    record(&socket, recording, &spec, || arguments.asked(), &outcome);
    result
}

#[inline(always)]
fn datagram<A: SyscallArguments>(
    socket: RegionSocketEntry<'static>,
    fd: c_int,
    spec: Spec,
    arguments: A,
    next: impl FnOnce() -> isize,
) -> isize {
    let recording = region().recording();
    let begin = if recording & 1 == 0 { 0 } else { clock::now() };
    let (_, shared_before) = socket.begin(spec.direction);
    let result = next();
    let (_, shared_after) = socket.end(spec.direction, 0);
    let target =
        if result >= 0 || are_readable() { datagram_flow(socket, fd, arguments) } else { socket };
    let moved = match result >= 0 && spec.moves() {
        true => arguments.datagrams(result as usize, segment(&socket, spec.direction)),
        false => 0,
    };
    let offset = target.advance(spec.direction, moved);
    if recording & 1 != 0 {
        let flags = if shared_before | shared_after { flag::SHARED } else { 0 };
        let outcome = SyscallOutcome { begin, offset, flags, result };
        record(&target, recording, &spec, || arguments.asked(), &outcome);
    }
    result
}

/// The size into which the kernel cuts what is sent on a socket.
pub fn segment(socket: &RegionSocketEntry<'_>, direction: SocketCallDirection) -> u16 {
    if direction == SocketCallDirection::Sent { socket.segment() } else { 0 }
}

/// The entry of the flow that a datagram is of: the socket's, or that of a peer.
pub fn datagram_flow<A: SyscallArguments>(
    socket: RegionSocketEntry<'static>,
    fd: c_int,
    arguments: A,
) -> RegionSocketEntry<'static> {
    if socket.tuple().from_port == 0 {
        locate(&socket, fd);
    }
    let Some(SocketEnd { address, port }) = arguments.peer() else { return socket };
    let tuple = socket.tuple();
    if socket.state() & CONNECTED != 0 && (tuple.to, tuple.to_port) == (address, port) {
        return socket;
    }
    // A table that is full has been counted; the socket's own flow is the next best.
    socket.peer(&address, port).unwrap_or(socket)
}

/// Learns the socket's own end, which it has since it was bound.
#[cold]
fn locate(socket: &RegionSocketEntry<'_>, fd: c_int) {
    if process::is_confined() {
        return;
    }
    if let Some(SocketEnd { address: from, port: from_port }) =
        names::own(fd).filter(|own| own.port != 0)
    {
        socket.set_own(&from, from_port);
    }
}

/// What has become of a socket without a peer: a stream may have been connected by other means than
/// `connect` (TCP fast open), and others have been bound.
#[cold]
fn look_again(word: DescriptorSocketWord, socket: &RegionSocketEntry<'_>, fd: c_int) {
    if !word.is_stream() {
        if socket.tuple().from_port == 0 {
            locate(socket, fd);
        }
        return;
    }
    if process::is_confined() {
        return;
    }
    let (tuple, is_connected) = names::tuple(fd, socket.tuple().protocol);
    if is_connected {
        socket.set_ends(&tuple);
        socket.change_state(CONNECTED, 0);
    }
}

/// What came of a call.
#[derive(Debug, Clone, Copy)]
pub struct SyscallOutcome {
    pub begin: u64,
    pub offset: u64,
    pub flags: u8,
    pub result: isize,
}

/// Writes the record of a call that has returned just now.
#[inline(always)]
pub fn record(
    socket: &RegionSocketEntry<'_>,
    recording: u32,
    spec: &Spec,
    asked: impl FnOnce() -> usize,
    outcome: &SyscallOutcome,
) {
    let (end, ring) = clock::now_and_processor();
    if !process::is_named(recording) {
        process::name(recording, ring, end);
    }
    if !socket.is_defined(recording) {
        socket.define(ring, end, recording);
    }
    let state = socket.state();
    let mut flags = outcome.flags;
    if state & NONBLOCKING != 0 || spec.flags & MSG_DONTWAIT != 0 {
        flags |= flag::NONBLOCKING;
    }
    if state & OFFSET_UNKNOWN != 0 {
        flags |= flag::OFFSET_UNKNOWN;
    }
    if spec.direction == SocketCallDirection::Received {
        flags |= flag::REVERSE;
    }
    let (result, asked) = match outcome.result < 0 {
        false => (outcome.result as i32, asked()),
        true if are_readable() => (-errno(), asked()),
        true => (-errno(), 0),
    };
    if !spec.moves() {
        flags |= flag::PEEK;
    }
    let duration = end.saturating_sub(outcome.begin);
    let mut call = EventRecord {
        time: outcome.begin,
        kind: Kind::Call as u8,
        flags,
        extra: spec.call as u16,
        flow: socket.flow(),
        args: [
            outcome.offset as u32,
            u32::try_from(asked).unwrap_or(u32::MAX),
            result as u32,
            duration as u32,
        ],
    };
    if duration > u64::from(u32::MAX) {
        return record_long(ring, &mut call, end);
    }
    region().push(ring, &call);
}

/// A call on a socket that was closed before it returned.
#[cold]
fn record_orphan(spec: &Spec, begin: u64, result: isize) {
    let (end, ring) = clock::now_and_processor();
    let reverse = if spec.direction == SocketCallDirection::Received { flag::REVERSE } else { 0 };
    let duration = u32::try_from(end.saturating_sub(begin)).unwrap_or(u32::MAX);
    let result = if result < 0 { -errno() } else { result as i32 };
    let call = EventRecord {
        time: begin,
        kind: Kind::Call as u8,
        flags: reverse | flag::OFFSET_UNKNOWN,
        extra: spec.call as u16,
        flow: NO_FLOW,
        args: [0, 0, result as u32, duration],
    };
    region().push(ring, &call);
}

/// A call that took more than 4.29 s: its end is a record of its own.
#[cold]
fn record_long(ring: u32, call: &mut EventRecord, end: u64) {
    call.flags |= flag::LONG;
    call.args[3] = u32::MAX;
    if region().push(ring, call) {
        let [low, high] = halves(call.time);
        let kind = Kind::CallEnd as u8;
        let end = EventRecord { time: end, kind, args: [low, high, 0, 0], ..*call };
        region().push(ring, &end);
    }
}

/// Whether the kernel has read the arguments of a call that failed, so that they can be read again:
/// not where it found them wrong, or the descriptor.
#[inline]
pub fn are_readable() -> bool {
    use crate::c::{EBADF, EFAULT, EINVAL, ENOTSOCK};
    !matches!(errno(), EFAULT | EBADF | ENOTSOCK | EINVAL)
}

impl Spec {
    /// A call that sends.
    #[inline(always)]
    pub const fn sends(call: Call, flags: c_int) -> Spec {
        Spec { call, direction: SocketCallDirection::Sent, flags }
    }

    /// A call that receives.
    #[inline(always)]
    pub const fn receives(call: Call, flags: c_int) -> Spec {
        Spec { call, direction: SocketCallDirection::Received, flags }
    }

    /// Whether bytes are moved, and not only looked at. The queue of errors is not the stream.
    #[inline(always)]
    pub fn moves(&self) -> bool {
        self.direction == SocketCallDirection::Sent || self.flags & (MSG_PEEK | MSG_ERRQUEUE) == 0
    }
}

/// A call that moves nothing, with the entry that it belongs to after it.
pub fn control(
    word: DescriptorSocketWord,
    call: Call,
    asked: usize,
    next: impl FnOnce() -> c_int,
    then: impl FnOnce(RegionSocketEntry<'static>, c_int) -> RegionSocketEntry<'static>,
) -> c_int {
    let Some(socket) = word.entry() else { return next() };
    let recording = region().recording();
    let begin = if recording & 1 == 0 { 0 } else { clock::now() };
    let result = next();
    let socket = then(socket, result);
    if recording & 1 != 0 {
        let outcome = SyscallOutcome { begin, offset: 0, flags: 0, result: result as isize };
        record(&socket, recording, &Spec::sends(call, 0), || asked, &outcome);
    }
    result
}

/// After `connect`: the flow has these ends now.
pub fn connected(
    socket: RegionSocketEntry<'static>,
    fd: c_int,
    to: Option<SocketEnd>,
    is_done: bool,
) {
    let Some(SocketEnd { address: to, port: to_port }) = to else {
        socket.change_state(0, CONNECTED);
        return;
    };
    let SocketEnd { address: from, port: from_port } = names::own(fd).unwrap_or_default();
    let before = socket.tuple();
    let tuple = SocketTuple { protocol: before.protocol, from, from_port, to, to_port };
    if tuple != before {
        socket.set_tuple(&tuple);
        socket.change_state(0, OFFSET_UNKNOWN);
    }
    if is_done {
        socket.change_state(CONNECTED, 0);
    }
}

/// The word of a descriptor for calls that any descriptor can have.
#[inline(always)]
pub fn of_any(fd: c_int) -> Option<DescriptorSocketWord> {
    Some(descriptors::word(fd)).filter(|word| word.is_socket())
}

/// The same for calls that only sockets can have.
#[inline(always)]
pub fn of_socket(fd: c_int) -> Option<DescriptorSocketWord> {
    Some(descriptors::word_of_socket(fd)).filter(|word| word.is_socket())
}
