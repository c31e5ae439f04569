//! Who sends: of a UDP socket that several programs of a node have, each declares what it is
//! about to send, in its ring of the region that `WINDTUNNEL_SENDS` names (`NUMBER:PATH`; the number is that
//! of the ring).
//!
//! An entry is there before the call, so that it is found when the datagram arrives; one for a call
//! that failed is taken back. Entries are asked for by port, and cost two or three microseconds;
//! without that, a call costs one look at a word.
//!
//! What is sent in other ways has no entry: parts of a datagram (`MSG_MORE`, `UDP_CORK`),
//! sendfile(2) and splice(2), and all that this library does not see.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::c::{self, IoVec, Messages, SocketMessageHeader};
use crate::published::PublishedRegion;
use crate::raw::RecordRegionView;
use crate::record::sends::{FAILED, SENDING, bit, entry};
use crate::{clock, memory, names, next, process, region};

static REGION: PublishedRegion = PublishedRegion::none();
/// The ring of this program.
static RING: AtomicU32 = AtomicU32::new(0);

/// Whether there is a region.
#[inline(always)]
pub fn is_live() -> bool {
    REGION.is_live()
}

/// The region, where entries are asked for.
#[inline(always)]
fn wanted() -> Option<&'static RecordRegionView> {
    if !is_live() {
        return None;
    }
    // SAFETY: it is live.
    let region = unsafe { REGION.get() };
    (region.ports() != 0).then_some(region)
}

/// Maps the region, if that is what is named.
///
/// # Safety
/// The text ends with a zero.
pub unsafe fn open(mut text: *const u8) {
    let mut ring: u32 = 0;
    loop {
        // SAFETY: up to the zero.
        let byte = unsafe { *text };
        if byte == 0 {
            return;
        }
        // SAFETY: the zero is behind this.
        text = unsafe { text.add(1) };
        if byte == b':' {
            break;
        }
        ring = ring.wrapping_mul(10).wrapping_add(u32::from(byte.wrapping_sub(b'0')));
    }
    // SAFETY: the rest of the text.
    let Some(region) = (unsafe { region::map_path(text) }) else { return };
    RING.store(ring, Ordering::Relaxed);
    // SAFETY: this runs once.
    unsafe { REGION.publish(region) };
}

/// A datagram that was declared.
#[derive(Debug, Clone, Copy)]
pub struct DatagramDeclaration {
    region: &'static RecordRegionView,
    port: u16,
    digest: u64,
}

impl DatagramDeclaration {
    fn new(region: &'static RecordRegionView, port: u16, digest: u64) -> DatagramDeclaration {
        let declaration = DatagramDeclaration { region, port, digest };
        declaration.push(SENDING);
        declaration
    }

    /// It was not sent.
    #[cold]
    fn take_back(&self) {
        self.push(FAILED);
    }

    fn push(&self, kind: u8) {
        let entry = entry(clock::now(), kind, self.port, self.digest);
        self.region.push(RING.load(Ordering::Relaxed), &entry);
    }
}

/// Makes a call that sends a run of bytes.
#[inline(always)]
pub fn bytes(
    fd: c_int,
    base: *const core::ffi::c_void,
    length: usize,
    call: impl FnOnce() -> isize,
) -> isize {
    match wanted() {
        Some(region) => declared(region, fd, &|| memory::digest_of(base, length), call),
        None => call(),
    }
}

/// The same with buffers.
#[inline(always)]
pub fn parts(fd: c_int, parts: *const IoVec, count: c_int, call: impl FnOnce() -> isize) -> isize {
    match wanted() {
        Some(region) => {
            let digest = || memory::digest_of_parts(parts, usize::try_from(count).ok()?);
            declared(region, fd, &digest, call)
        }
        None => call(),
    }
}

/// The same with a message.
#[inline(always)]
pub fn message(
    fd: c_int,
    message: *const SocketMessageHeader,
    call: impl FnOnce() -> isize,
) -> isize {
    match wanted() {
        Some(region) => declared(region, fd, &|| memory::digest_of_message(message), call),
        None => call(),
    }
}

/// The same with several messages, of which the call returns how many it has sent.
#[inline(always)]
pub fn messages(
    fd: c_int,
    messages: *const Messages,
    count: u32,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some(region) = wanted() else { return call() };
    let Some(port) = port_of(region, fd) else { return call() };
    let count = count.min(MESSAGES_MAX);
    let digest = |at: u32| memory::digest_of_one(messages, at as usize);
    let mut known = 0;
    while known < count
        && let Some(digest) = digest(known)
    {
        DatagramDeclaration::new(region, port, digest);
        known += 1;
    }
    let result = call();
    let errno = next::errno();
    for at in result.max(0) as u32..known {
        // The messages that were not sent are as they were.
        if let Some(digest) = digest(at) {
            DatagramDeclaration { region, port, digest }.take_back();
        }
    }
    next::set_errno(errno);
    result
}

#[cold]
#[inline(never)]
fn declared(
    region: &'static RecordRegionView,
    fd: c_int,
    digest: &dyn Fn() -> Option<u64>,
    call: impl FnOnce() -> isize,
) -> isize {
    let Some(port) = port_of(region, fd) else { return call() };
    let declaration = digest().map(|digest| DatagramDeclaration::new(region, port, digest));
    let result = call();
    if result < 0
        && let Some(declaration) = declaration
    {
        let errno = next::errno();
        declaration.take_back();
        next::set_errno(errno);
    }
    result
}

/// The port of a UDP socket, if it is one that entries are asked for of.
fn port_of(region: &RecordRegionView, fd: c_int) -> Option<u16> {
    let place = PORTS.get(usize::try_from(fd).ok()?)?;
    let mut known = place.load(Ordering::Relaxed);
    if known == UNKNOWN {
        known = ask(fd)?;
        place.store(known, Ordering::Relaxed);
    }
    let port = u16::try_from(known.checked_sub(PORT)?).ok()?;
    (region.ports() & bit(port) != 0).then_some(port)
}

/// Asks the kernel what a descriptor is; `None`: it does not say, or may say something else soon.
#[cold]
fn ask(fd: c_int) -> Option<u32> {
    const UDP: c_int = 17;
    if process::is_confined() {
        return None;
    }
    let is_udp = match c::option::<c_int>(fd, c::SO_DOMAIN) {
        Ok(family) if family == c_int::from(c::AF_INET) || family == c_int::from(c::AF_INET6) => {
            c::option::<c_int>(fd, c::SO_PROTOCOL).ok()? == UDP
        }
        Ok(_) | Err(c::ENOTSOCK) => false,
        Err(_) => return None,
    };
    if !is_udp {
        return Some(OTHER);
    }
    let port = names::own(fd).filter(|own| own.port != 0)?.port;
    Some(PORT + u32::from(port))
}

/// Nothing is known of a descriptor any more.
#[inline(always)]
pub fn forget(fd: c_int) {
    if is_live()
        && let Some(place) = PORTS.get(fd as u32 as usize)
    {
        place.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// The same of all from one to another.
pub fn forget_range(first: u32, last: u32) {
    if is_live() {
        let end = last.saturating_add(1).min(USUAL);
        (first..end).for_each(|fd| forget(fd as c_int));
    }
}

/// See the table of `descriptors`.
const DESCRIPTORS: usize = 1 << 20;
/// Descriptors that are forgotten one by one where a range is closed.
const USUAL: u32 = 1 << 16;
static PORTS: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(UNKNOWN) }; DESCRIPTORS];
const UNKNOWN: u32 = 0;
/// Not a UDP socket.
const OTHER: u32 = 1;
/// A UDP socket with the port that is added to this.
const PORT: u32 = 2;
/// `UIO_MAXIOV`: the kernel takes no more.
const MESSAGES_MAX: u32 = 1024;
