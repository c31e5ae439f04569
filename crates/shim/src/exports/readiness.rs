//! Calls that wait until descriptors are ready, which those are not whose turn under the limit has not
//! come. Source: poll(2), select(2), epoll_wait(2).

use core::ffi::{c_int, c_void};

use super::export;
use crate::c::{EpollEvent, PollFd};
use crate::pacing::TransferDirection;
use crate::watch::{self, EpollWaiter};
use crate::{clock, limit, next, turns};

/// Makes a call that waits, with no more nanoseconds than until `prepare` has to be called again, until it
/// finds something or its own time is over. `u64::MAX` is for ever.
fn waits(
    timeout_ns: u64,
    mut prepare: impl FnMut() -> Option<u64>,
    mut next: impl FnMut(u64) -> c_int,
) -> c_int {
    let mut until = None;
    loop {
        let Some(due) = prepare() else {
            return match until {
                None => next(timeout_ns),
                Some(until) => next(left(until)),
            };
        };
        let now = clock::now();
        let until = *until.get_or_insert_with(|| now.saturating_add(timeout_ns));
        let own = left(until);
        let part = due.saturating_sub(now).min(LOOK_NS);
        let result = next(own.min(part));
        if result != 0 || left(until) == 0 {
            return result;
        }
    }
}

fn left(until: u64) -> u64 {
    if until == u64::MAX { until } else { until.saturating_sub(clock::now()) }
}

/// Milliseconds of a call, below zero for ever, in nanoseconds; and back, rounded up.
fn from_ms(ms: c_int) -> u64 {
    u64::try_from(ms).map_or(u64::MAX, |ms| ms * 1_000_000)
}

fn to_ms(ns: u64) -> c_int {
    if ns == u64::MAX { -1 } else { c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX) }
}

/// `struct timespec`; null: for ever.
///
/// # Safety
/// It may be read, unless it is null.
unsafe fn from_time(time: *const [i64; 2]) -> u64 {
    if time.is_null() {
        return u64::MAX;
    }
    // SAFETY: the caller's.
    let [seconds, ns] = unsafe { time.read_unaligned() }.map(|it| u64::try_from(it).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

fn to_time(ns: u64) -> [i64; 2] {
    [(ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64]
}

/// Waits for a set by `next`, which takes nanoseconds.
fn waits_for_set(set: c_int, timeout_ns: u64, next: impl FnMut(u64) -> c_int) -> c_int {
    let _waiter = EpollWaiter::new(set);
    waits(timeout_ns, || watch::prepare(set), next)
}

/// Polls by `next`, which takes the descriptors and nanoseconds.
///
/// # Safety
/// So many descriptors are there.
unsafe fn polls(
    all: *mut PollFd,
    count: usize,
    timeout_ns: u64,
    mut next: impl FnMut(*mut PollFd, u64) -> c_int,
) -> c_int {
    if !limit::is_live() || all.is_null() || count > POLLED {
        return next(all, timeout_ns);
    }
    // SAFETY: the caller's.
    let read = |at: usize| unsafe { all.add(at).read_unaligned() };
    // One set is the usual; of several the first is watched for.
    let set = (0..count).map(|at| read(at).fd).find(|fd| watch::is_set(*fd));
    let _waiter = set.map(EpollWaiter::new);
    if !turns::is_any() {
        return next(all, timeout_ns);
    }
    // SAFETY: the caller's.
    unsafe { polls_held(all, count, timeout_ns, &mut next) }
}

/// The same where some wait for their turns.
///
/// # Safety
/// As [`polls`].
#[cold]
#[inline(never)]
unsafe fn polls_held(
    all: *mut PollFd,
    count: usize,
    timeout_ns: u64,
    next: &mut dyn FnMut(*mut PollFd, u64) -> c_int,
) -> c_int {
    // SAFETY: the caller's.
    let read = |at: usize| unsafe { all.add(at).read_unaligned() };
    let mut copy = [PollFd { fd: -1, events: 0, found: 0 }; POLLED];
    let list = copy.as_mut_ptr();
    // SAFETY: `copy` lives as long as this call, and the call takes turns with what prepares it.
    let list = || unsafe { core::slice::from_raw_parts_mut(list, count) };
    let prepare = || {
        let (now, mut first) = (clock::now(), u64::MAX);
        for (at, to) in list().iter_mut().enumerate() {
            *to = read(at);
            if let Some((events, due)) = watch::held_back(to.fd, now) {
                to.events &= !events;
                first = first.min(due);
                if to.events == 0 {
                    to.fd = -1;
                }
            } else if watch::is_set(to.fd) {
                first = first.min(watch::prepare(to.fd).unwrap_or(u64::MAX));
            }
        }
        (first != u64::MAX).then_some(first)
    };
    let result = waits(timeout_ns, prepare, |ns| next(list().as_mut_ptr(), ns));
    if result >= 0 {
        for (at, from) in list().iter().enumerate() {
            // SAFETY: the caller's.
            let to = unsafe { &mut (*all.add(at)).found };
            *to = if from.fd < 0 { 0 } else { from.found };
        }
    }
    result
}

/// Of a word of the sets for reading and writing: those that wait for their turns, and when the first of
/// these comes.
fn held_of(at: usize, asked: [u64; 2], now: u64) -> ([u64; 2], u64) {
    let (mut held, mut first) = ([0_u64; 2], u64::MAX);
    let mut left = asked[0] | asked[1];
    while left != 0 {
        let bit = left.trailing_zeros();
        left &= left - 1;
        let fd = (at * 64) as c_int + bit as c_int;
        if watch::is_set(fd) {
            first = first.min(watch::prepare(fd).unwrap_or(u64::MAX));
        }
        if !turns::has(fd) {
            continue;
        }
        let (is_waiting, due) = turns::waiting(fd, now);
        for (set, direction) in
            [TransferDirection::Receive, TransferDirection::Send].into_iter().enumerate()
        {
            let bits = u64::from(is_waiting[direction as usize]) << bit & asked[set];
            held[set] |= bits;
            first = if bits != 0 { first.min(due) } else { first };
        }
    }
    (held, first)
}

/// Selects by `next`, which takes the sets for reading and writing, and nanoseconds.
///
/// # Safety
/// The sets have as many bits as there are descriptors, or are null.
unsafe fn selects(
    count: c_int,
    sets: [*mut u64; 3],
    timeout_ns: u64,
    mut next: impl FnMut([*mut u64; 3], u64) -> c_int,
) -> c_int {
    let words = (count.max(0) as usize).div_ceil(64);
    if !turns::is_any() || words > SELECTED / 64 {
        return next(sets, timeout_ns);
    }
    let mut asked = [[0_u64; SELECTED / 64]; 3];
    for (from, to) in sets.iter().zip(&mut asked).filter(|(from, _)| !from.is_null()) {
        // SAFETY: the caller's.
        (0..words).for_each(|at| to[at] = unsafe { from.add(at).read_unaligned() });
    }
    let write = |set: usize, at: usize, word: u64| {
        if !sets[set].is_null() {
            // SAFETY: the caller's.
            unsafe { sets[set].add(at).write_unaligned(word) };
        }
    };
    let prepare = || {
        let (now, mut first) = (clock::now(), u64::MAX);
        for at in 0..words {
            let [reads, writes, others] = asked.map(|set| set[at]);
            let (held, due) = held_of(at, [reads, writes], now);
            first = first.min(due);
            write(0, at, reads & !held[0]);
            write(1, at, writes & !held[1]);
            write(2, at, others);
        }
        (first != u64::MAX).then_some(first)
    };
    waits(timeout_ns, prepare, |ns| next(sets, ns))
}

export! {
    fn epoll_wait(set: c_int, events: *mut EpollEvent, most: c_int, timeout: c_int) -> c_int {
        if !limit::is_live() {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::epoll_wait(set, events, most, timeout) };
        }
        // SAFETY: as above.
        waits_for_set(set, from_ms(timeout), |ns| unsafe { next::epoll_wait(set, events, most, to_ms(ns)) })
    }

    fn epoll_pwait(set: c_int, events: *mut EpollEvent, most: c_int, timeout: c_int, mask: *const c_void) -> c_int {
        if !limit::is_live() {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::epoll_pwait(set, events, most, timeout, mask) };
        }
        // SAFETY: as above.
        waits_for_set(set, from_ms(timeout), |ns| unsafe { next::epoll_pwait(set, events, most, to_ms(ns), mask) })
    }

    fn epoll_pwait2(set: c_int, events: *mut EpollEvent, most: c_int, timeout: *const [i64; 2], mask: *const c_void) -> c_int {
        if !limit::is_live() {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::epoll_pwait2(set, events, most, timeout, mask) };
        }
        // SAFETY: as above.
        waits_for_set(set, unsafe { from_time(timeout) }, |ns| {
            let time = to_time(ns);
            let time = if ns == u64::MAX { core::ptr::null() } else { &raw const time };
            // SAFETY: as above.
            unsafe { next::epoll_pwait2(set, events, most, time, mask) }
        })
    }

    fn poll(all: *mut PollFd, count: usize, timeout: c_int) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        unsafe { polls(all, count, from_ms(timeout), |all, ns| next::poll(all, count, to_ms(ns))) }
    }

    fn __poll_chk(all: *mut PollFd, count: usize, timeout: c_int, room: usize) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        unsafe { polls(all, count, from_ms(timeout), |all, ns| next::poll_chk(all, count, to_ms(ns), room)) }
    }

    fn ppoll(all: *mut PollFd, count: usize, timeout: *const [i64; 2], mask: *const c_void) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        unsafe { polls(all, count, from_time(timeout), |all, ns| {
            let time = to_time(ns);
            next::ppoll(all, count, if ns == u64::MAX { core::ptr::null() } else { &raw const time }, mask)
        }) }
    }

    fn __ppoll_chk(all: *mut PollFd, count: usize, timeout: *const [i64; 2], mask: *const c_void, _room: usize) -> c_int {
        // SAFETY: the caller's arguments are passed on; its C library has found the room.
        unsafe { ppoll(all, count, timeout, mask) }
    }

    fn select(count: c_int, reads: *mut u64, writes: *mut u64, others: *mut u64, timeout: *mut [i64; 2]) -> c_int {
        if !turns::is_any() {
            // SAFETY: the caller's arguments are passed on.
            return unsafe { next::select(count, reads, writes, others, timeout) };
        }
        // SAFETY: `struct timeval`, of microseconds.
        let given = (!timeout.is_null()).then(|| unsafe { timeout.read_unaligned() });
        let whole = given.map_or(u64::MAX, |[seconds, micros]| {
            (seconds as u64).saturating_mul(1_000_000_000).saturating_add(micros as u64 * 1000)
        });
        let began = clock::now();
        // SAFETY: the caller's arguments are passed on.
        let result = unsafe { selects(count, [reads, writes, others], whole, |[reads, writes, others], ns| {
            let mut part = [(ns / 1_000_000_000) as i64, (ns % 1_000_000_000 / 1000) as i64];
            let part = if ns == u64::MAX { core::ptr::null_mut() } else { &raw mut part };
            next::select(count, reads, writes, others, part)
        }) };
        if !timeout.is_null() {
            // Linux says what is left.
            let [seconds, ns] = to_time(whole.saturating_sub(clock::now() - began));
            // SAFETY: the caller's.
            unsafe { timeout.write_unaligned([seconds, ns / 1000]) };
        }
        result
    }

    fn pselect(count: c_int, reads: *mut u64, writes: *mut u64, others: *mut u64, timeout: *const [i64; 2], mask: *const c_void) -> c_int {
        // SAFETY: the caller's arguments are passed on.
        unsafe { selects(count, [reads, writes, others], from_time(timeout), |[reads, writes, others], ns| {
            let time = to_time(ns);
            let time = if ns == u64::MAX { core::ptr::null() } else { &raw const time };
            next::pselect(count, reads, writes, others, time, mask)
        }) }
    }
}

/// Descriptors of poll(2) that a copy has room for. Of more, those that the limit holds show as ready.
const POLLED: usize = 1024;
/// `FD_SETSIZE`.
const SELECTED: usize = 1024;
/// The time after which rates are looked at again.
const LOOK_NS: u64 = 50_000_000;
const _: () = assert!(size_of::<PollFd>() == 8);
