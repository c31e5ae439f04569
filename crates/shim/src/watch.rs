//! Descriptors that a program watches by epoll(7), and which it would find ready although the limit holds
//! them.
//!
//! What is watched by level is not watched in a direction while its turn has not come; when it has come
//! the set is asked again (`EPOLL_CTL_MOD`), which also makes the edge that programs wait for that watch
//! by edges. Both happen before a call that waits for the set, which waits until then at the most.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::pacing::TransferDirection;
use crate::turns::{self, Bits, DESCRIPTORS};
use crate::{c, clock};

/// By descriptor: the set and the events, and the data that the program wants to see.
static EVENTS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
static DATA: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
/// When it was announced last.
static ANNOUNCED: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
/// Descriptors of which the set does not have all events now.
static MASKED: Bits = Bits::none();
/// Descriptors in more than one set.
static SEVERAL: Bits = Bits::none();
/// By set: how many threads wait for it, and what it is.
static SETS: [AtomicU32; DESCRIPTORS] = [const { AtomicU32::new(0) }; DESCRIPTORS];
const IS_SET: u32 = 1 << 31;
/// It is watched by another set.
const IS_NESTED: u32 = 1 << 30;
/// A call that we stand before has waited for it.
const IS_WAITED_FOR: u32 = 1 << 29;
const WAITERS: u32 = IS_WAITED_FOR - 1;
/// By set: when one of those that wait for it prepares it again; `u64::MAX`: when something happens.
static LOOKS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(u64::MAX) }; DESCRIPTORS];

/// After epoll_ctl(2) has succeeded.
pub fn watched(set: c_int, order: c_int, fd: c_int, event: Option<c::EpollEvent>) {
    const ADD: c_int = 1;
    const REMOVE: c_int = 2;
    let at = fd as u32 as usize;
    let Some(place) = EVENTS.get(at) else { return };
    let before = place.load(Ordering::Acquire);
    let Some(event) = event.filter(|_| order != REMOVE) else {
        if set_of(before) == Some(set) {
            place.store(0, Ordering::Release);
        }
        return;
    };
    if set_of(before).is_some_and(|other| other != set && has(other, IS_SET)) && order == ADD {
        SEVERAL.set(at);
    }
    mark(set, IS_SET);
    if has(fd, IS_SET) {
        mark(fd, IS_NESTED);
    }
    DATA[at].store(event.data, Ordering::Relaxed);
    place.store((set as u64 + 1) << 32 | u64::from(event.events), Ordering::Release);
}

/// The descriptor is no longer what it was.
#[inline(always)]
pub fn forget(fd: c_int) {
    if let Some(place) = EVENTS.get(fd as u32 as usize) {
        place.store(0, Ordering::Relaxed);
        SETS[fd as u32 as usize].store(0, Ordering::Relaxed);
        MASKED.clear(fd as u32 as usize);
        SEVERAL.clear(fd as u32 as usize);
    }
}

/// Whether a program that is refused finds out when the descriptor's turn comes. Not so where it has
/// its set watched in ways that we do not stand before, or events that come only once: a call on such a
/// descriptor waits itself.
pub fn can_be_refused(fd: c_int) -> bool {
    let at = fd as u32 as usize;
    let Some(place) = EVENTS.get(at) else { return false };
    let word = place.load(Ordering::Acquire);
    let is_once = word as u32 & (c::EPOLLONESHOT | c::EPOLLEXCLUSIVE) != 0;
    let is_nested = set_of(word).is_some_and(|set| has(set, IS_NESTED));
    !is_once && !is_nested && !SEVERAL.has(at)
}

/// A call was refused, or cut: what waits for the set already, or in a way that is not known, asks again.
/// Where several threads do, each is refused then, so of a turn that is not new that is done now and then.
#[cold]
pub fn refused(fd: c_int, is_new: bool) {
    let Some(place) = EVENTS.get(fd as u32 as usize) else { return };
    let word = place.load(Ordering::Acquire);
    let Some(set) = set_of(word) else { return };
    let state = SETS.get(set as u32 as usize).map_or(0, |state| state.load(Ordering::Acquire));
    let looks_at = LOOKS.get(set as u32 as usize).map_or(0, |at| at.load(Ordering::Acquire));
    let now = clock::now();
    let is_late = state & WAITERS != 0 && looks_at > turns::waiting(fd, now).1;
    let said_at = ANNOUNCED[fd as u32 as usize].load(Ordering::Relaxed);
    let is_due = is_new || now.saturating_sub(said_at) > AGAIN_NS;
    if state & IS_WAITED_FOR == 0 || is_late && is_due || !turns::has(fd) {
        ANNOUNCED[fd as u32 as usize].store(now, Ordering::Relaxed);
        announce(fd);
    }
    // The edge that is missing comes with the turn.
    if word as u32 & c::EPOLLET != 0 && turns::has(fd) {
        MASKED.set(fd as u32 as usize);
    }
}

/// Has the set say again what the descriptor is ready for.
#[cold]
pub fn announce(fd: c_int) {
    let Some(place) = EVENTS.get(fd as u32 as usize) else { return };
    let word = place.load(Ordering::Acquire);
    // One that is shot once is armed again by its program.
    if set_of(word).is_some() && word as u32 & (c::EPOLLONESHOT | c::EPOLLEXCLUSIVE) == 0 {
        MASKED.clear(fd as u32 as usize);
        ask(fd, word, word as u32);
    }
}

/// A thread that waits for a set; it is dropped when the wait is over.
#[derive(Debug)]
pub struct EpollWaiter(c_int);

impl EpollWaiter {
    /// It waits from now on.
    pub fn new(set: c_int) -> EpollWaiter {
        if let Some(state) = SETS.get(set as u32 as usize) {
            state.fetch_add(1, Ordering::AcqRel);
            state.fetch_or(IS_SET | IS_WAITED_FOR, Ordering::AcqRel);
        }
        EpollWaiter(set)
    }
}

impl Drop for EpollWaiter {
    fn drop(&mut self) {
        if let Some(state) = SETS.get(self.0 as u32 as usize) {
            let less = |word: u32| (word & WAITERS != 0).then(|| word - 1);
            LOOKS[self.0 as u32 as usize].store(u64::MAX, Ordering::Release);
            // The set may have been closed meanwhile.
            let _ = state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
        }
    }
}

/// Whether a descriptor is a set.
pub fn is_set(fd: c_int) -> bool {
    has(fd, IS_SET)
}

/// Before a call that waits for a set: has it show what it may show now. Returns when the next turn of
/// one of its descriptors comes.
pub fn prepare(set: c_int) -> Option<u64> {
    if !turns::is_any() {
        return None;
    }
    let (now, mut next, mut shown) = (clock::now(), u64::MAX, 0);
    turns::each(|fd| {
        let word = EVENTS.get(fd as u32 as usize).map_or(0, |place| place.load(Ordering::Acquire));
        if set_of(word) != Some(set) {
            return;
        }
        let (is_waiting, due) = turns::waiting(fd, now);
        if is_waiting.contains(&true) {
            next = next.min(due);
            mask(fd, word, is_waiting);
        } else if shown < SHOWN_MOST {
            shown += u32::from(show(fd, word));
        } else {
            next = now;
        }
    });
    if next == u64::MAX {
        return None;
    }
    if let Some(at) = LOOKS.get(set as u32 as usize) {
        at.fetch_min(next, Ordering::AcqRel);
    }
    Some(next)
}

/// The turn of a descriptor has come; whether the set had to be asked. Until the turn is taken it is not
/// asked again.
fn show(fd: c_int, word: u64) -> bool {
    let is_masked = MASKED.clear(fd as u32 as usize);
    if is_masked {
        ask(fd, word, word as u32);
    }
    is_masked
}

/// Has a set not watch a descriptor in the directions in which it waits for its turn. One that is watched
/// by edges is only noted: its set says nothing until it is asked.
fn mask(fd: c_int, word: u64, [sends, receives]: [bool; 2]) {
    if MASKED.set(fd as u32 as usize) {
        return;
    }
    let events = word as u32;
    if events & c::EPOLLET != 0 {
        return;
    }
    let out = if sends { EPOLL_OUT } else { 0 };
    let rest = events & !(out | if receives { EPOLL_IN } else { 0 });
    if rest == events {
        return;
    }
    // What shows always, such as the end of a connection, shows once if nothing else is watched.
    let is_nothing = rest & (EPOLL_IN | EPOLL_OUT) == 0;
    ask(fd, word, rest | if is_nothing { c::EPOLLET } else { 0 });
    // The program has changed it meanwhile.
    let place = &EVENTS[fd as u32 as usize];
    if place.load(Ordering::Acquire) != word {
        announce(fd);
    }
}

fn ask(fd: c_int, word: u64, events: u32) {
    let data = DATA[fd as u32 as usize].load(Ordering::Relaxed);
    if let Some(set) = set_of(word) {
        c::watch_again(set, fd, c::EpollEvent { events, data });
    }
}

/// The events of poll(2) that a descriptor's turns hold back, and when the first of these comes.
pub fn held_back(fd: c_int, now: u64) -> Option<(i16, u64)> {
    if fd < 0 || !turns::has(fd) {
        return None;
    }
    let (is_waiting, due) = turns::waiting(fd, now);
    let of = |direction: TransferDirection, events: u32| {
        if is_waiting[direction as usize] { events as i16 } else { 0 }
    };
    let events = of(TransferDirection::Send, EPOLL_OUT) | of(TransferDirection::Receive, EPOLL_IN);
    (events != 0).then_some((events, due))
}

fn set_of(word: u64) -> Option<c_int> {
    (word >> 32 != 0).then(|| (word >> 32) as c_int - 1)
}

fn has(set: c_int, state: u32) -> bool {
    let word = SETS.get(set as u32 as usize);
    word.is_some_and(|word| word.load(Ordering::Acquire) & state != 0)
}

fn mark(set: c_int, state: u32) {
    if let Some(word) = SETS.get(set as u32 as usize) {
        word.fetch_or(state, Ordering::AcqRel);
    }
}

/// `EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND`, which poll(2) has as well.
const EPOLL_OUT: u32 = 0x304;
/// `EPOLLIN | EPOLLRDNORM | EPOLLRDBAND`.
const EPOLL_IN: u32 = 0xc1;
/// How often a turn is announced to threads that are refused in its place.
const AGAIN_NS: u64 = 1_000_000;
/// Descriptors that are shown at once, at the most: each turn comes by itself.
const SHOWN_MOST: u32 = 16;
