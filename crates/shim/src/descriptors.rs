//! What each descriptor is: a cache of the kernel's answers, in memory of the process.
//!
//! A descriptor becomes a socket only by calls that are seen here (socket, accept, dup, descriptors
//! received, the start of the program), and these forget what was known of its number. So a number
//! that was closed unseen (by fclose, say) is not mistaken.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::c;
use crate::limit;
use crate::names;
use crate::process;
use crate::record::kind::CallBlindSpot;
use crate::record::region::socket_state::{CONNECTED, NONBLOCKING, OFFSET_UNKNOWN, STREAM};
use crate::region::region;
use crate::sockets::{InitialSocketEntry, RegionSocketEntry, SocketTuple, key};

/// What is known of a descriptor: one word, so that it is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorSocketWord(u64);

impl DescriptorSocketWord {
    const UNKNOWN: DescriptorSocketWord = DescriptorSocketWord(0);
    /// Not a socket.
    const PLAIN: DescriptorSocketWord = DescriptorSocketWord(1);
    /// A socket of another family than IP, or one of which no records are kept.
    const OTHER: DescriptorSocketWord = DescriptorSocketWord(2);

    /// A socket with an entry.
    fn socket(socket: &RegionSocketEntry<'_>) -> DescriptorSocketWord {
        let stream = if socket.state() & STREAM != 0 { IS_STREAM } else { 0 };
        DescriptorSocketWord(
            IS_SOCKET | stream | u64::from(socket.number()) << 32 | socket.key() >> 32,
        )
    }

    /// Whether it has an entry.
    #[inline(always)]
    pub fn is_socket(self) -> bool {
        self.0 & IS_SOCKET != 0
    }

    /// Whether it is one that counts bytes.
    #[inline(always)]
    pub fn is_stream(self) -> bool {
        self.0 & IS_STREAM != 0
    }

    /// Whether it is a socket without an entry.
    pub fn is_other(self) -> bool {
        self == DescriptorSocketWord::OTHER
    }

    /// The entry; `None`: it is that of another socket by now.
    #[inline(always)]
    pub fn entry(self) -> Option<RegionSocketEntry<'static>> {
        let socket = region().entry((self.0 >> 32) as u32 & ENTRY_MASK);
        self.is_of(&socket).then_some(socket)
    }

    /// Whether the entry still is this socket's.
    #[inline(always)]
    pub fn is_of(self, socket: &RegionSocketEntry<'_>) -> bool {
        (socket.key() >> 32) as u32 == self.0 as u32
    }
}

const IS_SOCKET: u64 = 1 << 63;
const IS_STREAM: u64 = 1 << 62;
const ENTRY_MASK: u32 = (1 << 24) - 1;

/// As many descriptors as a process can have, unless root raised the system's limit (`nr_open`).
/// Only pages that are used take memory.
const DESCRIPTORS: usize = 1 << 20;
static WORDS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
/// One more than the highest descriptor that was a socket.
static END: AtomicU32 = AtomicU32::new(0);

/// What is known of a descriptor.
#[inline(always)]
pub fn known(fd: c_int) -> DescriptorSocketWord {
    match WORDS.get(fd as u32 as usize) {
        Some(word) => DescriptorSocketWord(word.load(Ordering::Relaxed)),
        None => DescriptorSocketWord::PLAIN,
    }
}

/// What it is; the kernel is asked where that is not known.
#[inline(always)]
pub fn word(fd: c_int) -> DescriptorSocketWord {
    let word = known(fd);
    if word == DescriptorSocketWord::UNKNOWN { ask(fd) } else { word }
}

/// The same for a call that only a socket can have: a descriptor that is known not to be one has
/// become one unseen.
#[inline(always)]
pub fn word_of_socket(fd: c_int) -> DescriptorSocketWord {
    let word = known(fd);
    if word == DescriptorSocketWord::UNKNOWN || word == DescriptorSocketWord::PLAIN {
        ask(fd)
    } else {
        word
    }
}

/// Asks the kernel what a descriptor is, and keeps the answer.
#[cold]
#[inline(never)]
pub fn ask(fd: c_int) -> DescriptorSocketWord {
    if !crate::region::is_live() || fd < 0 || fd as usize >= DESCRIPTORS {
        return DescriptorSocketWord::PLAIN;
    }
    if process::is_confined() {
        process::note(CallBlindSpot::Sandbox);
        return DescriptorSocketWord::PLAIN;
    }
    if process::owner().is_none() {
        return DescriptorSocketWord::PLAIN;
    }
    let word = match c::option::<c_int>(fd, c::SO_DOMAIN) {
        Ok(family) if is_ip(family) => entry_of(fd),
        Ok(_) => DescriptorSocketWord::OTHER,
        Err(c::ENOTSOCK) => DescriptorSocketWord::PLAIN,
        Err(_) => return DescriptorSocketWord::PLAIN,
    };
    keep(fd, word);
    word
}

/// The entry of a socket that was there before we knew of it.
fn entry_of(fd: c_int) -> DescriptorSocketWord {
    let kind = c::option::<c_int>(fd, c::SO_TYPE).unwrap_or(0);
    let protocol = c::option::<c_int>(fd, c::SO_PROTOCOL).unwrap_or(0);
    let mut state = OFFSET_UNKNOWN;
    if kind == c::SOCK_STREAM {
        state |= STREAM;
    }
    if c::status_flags(fd).is_some_and(|flags| flags & c::O_NONBLOCK != 0) {
        state |= NONBLOCKING;
    }
    let (tuple, is_connected) = names::tuple(fd, protocol as u8);
    if is_connected {
        state |= CONNECTED;
    }
    enter(fd, state, tuple)
}

/// A socket that the program has just made.
pub fn made(fd: c_int, family: c_int, kind: c_int, protocol: c_int) {
    if !is_ip(family) {
        return keep(fd, DescriptorSocketWord::OTHER);
    }
    if process::is_confined() {
        process::note(CallBlindSpot::Sandbox);
        return keep(fd, DescriptorSocketWord::OTHER);
    }
    if process::owner().is_none() {
        return;
    }
    let is_stream = kind & c::SOCK_TYPE_MASK == c::SOCK_STREAM;
    let mut state = if is_stream { STREAM } else { 0 };
    if kind & c::SOCK_NONBLOCK != 0 {
        state |= NONBLOCKING;
    }
    let protocol = match protocol {
        0 if is_stream => 6,
        0 => 17,
        other => other as u8,
    };
    let word = enter(fd, state, SocketTuple { protocol, ..SocketTuple::default() });
    keep(fd, word);
}

/// A connection that came in by `listener`.
pub fn accepted(
    fd: c_int,
    listener: DescriptorSocketWord,
    is_nonblocking: bool,
) -> DescriptorSocketWord {
    if process::is_confined() || process::owner().is_none() {
        forget(fd);
        return ask(fd);
    }
    let Some(listener) = listener.entry() else {
        forget(fd);
        return ask(fd);
    };
    let (tuple, _) = names::tuple(fd, listener.tuple().protocol);
    let blocking = if is_nonblocking { NONBLOCKING } else { 0 };
    let word = enter(fd, listener.state() & STREAM | CONNECTED | blocking, tuple);
    keep(fd, word);
    word
}

/// The entry of a socket, by its cookie.
fn enter(fd: c_int, state: u32, tuple: SocketTuple) -> DescriptorSocketWord {
    let Ok(cookie) = c::option::<u64>(fd, c::SO_COOKIE) else { return DescriptorSocketWord::OTHER };
    let pid = process::owner().unwrap_or(0);
    let origin = || InitialSocketEntry { tuple, state, pid, descriptor: fd as u32 };
    match region().hold(key(cookie, None), cookie, origin) {
        Some((socket, _)) => DescriptorSocketWord::socket(&socket),
        None => {
            process::note(CallBlindSpot::TableFull);
            DescriptorSocketWord::OTHER
        }
    }
}

/// Another number for what `from` is.
pub fn duplicated(from: DescriptorSocketWord, to: c_int) {
    if from.is_socket() && process::owner().is_some() {
        // An entry that is going is asked for anew.
        let is_held = from.entry().is_some_and(|socket| socket.refer());
        keep(to, if is_held { from } else { DescriptorSocketWord::UNKNOWN });
    } else {
        forget(to);
    }
}

/// A descriptor is to be closed: what it was, to be released when that is done. `None`: nothing that
/// has an entry.
#[inline(always)]
pub fn closing(fd: c_int) -> Option<DescriptorSocketWord> {
    limit::forget(fd);
    let word = known(fd);
    if word == DescriptorSocketWord::UNKNOWN {
        return None;
    }
    if !word.is_socket() {
        forget(fd);
        return None;
    }
    process::owner()?;
    forget(fd);
    Some(word)
}

/// Nothing is known of a descriptor any more.
pub fn forget(fd: c_int) {
    limit::forget(fd);
    if let Some(word) = WORDS.get(fd as u32 as usize) {
        word.store(0, Ordering::Relaxed);
    }
}

/// It has been closed.
pub fn release(word: DescriptorSocketWord) {
    if let Some(socket) = word.entry() {
        socket.release();
    }
}

/// Descriptors of a range that are to be closed.
pub fn closing_range(first: u32, last: u32) {
    limit::forget_range(first, last);
    if !crate::region::is_live() || process::owner().is_none() {
        return;
    }
    for fd in first..last.saturating_add(1).min(END.load(Ordering::Relaxed)) {
        if let Some(word) = closing(fd as c_int) {
            release(word);
        }
    }
    // Those that are no sockets are asked for again only where they become one.
}

/// Before a fork: the child's descriptors are counted, because the parent may close its own first.
/// After one that failed they are not there.
pub fn count_all(are_more: bool) {
    for fd in 0..END.load(Ordering::Relaxed) {
        let Some(socket) = known(fd as c_int).entry_of_socket() else { continue };
        if !are_more {
            socket.release();
        } else if !socket.refer() {
            forget(fd as c_int);
        }
    }
}

/// Asks what the low descriptors are, as long as that can be asked.
pub fn classify_all() {
    for fd in 0..ASKED_BEFOREHAND {
        word(fd);
    }
}

impl DescriptorSocketWord {
    fn entry_of_socket(self) -> Option<RegionSocketEntry<'static>> {
        if self.is_socket() { self.entry() } else { None }
    }
}

fn keep(fd: c_int, word: DescriptorSocketWord) {
    limit::forget(fd);
    if let Some(at) = WORDS.get(fd as u32 as usize) {
        at.store(word.0, Ordering::Relaxed);
        if word.is_socket() {
            END.fetch_max(fd as u32 + 1, Ordering::Relaxed);
        }
    }
}

fn is_ip(family: c_int) -> bool {
    family == c_int::from(c::AF_INET) || family == c_int::from(c::AF_INET6)
}

/// Descriptors that are asked for before a program confines itself: more than a confined process
/// has open.
const ASKED_BEFOREHAND: c_int = 1024;
