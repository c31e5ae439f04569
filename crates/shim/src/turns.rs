//! The turns of calls that must not block: one that the limit refuses (`EAGAIN`) keeps its place among
//! the others that move bytes. Its bytes are claimed, and move by the call that comes when their time has
//! come; until then the descriptor shows as not ready in that direction (`watch`, `exports::readiness`).
//!
//! So a program with an event loop sees what it would see on a slow link: a call that fails at once, and a
//! descriptor that becomes ready later.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::limit::{self, LimitedTransfer};
use crate::pacing::{PacingController, TransferDirection};

/// Descriptors that can have a turn; calls on those above wait.
pub const DESCRIPTORS: usize = 1 << 16;

/// When the turn of a descriptor comes, by direction; 0: it has none.
static DUE: [[AtomicU64; DESCRIPTORS]; 2] =
    [const { [const { AtomicU64::new(0) }; DESCRIPTORS] }; 2];
/// The bytes that are claimed for it, and above them how often the rates had changed by then.
static CLAIMED: [[AtomicU64; DESCRIPTORS]; 2] =
    [const { [const { AtomicU64::new(0) }; DESCRIPTORS] }; 2];
/// Descriptors that have a turn, a bit each.
static HELD: Bits = Bits::none();
/// How many these are.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A bit for each descriptor.
#[derive(Debug)]
pub struct Bits([AtomicU64; DESCRIPTORS / 64]);

impl Bits {
    /// None is set.
    pub const fn none() -> Bits {
        Bits([const { AtomicU64::new(0) }; DESCRIPTORS / 64])
    }

    /// Sets one; whether it was set.
    pub fn set(&self, at: usize) -> bool {
        let bit = 1 << (at % 64);
        self.0.get(at / 64).is_some_and(|word| word.fetch_or(bit, Ordering::AcqRel) & bit != 0)
    }

    /// Clears one; whether it was set.
    pub fn clear(&self, at: usize) -> bool {
        let bit = 1 << (at % 64);
        self.0.get(at / 64).is_some_and(|word| word.fetch_and(!bit, Ordering::AcqRel) & bit != 0)
    }

    /// Whether one is set.
    pub fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (at % 64) & 1 == 1)
    }

    /// Visits those that are set.
    fn each(&self, mut visit: impl FnMut(usize)) {
        for (at, word) in self.0.iter().enumerate() {
            let mut left = word.load(Ordering::Acquire);
            while left != 0 {
                visit(at * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

/// The place of a call among those that move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacingTurn {
    /// It has none.
    None,
    /// It comes at a time.
    At(u64),
    /// It has come: so many bytes are claimed, and this turn is over.
    Now(u64),
}

/// Whether any descriptor has a turn that has not been taken.
#[inline(always)]
pub fn is_any() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

/// The turn of a call, which takes it if it has come.
#[inline(always)]
pub fn take(limit: &LimitedTransfer, now: u64) -> PacingTurn {
    if is_any() { taken(limit, now) } else { PacingTurn::None }
}

#[cold]
fn taken(limit: &LimitedTransfer, now: u64) -> PacingTurn {
    let (direction, at) = (limit.direction as usize, limit.fd as u32 as usize);
    let Some(due) = due(limit.fd, limit.direction, now) else { return PacingTurn::None };
    if due > now {
        return PacingTurn::At(due);
    }
    if DUE[direction][at].swap(0, Ordering::AcqRel) == 0 {
        // Another thread has taken it.
        return PacingTurn::None;
    }
    ended(at);
    PacingTurn::Now(CLAIMED[direction][at].load(Ordering::Relaxed) & BYTES)
}

/// Keeps the place of a call that is refused: its bytes are claimed, and may move at a time. One that
/// has a place gives this one back.
pub fn keep(limit: &LimitedTransfer, due: u64, bytes: u64, slot: &crate::pacing::PacingBudgetSlot) {
    let (direction, at) = (limit.direction as usize, limit.fd as u32 as usize);
    let Some(place) = DUE[direction].get(at) else { return };
    let is_first =
        place.compare_exchange(0, due.max(1), Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if is_first {
        let generation = limit.region.generation.load(Ordering::Relaxed);
        let claimed = u64::from(generation) << 32 | bytes.min(BYTES);
        CLAIMED[direction][at].store(claimed, Ordering::Relaxed);
        if !HELD.set(at) {
            COUNT.fetch_add(1, Ordering::AcqRel);
        }
    } else {
        slot.budget(limit.direction).refund(limit.rate().max(1), bytes);
    }
}

/// When the turn of a descriptor comes in a direction, or came, if it has one.
pub fn due(fd: c_int, direction: TransferDirection, now: u64) -> Option<u64> {
    let (direction, at) = (direction as usize, fd as u32 as usize);
    let due = DUE[direction].get(at)?.load(Ordering::Acquire);
    if due == 0 {
        return None;
    }
    // At other rates it comes at another time: at once, as what is claimed is claimed.
    let region = limit::region()?;
    let generation = (CLAIMED[direction][at].load(Ordering::Relaxed) >> 32) as u32;
    let is_other = region.generation.load(Ordering::Relaxed) != generation;
    Some(if is_other { due.min(now) } else { due })
}

/// Directions in which a descriptor has to wait for its turn, and when the first of them comes.
pub fn waiting(fd: c_int, now: u64) -> ([bool; 2], u64) {
    let mut first = u64::MAX;
    let is_waiting = TransferDirection::ALL.map(|direction| match due(fd, direction, now) {
        Some(due) if due > now => {
            first = first.min(due);
            true
        }
        _ => false,
    });
    (is_waiting, first)
}

/// Whether a descriptor has a turn that comes, or came and was not taken.
pub fn has(fd: c_int) -> bool {
    HELD.has(fd as u32 as usize)
}

/// Visits descriptors with turns.
pub fn each(mut visit: impl FnMut(c_int)) {
    if is_any() {
        HELD.each(|at| visit(at as c_int));
    }
}

/// The descriptor has no turn any more: what was claimed for it is given back by `refund`.
pub fn forget(fd: c_int, mut refund: impl FnMut(TransferDirection, u64)) {
    let at = fd as u32 as usize;
    if !has(fd) {
        return;
    }
    for direction in TransferDirection::ALL {
        if DUE[direction as usize][at].swap(0, Ordering::AcqRel) != 0 {
            refund(direction, CLAIMED[direction as usize][at].load(Ordering::Relaxed) & BYTES);
        }
    }
    ended(at);
}

/// One turn of a descriptor is over.
fn ended(at: usize) {
    let has_other = DUE.iter().any(|due| due[at].load(Ordering::Acquire) != 0);
    if !has_other && HELD.clear(at) {
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

const BYTES: u64 = u32::MAX as u64;
