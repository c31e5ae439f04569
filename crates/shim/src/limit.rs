//! The limit of this process: the region that `WINDTUNNEL_LIMIT` names, what of its descriptors is
//! under it, and waiting for it.
//!
//! What is sent claims its time before the call, what is received after it: only then is it known
//! how much that is. So a program gets what has come no earlier than the limit allows, and a call
//! that finds nothing waits for nothing.
//!
//! A wait ends when the rates change, and goes on at the new ones. The handler of a signal ends it
//! with `EINTR` if the program has a handler without `SA_RESTART`: a wait of the kernel would end
//! so by the signals that have one, and which has come is not known here.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::pacing::region::{KEY, NO_PEER, peer_key};
use crate::pacing::{
    Escape, PacingBudgetScope, PacingBudgetSlot, PacingController, PacingMechanism, PacingRegion,
    TransferDirection, rescaled,
};
use crate::{c, clock, names, process, turns, watch};

static REGION: AtomicPtr<PacingRegion> = AtomicPtr::new(ptr::null_mut());

/// The region, if there is one.
#[inline(always)]
pub fn region() -> Option<&'static PacingRegion> {
    // SAFETY: it is mapped until the program ends, and all of it is atomic.
    unsafe { REGION.load(Ordering::Acquire).as_ref() }
}

/// Whether there is a limit.
#[inline(always)]
pub fn is_live() -> bool {
    !REGION.load(Ordering::Acquire).is_null()
}

/// Maps the region of a file, if it is one.
///
/// # Safety
/// The path ends with a zero.
pub unsafe fn open(path: *const u8) {
    // SAFETY: the caller's.
    let Some(fd) = (unsafe { c::open(path, c::O_RDWR_CLOEXEC) }) else { return };
    let bytes = size_of::<PacingRegion>();
    let base = if c::length(fd) < bytes as u64 { None } else { c::map(fd, bytes) };
    c::close(fd);
    let Some(base) = base else { return };
    let region: *mut PacingRegion = base.cast();
    // SAFETY: as many bytes are mapped at the beginning of a page, and any bytes are a region.
    let found = unsafe { &*region };
    if found.is_valid() {
        found.count_held(PacingMechanism::Library);
        REGION.store(region, Ordering::Release);
    }
}

/// The limit is another's matter from now on: that of a supervisor.
pub fn end() {
    REGION.store(ptr::null_mut(), Ordering::Release);
}

/// A program has begun that no limit reaches, or uses a way that none reaches.
#[cold]
pub fn note_escape(why: Escape) {
    if let Some(region) = region() {
        region.count_escape(why);
    }
}

/// The program moves bytes by a system call that it makes by its number: counted once, if that is on a
/// socket under the limit.
pub fn note_raw(fd: c_int) {
    static IS_NOTED: AtomicBool = AtomicBool::new(false);
    let is_limited = || LimitedTransfer::of(fd, TransferDirection::Send, false).is_some();
    if !IS_NOTED.load(Ordering::Relaxed) && is_limited() && !IS_NOTED.swap(true, Ordering::Relaxed)
    {
        note_escape(Escape::Raw);
    }
}

/// What is known of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorLimitWord(u64);

impl DescriptorLimitWord {
    const UNKNOWN: DescriptorLimitWord = DescriptorLimitWord(0);
    /// Not a socket of the Internet's protocols.
    const FREE: DescriptorLimitWord = DescriptorLimitWord(1);

    #[inline(always)]
    fn is_limited(self) -> bool {
        self.0 & IS_LIMITED != 0
    }

    /// Whether it has bytes, and not messages.
    #[inline(always)]
    pub fn is_stream(self) -> bool {
        self.0 & IS_STREAM != 0
    }

    fn key(self) -> u64 {
        self.0 & KEY
    }
}

const IS_LIMITED: u64 = 1 << 63;
const IS_STREAM: u64 = 1 << 62;
const _: () = assert!(KEY == IS_STREAM - 1);

/// See the table of `descriptors`.
const DESCRIPTORS: usize = 1 << 20;
static WORDS: [AtomicU64; DESCRIPTORS] = [const { AtomicU64::new(0) }; DESCRIPTORS];

/// Nothing is known of a descriptor any more: it is about to mean something else, or its socket has
/// another peer.
#[inline(always)]
pub fn forget(fd: c_int) {
    crate::senders::forget(fd);
    if !is_live() {
        return;
    }
    if let Some(word) = WORDS.get(fd as u32 as usize) {
        let word = DescriptorLimitWord(word.swap(0, Ordering::Relaxed));
        if turns::has(fd) {
            give_back(fd, word);
        }
        watch::forget(fd);
    }
}

/// What was claimed for a descriptor's turns is free for others.
#[cold]
fn give_back(fd: c_int, word: DescriptorLimitWord) {
    let Some(region) = region() else { return };
    turns::forget(fd, |direction, bytes| {
        let limit = LimitedTransfer { region, word, direction, fd };
        let slot = limit.slot(clock::now(), None);
        slot.budget(direction).refund(limit.rate().max(1), bytes);
    });
}

/// A socket is about to have another peer.
pub fn forget_peer(fd: c_int) {
    crate::senders::forget(fd);
    if region().is_some_and(|region| region.per() == PacingBudgetScope::Peer)
        && let Some(word) = WORDS.get(fd as u32 as usize)
    {
        word.store(0, Ordering::Relaxed);
    }
}

/// The same of all from one to another.
pub fn forget_range(first: u32, last: u32) {
    crate::senders::forget_range(first, last);
    if is_live() {
        let end = last.saturating_add(1).min(DESCRIPTORS as u32);
        (first..end).take_while(|fd| *fd < USUAL).for_each(|fd| forget(fd as c_int));
    }
}

/// A call that moves bytes in a direction on a descriptor that is limited.
#[derive(Debug, Clone, Copy)]
pub struct LimitedTransfer {
    pub region: &'static PacingRegion,
    pub word: DescriptorLimitWord,
    pub direction: TransferDirection,
    pub fd: c_int,
}

impl LimitedTransfer {
    /// `None`: the call is free.
    #[inline(always)]
    pub fn of(
        fd: c_int,
        direction: TransferDirection,
        is_for_sockets: bool,
    ) -> Option<LimitedTransfer> {
        let region = region()?;
        let mut word = match WORDS.get(fd as u32 as usize) {
            Some(word) => DescriptorLimitWord(word.load(Ordering::Relaxed)),
            None => return None,
        };
        if word == DescriptorLimitWord::UNKNOWN
            || word == DescriptorLimitWord::FREE && is_for_sockets
        {
            word = ask(fd, region);
        }
        word.is_limited().then_some(LimitedTransfer { region, word, direction, fd })
    }

    /// The rate now, in bits a second; 0: none.
    #[inline(always)]
    pub fn rate(&self) -> u64 {
        self.region.rate_bps(self.direction)
    }

    /// The budgets that apply; `peer`: the other end, of a message that names one.
    #[inline(always)]
    pub fn slot(&self, now: u64, peer: Option<names::SocketEnd>) -> &'static PacingBudgetSlot {
        let key = match self.region.per() {
            PacingBudgetScope::Tree => 0,
            PacingBudgetScope::Process => u64::from(process::number()),
            PacingBudgetScope::Socket => self.word.key(),
            PacingBudgetScope::Peer => peer.map_or(self.word.key(), |it| peer_key(&it.address)),
        };
        self.region.slot(key, now)
    }

    /// Whether the call must not wait for the network.
    pub fn is_nonblocking(&self, flags: c_int) -> bool {
        let of_file = || c::status_flags(self.fd).is_some_and(|it| it & c::O_NONBLOCK != 0);
        flags & c::MSG_DONTWAIT != 0 || of_file()
    }

    /// Whether such a call is refused until its turn: where its program finds out when that comes.
    #[cold]
    pub fn can_be_refused(&self, flags: c_int) -> bool {
        let has_signals = || c::status_flags(self.fd).is_none_or(|it| it & c::O_ASYNC != 0);
        self.is_nonblocking(flags) && watch::can_be_refused(self.fd) && !has_signals()
    }

    /// Bytes have moved for which another number was claimed, or none.
    pub fn correct(&self, peer: Option<names::SocketEnd>, claimed: u64, bytes: u64) {
        let (now, rate) = (clock::now(), self.rate());
        if rate != 0 {
            let budget = self.slot(now, peer).budget(self.direction);
            if bytes > claimed {
                budget.charge(now, rate, bytes - claimed);
            } else if bytes < claimed {
                budget.refund(rate, claimed - bytes);
            }
        }
        if bytes > 0 {
            self.region.count(self.direction, bytes, now);
        }
    }

    /// Bytes have moved that were not claimed: waits until they may have.
    #[inline(always)]
    pub fn settle(&self, peer: Option<names::SocketEnd>, bytes: u64) {
        let (mut now, rate) = (clock::now(), self.rate());
        if rate != 0 {
            let budget = self.slot(now, peer).budget(self.direction);
            let at = budget.claim(now, rate, bytes);
            if at > now {
                let _ = self.wait(at, now, rate, u64::MAX);
                now = clock::now();
                budget.note_wait(now);
            }
        }
        self.region.count(self.direction, bytes, now);
    }

    /// Waits until a time that was claimed at a rate, `until` at the latest.
    #[cold]
    #[inline(never)]
    pub fn wait(&self, at: u64, begin: u64, rate: u64, until: u64) -> PacingWaitOutcome {
        let (mut at, mut rate, mut now) = (at, rate, begin);
        let waited = loop {
            let generation = self.region.generation.load(Ordering::Acquire);
            let rate_now = self.rate();
            if rate_now == 0 {
                break PacingWaitOutcome::Done;
            }
            if rate_now != rate {
                at = rescaled(at, now, rate, rate_now);
                rate = rate_now;
            }
            if now >= at {
                break PacingWaitOutcome::Done;
            }
            if now >= until {
                break PacingWaitOutcome::Late;
            }
            let is_signal = c::wait_for_change(&self.region.generation, generation, at.min(until));
            now = clock::now();
            if is_signal && now < at && c::has_interrupting_handler() {
                break PacingWaitOutcome::Interrupted;
            }
        };
        self.region.count_wait(self.direction, now.saturating_sub(begin));
        waited
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacingWaitOutcome {
    /// The time has come.
    Done,
    /// By a signal.
    Interrupted,
    /// The latest time has come before.
    Late,
}

/// Asks the kernel what a descriptor is, and keeps the answer.
#[cold]
#[inline(never)]
fn ask(fd: c_int, region: &PacingRegion) -> DescriptorLimitWord {
    let word = match c::option::<c_int>(fd, c::SO_DOMAIN) {
        Ok(family) if family == c_int::from(c::AF_INET) || family == c_int::from(c::AF_INET6) => {
            let kind = c::option::<c_int>(fd, c::SO_TYPE).unwrap_or(0);
            let stream = if kind == c::SOCK_STREAM { IS_STREAM } else { 0 };
            let Some(key) = key(fd, region.per()) else {
                // It has no peer yet.
                return DescriptorLimitWord(IS_LIMITED | stream | NO_PEER);
            };
            DescriptorLimitWord(IS_LIMITED | stream | key)
        }
        Ok(_) | Err(c::ENOTSOCK) => DescriptorLimitWord::FREE,
        Err(_) => return DescriptorLimitWord::FREE,
    };
    if let Some(place) = WORDS.get(fd as u32 as usize) {
        place.store(word.0, Ordering::Relaxed);
    }
    word
}

/// What a socket's budgets are found by.
fn key(fd: c_int, per: PacingBudgetScope) -> Option<u64> {
    match per {
        PacingBudgetScope::Tree | PacingBudgetScope::Process => Some(0),
        PacingBudgetScope::Socket => Some(c::option::<u64>(fd, c::SO_COOKIE).unwrap_or(1) & KEY),
        PacingBudgetScope::Peer => {
            let (tuple, is_connected) = names::tuple(fd, 0);
            is_connected.then(|| peer_key(&tuple.to))
        }
    }
}

/// Descriptors that are forgotten one by one where a range is closed.
const USUAL: u32 = 1 << 16;
