//! The memory that the programs under one limit share, and the commands that look at it.
//!
//! All of it is atomic words, so that what another process writes there can spoil a limit but
//! nothing else; a program that can write to it is not held by the limit.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::budget::PacingBudget;
use super::controller::PacingController;

/// What has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum PacingBudgetScope {
    /// The command and all that it starts share one.
    Tree = 0,
    Process = 1,
    Socket = 2,
    /// Each address at the other end.
    Peer = 3,
}

/// Of bytes, as the program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum TransferDirection {
    Send = 0,
    Receive = 1,
}

/// How programs are held to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum PacingMechanism {
    /// The preload library stands before the functions that move bytes.
    Library = 0,
    /// The kernel shows calls to a supervisor before it does them.
    Notification = 1,
}

/// Why something is not held to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Escape {
    /// A program that the library cannot enter, started in a way in which no filter can be
    /// installed for it alone.
    Spawned = 0,
    /// A program that the library cannot enter, for which no filter could be installed.
    NoFilter = 1,
    /// A stream of the C library on a socket.
    Stdio = 2,
    /// A process whose descriptors the supervisor may not look at.
    Hidden = 3,
    /// A program that makes system calls by their number.
    Raw = 4,
    /// A program of 32 bits, or of a user who may not open the region's file.
    Foreign = 5,
}

/// The region. Zeroed memory becomes one by [`PacingRegion::begin`].
#[derive(Debug)]
#[repr(C)]
pub struct PacingRegion {
    magic: AtomicU64,
    version: AtomicU32,
    /// What calls are marked with that need not be looked at again.
    token: AtomicU32,
    per: AtomicU32,
    /// Changes with the rates; those that wait look at it (futex(2)).
    pub generation: AtomicU32,
    totals: [AtomicTransferTotals; 2],
    /// Times that no entry was free, and the first was used.
    crowded: AtomicU64,
    /// Programs, or ways to move bytes, that were seen and that nothing holds to the limit, by
    /// [`Escape`].
    escapes: [AtomicU64; Escape::ALL.len()],
    /// Programs that are held, by [`PacingMechanism`].
    held: [AtomicU64; 2],
    /// Calls that were shown to a supervisor and move bytes on sockets.
    shown: AtomicU64,
    slots: [PacingBudgetSlot; SLOTS],
}

/// What has moved in a direction, and its rate.
#[derive(Debug)]
#[repr(C)]
struct AtomicTransferTotals {
    rate_bps: AtomicU64,
    bytes: AtomicU64,
    waited_ns: AtomicU64,
    waits: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

/// The budgets of one thing that has some of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PacingBudgetSlot {
    key: AtomicU64,
    budgets: [PacingBudget; 2],
}

/// What has happened in a direction so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferTotals {
    /// The limit; 0: none.
    pub rate_bps: u64,
    pub bytes: u64,
    /// Time that calls waited for the limit, all threads together.
    pub waited_ns: u64,
    /// Calls that waited.
    pub waits: u64,
    /// From when on bytes moved, and until when.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl TransferDirection {
    /// Both.
    pub const ALL: [TransferDirection; 2] = [TransferDirection::Send, TransferDirection::Receive];
}

impl PacingBudgetScope {
    /// All of them, in the order of their numbers.
    pub const ALL: [PacingBudgetScope; 4] = [
        PacingBudgetScope::Tree,
        PacingBudgetScope::Process,
        PacingBudgetScope::Socket,
        PacingBudgetScope::Peer,
    ];
}

impl Escape {
    /// All of them, in the order of their numbers.
    pub const ALL: [Escape; 6] = [
        Escape::Spawned,
        Escape::NoFilter,
        Escape::Stdio,
        Escape::Hidden,
        Escape::Raw,
        Escape::Foreign,
    ];
}

impl PacingRegion {
    /// Fills zeroed memory. `rates`: bits a second to send and to receive, 0 for no limit.
    pub fn begin(&self, now_ns: u64, token: u32, per: PacingBudgetScope, rates: [u64; 2]) {
        self.version.store(VERSION, Ordering::Relaxed);
        self.token.store(token, Ordering::Relaxed);
        self.per.store(per as u32, Ordering::Relaxed);
        for (total, rate) in self.totals.iter().zip(rates) {
            total.rate_bps.store(rate, Ordering::Relaxed);
        }
        self.slots[0].budgets.iter().for_each(|budget| budget.reset(now_ns));
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether this is a region of this version.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
    }

    /// See the field.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.token.load(Ordering::Relaxed)
    }

    /// What has a budget of its own.
    #[must_use]
    pub fn per(&self) -> PacingBudgetScope {
        let number = self.per.load(Ordering::Relaxed) as usize;
        *PacingBudgetScope::ALL.get(number).unwrap_or(&PacingBudgetScope::Tree)
    }

    /// The rate of a direction in bits a second; 0: there is no limit.
    #[must_use]
    #[inline]
    pub fn rate_bps(&self, direction: TransferDirection) -> u64 {
        self.totals[direction as usize].rate_bps.load(Ordering::Relaxed)
    }

    /// Another rate from now on. The caller wakes those that wait for `generation`.
    pub fn set_rate(&self, now_ns: u64, direction: TransferDirection, rate_bps: u64) {
        let total = &self.totals[direction as usize];
        let old_bps = total.rate_bps.swap(rate_bps, Ordering::Relaxed);
        for slot in &self.slots {
            let budget = slot.budget(direction);
            match (old_bps, rate_bps) {
                (0, _) | (_, 0) => budget.reset(now_ns),
                _ => budget.rescale(now_ns, old_bps, rate_bps),
            }
        }
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The entry of what has this key. One without debt is taken from another where none is free:
    /// it says nothing that a new one does not. Where there is no such either, the first is shared.
    #[must_use]
    pub fn slot(&self, key: u64, now_ns: u64) -> &PacingBudgetSlot {
        if key == 0 {
            return &self.slots[0];
        }
        let start = (key.wrapping_mul(SPREAD) >> 32) as usize;
        let places = (0..PROBES).map(|step| &self.slots[1 + (start + step) % (SLOTS - 1)]);
        let mut idle = None;
        for slot in places {
            let found = slot.key.load(Ordering::Relaxed);
            if found == key {
                return slot;
            }
            if idle.is_none() && (found == 0 || slot.is_idle(now_ns)) {
                idle = Some((slot, found));
            }
        }
        if let Some((slot, found)) = idle
            && slot.key.compare_exchange(found, key, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            slot.budgets.iter().for_each(|budget| budget.reset(now_ns));
            return slot;
        }
        self.crowded.fetch_add(1, Ordering::Relaxed);
        &self.slots[0]
    }

    /// Counts what has moved, and when.
    #[inline]
    pub fn count(&self, direction: TransferDirection, bytes: u64, now_ns: u64) {
        let total = &self.totals[direction as usize];
        total.bytes.fetch_add(bytes, Ordering::Relaxed);
        total.last_ns.store(now_ns, Ordering::Relaxed);
        if total.first_ns.load(Ordering::Relaxed) == 0 {
            total.first_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Takes back what was counted and has not moved.
    pub fn discount(&self, direction: TransferDirection, bytes: u64) {
        self.totals[direction as usize].bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts a wait.
    pub fn count_wait(&self, direction: TransferDirection, waited_ns: u64) {
        let total = &self.totals[direction as usize];
        total.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
        total.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// What has happened in a direction.
    #[must_use]
    pub fn sum(&self, direction: TransferDirection) -> TransferTotals {
        let total = &self.totals[direction as usize];
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        TransferTotals {
            rate_bps: read(&total.rate_bps),
            bytes: read(&total.bytes),
            waited_ns: read(&total.waited_ns),
            waits: read(&total.waits),
            first_ns: read(&total.first_ns),
            last_ns: read(&total.last_ns),
        }
    }

    /// Counts something that is not held to the limit.
    pub fn count_escape(&self, why: Escape) {
        self.escapes[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What was seen that is not held to the limit, for one reason.
    #[must_use]
    pub fn escapes(&self, why: Escape) -> u64 {
        self.escapes[why as usize].load(Ordering::Relaxed)
    }

    /// Counts a program that is held.
    pub fn count_held(&self, how: PacingMechanism) {
        self.held[how as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Programs that are held in one way.
    #[must_use]
    pub fn held(&self, how: PacingMechanism) -> u64 {
        self.held[how as usize].load(Ordering::Relaxed)
    }

    /// Counts a call that was shown to a supervisor.
    pub fn count_shown(&self) {
        self.shown.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls that were shown to a supervisor.
    #[must_use]
    pub fn shown(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Times that something with a budget of its own had to share that of others.
    #[must_use]
    pub fn crowded(&self) -> u64 {
        self.crowded.load(Ordering::Relaxed)
    }
}

impl PacingBudgetSlot {
    /// The budget of a direction.
    #[must_use]
    #[inline]
    pub fn budget(&self, direction: TransferDirection) -> &PacingBudget {
        &self.budgets[direction as usize]
    }

    fn is_idle(&self, now_ns: u64) -> bool {
        let latest = self.budgets.iter().map(PacingController::free_at_ns).max().unwrap_or(0);
        latest.saturating_add(IDLE_NS) < now_ns
    }
}

/// The key of the budget of an address, where IPv4 is mapped into IPv6 (FNV-1a); never 0 or 1.
#[must_use]
pub fn peer_key(address: &[u8; 16]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    (address.iter().fold(0xcbf2_9ce4_8422_2325, step) & KEY).max(2)
}

/// The bits of a key.
pub const KEY: u64 = (1 << 62) - 1;
/// The key of what has no peer yet, or none that is known.
pub const NO_PEER: u64 = 1;

/// Entries: what may have a budget of its own at one time, besides what has none left to pay.
pub const SLOTS: usize = 1024;

/// Entries that are looked at for one key.
const PROBES: usize = 16;
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// An entry without debt for so long may become another's.
const IDLE_NS: u64 = 1_000_000_000;
/// `WTlimit` and a format's number.
const MAGIC: u64 = u64::from_le_bytes(*b"WTlimit\x01");
const VERSION: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroed memory, as a new file has.
    fn region(per: PacingBudgetScope, rates: [u64; 2]) -> PacingRegion {
        let budget = || PacingBudget::new(0);
        let total = || AtomicTransferTotals {
            rate_bps: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
        };
        let slot = |_| PacingBudgetSlot { key: AtomicU64::new(0), budgets: [budget(), budget()] };
        let region = PacingRegion {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            token: AtomicU32::new(0),
            per: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            totals: [total(), total()],
            crowded: AtomicU64::new(0),
            escapes: [const { AtomicU64::new(0) }; Escape::ALL.len()],
            held: [const { AtomicU64::new(0) }; 2],
            shown: AtomicU64::new(0),
            slots: std::array::from_fn(slot),
        };
        assert!(!region.is_valid());
        region.begin(1_000, 7, per, rates);
        assert!(region.is_valid());
        region
    }

    #[test]
    fn what_has_a_key_has_a_budget_of_its_own() {
        let region = region(PacingBudgetScope::Socket, [8_000, 0]);
        let at = |key| region.slot(key, 0).budget(TransferDirection::Send).claim(0, 8_000, 1000);
        assert_eq!(at(5), 0);
        assert_eq!(at(5), 1_000_000_000);
        assert_eq!(at(6), 0);
        assert_eq!(at(0), 1_000);
        assert_eq!((region.per(), region.token()), (PacingBudgetScope::Socket, 7));
    }

    #[test]
    fn entries_without_debt_serve_others_and_those_with_debt_stay() {
        let region = region(PacingBudgetScope::Socket, [8, 8]);
        let debtor = region.slot(1, 0).budget(TransferDirection::Send);
        assert_eq!(debtor.claim(0, 8, 3600), 0);
        for key in 2..100_000 {
            let _ = region.slot(key, key * 2_000_000_000 / 100);
        }
        assert_eq!(region.crowded(), 0);
        let again = region.slot(1, 10_000_000_000).budget(TransferDirection::Send);
        assert_eq!(again.free_at_ns(), 3_600_000_000_000);
    }

    #[test]
    fn too_many_debtors_share_and_are_counted() {
        let region = region(PacingBudgetScope::Socket, [8, 8]);
        for key in 1..2 * SLOTS as u64 {
            let _ = region.slot(key, 0).budget(TransferDirection::Send).claim(0, 8, 3600);
        }
        assert!(region.crowded() > 0);
    }

    #[test]
    fn a_new_rate_shows_in_the_generation_and_scales_what_is_due() {
        let region = region(PacingBudgetScope::Tree, [8_000, 0]);
        let budget = region.slot(0, 0).budget(TransferDirection::Send);
        let _ = budget.claim(1_000, 8_000, 1000);
        region.set_rate(1_000, TransferDirection::Send, 16_000);
        assert_eq!(budget.free_at_ns(), 1_000 + 500_000_000);
        assert_eq!(region.generation.load(Ordering::Relaxed), 1);
        assert_eq!(region.rate_bps(TransferDirection::Send), 16_000);
    }
}
