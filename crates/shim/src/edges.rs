//! Descriptors that a program watches by edges (`EPOLLET` of epoll(7)).
//!
//! There a program may take a call that moved less than asked as the sign that nothing is left to
//! move, and wait for the next edge. The kernel makes none where the limit cut the call, so the
//! descriptor is announced once more.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::c;

/// By descriptor: the set and the events, and the data that the program wants to see. Descriptors
/// above are announced no more; their programs wait for what the network does next.
const DESCRIPTORS: usize = 1 << 16;
static EVENTS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];
static DATA: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];

/// After epoll_ctl(2) has succeeded.
pub fn watched(set: c_int, order: c_int, fd: c_int, event: Option<c::EpollEvent>) {
    const REMOVE: c_int = 2;
    let Some(place) = EVENTS.get(fd as u32 as usize) else { return };
    place.store(0, Ordering::Relaxed);
    let Some(event) = event.filter(|_| order != REMOVE) else { return };
    let events = event.events;
    // One that is shot once is armed again by its program.
    if events & c::EPOLLET != 0 && events & c::EPOLLONESHOT == 0 {
        DATA[fd as u32 as usize].store(event.data, Ordering::Relaxed);
        place.store((set as u64 + 1) << 32 | u64::from(events), Ordering::Release);
    }
}

/// The descriptor is no longer what it was.
#[inline(always)]
pub fn forget(fd: c_int) {
    if let Some(place) = EVENTS.get(fd as u32 as usize) {
        place.store(0, Ordering::Relaxed);
    }
}

/// Has the set say again what the descriptor is ready for.
#[cold]
pub fn announce(fd: c_int) {
    let Some(place) = EVENTS.get(fd as u32 as usize) else { return };
    let word = place.load(Ordering::Acquire);
    if word != 0 {
        let data = DATA[fd as u32 as usize].load(Ordering::Relaxed);
        c::watch_again((word >> 32) as c_int - 1, fd, c::EpollEvent { events: word as u32, data });
    }
}
