//! What is of the process: whether it is still the one that this memory belongs to, its name, and
//! what cannot be seen of it.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::c;
use crate::clock;
use crate::descriptors;
use crate::record::kind::{CallBlindSpot, Kind, NO_FLOW};
use crate::record::{EventRecord, words};
use crate::region::region;
use crate::sockets::unseen;

/// A page that the kernel clears in children that have memory of their own. In the child of
/// vfork(2), which has its parent's memory, it stays, and so shows whose that is.
#[repr(C)]
#[derive(Debug)]
pub struct WipeOnForkPage {
    /// The process that this memory belongs to; 0: not known yet.
    pid: AtomicU32,
    /// The word of the region for which the process was named.
    named: AtomicU32,
}

static PAGE: AtomicPtr<WipeOnForkPage> = AtomicPtr::new(&raw const SPARE as *mut WipeOnForkPage);
/// Where there is no such page; a child is then found by its number only after [`forked`].
static SPARE: WipeOnForkPage = WipeOnForkPage { pid: AtomicU32::new(0), named: AtomicU32::new(0) };
static NAME: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
/// Bits of [`CallBlindSpot`] that were found.
static BLIND: AtomicU32 = AtomicU32::new(0);
static IS_CONFINED: AtomicBool = AtomicBool::new(false);

const PAGE_BYTES: usize = 4096;

/// At the start of the program.
pub fn start() {
    if let Some(page) = c::map(-1, PAGE_BYTES)
        && c::wipe_on_fork(page, PAGE_BYTES)
    {
        PAGE.store(page.cast(), Ordering::Relaxed);
    }
    page().pid.store(c::pid(), Ordering::Relaxed);
    set_name(&c::comm());
}

/// In the child of a fork, before it does anything that could confine it.
pub fn forked() {
    page().pid.store(c::pid(), Ordering::Relaxed);
    page().named.store(0, Ordering::Relaxed);
    clock::restart();
}

/// The program has changed the name of the calling thread; that of the first is its own.
pub fn rename() {
    if !is_confined() && c::is_first_thread() {
        set_name(&c::comm());
    }
}

fn set_name(name: &[u8; 16]) {
    for (half, bytes) in NAME.iter().zip(name.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        half.store(u64::from_le_bytes(word), Ordering::Relaxed);
    }
}

/// The process, when this memory is its own; `None` in the child of vfork(2).
pub fn owner() -> Option<u32> {
    let known = page().pid.load(Ordering::Relaxed);
    if is_confined() && known != 0 {
        return Some(known);
    }
    let pid = c::pid();
    if known == 0 {
        // A child of clone(2), of which nothing else was seen.
        forked();
    }
    (known == 0 || known == pid).then_some(pid)
}

/// The number of the process; in the child of vfork(2), that of its parent.
pub fn number() -> u32 {
    let known = page().pid.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    forked();
    page().pid.load(Ordering::Relaxed)
}

/// Whether the process has been named since recording started.
#[inline(always)]
pub fn is_named(recording: u32) -> bool {
    page().named.load(Ordering::Relaxed) == recording
}

/// Names it.
#[cold]
#[inline(never)]
pub fn name(recording: u32, ring: u32, time: u64) {
    let Some(pid) = owner() else { return };
    let mut name = [0; 16];
    for (half, bytes) in NAME.iter().zip(name.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&half.load(Ordering::Relaxed).to_le_bytes());
    }
    let args = words(name);
    let process =
        EventRecord { time, kind: Kind::Process as u8, flow: pid, args, ..EventRecord::default() };
    let region = region();
    let mut done = region.push(ring, &process);
    let blind = BLIND.load(Ordering::Relaxed);
    for reason in 0..u32::BITS {
        if blind >> reason & 1 == 1 {
            done &= region.push(ring, &unseen(time, NO_FLOW, reason, pid));
        }
    }
    if done {
        page().named.store(recording, Ordering::Relaxed);
    }
}

/// Calls of this process are not seen, for a reason that concerns all of it. It is said as soon as
/// events are recorded.
#[cold]
pub fn note(reason: CallBlindSpot) {
    if !crate::region::is_live() {
        return;
    }
    let bit = 1 << reason as u32;
    if BLIND.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    page().named.store(0, Ordering::Relaxed);
    let recording = region().recording();
    if recording & 1 != 0 {
        let (time, ring) = clock::now_and_processor();
        if owner().is_some() {
            name(recording, ring, time);
        } else {
            // In the child of vfork(2), of the process whose memory this is.
            let pid = page().pid.load(Ordering::Relaxed);
            region().push(ring, &unseen(time, NO_FLOW, reason as u32, pid));
        }
    }
}

/// From now on the kernel may kill the process for a system call that is not its own: what the
/// descriptors are is asked before.
#[cold]
pub fn confine() {
    if owner().is_some() {
        descriptors::classify_all();
        IS_CONFINED.store(true, Ordering::Relaxed);
    }
}

/// Whether the program confines its system calls.
pub fn is_confined() -> bool {
    IS_CONFINED.load(Ordering::Relaxed)
}

#[inline(always)]
fn page() -> &'static WipeOnForkPage {
    // SAFETY: the page is there from the start on and never goes; all of it is atomic.
    unsafe { &*PAGE.load(Ordering::Relaxed) }
}
