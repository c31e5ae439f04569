//! Calls that move bytes, under the limit. Where there is none, or the descriptor is not limited,
//! each is the next function.
//!
//! A call on a stream is cut into pieces, so that the bytes of a long one do not all move at once. A
//! call that may block goes on with the next piece until it is done. One that must not moves what may
//! move now, and fails with `EAGAIN` if that is nothing; it keeps its turn ([`turns`]). Where its program
//! could not find out when that comes it waits in the call, for no longer than a piece of others takes.

use core::ffi::c_int;

use crate::c::{self, IoVec, SocketMessageHeader};
use crate::clock;
use crate::limit::{LimitedTransfer, PacingWaitOutcome};
use crate::names::SocketEnd;
use crate::next;
use crate::pacing::controller::PATIENCE_NS;
use crate::pacing::{BUFFER_NS, PacingBudgetSlot, PacingController, TransferDirection, piece};
use crate::turns::{self, PacingTurn};
use crate::watch;

/// Sends by `next`, which takes the first byte and how many.
#[inline(always)]
pub fn sends(
    limit: Option<LimitedTransfer>,
    flags: c_int,
    count: usize,
    peer: impl FnOnce() -> Option<SocketEnd>,
    mut next: impl FnMut(usize, usize) -> isize,
) -> isize {
    let Some(limit) = limit else { return next(0, count) };
    let rate = limit.rate();
    if rate == 0 {
        let result = next(0, count);
        if result > 0 {
            limit.region.count(TransferDirection::Send, result as u64, clock::now());
        }
        return result;
    }
    let is_whole = !limit.word.is_stream() || flags & c::MSG_WHOLE != 0 || fits(rate, count);
    let peer = peer();
    if !is_whole {
        return send_pieces(&limit, flags, count, peer, &mut next);
    }
    match claimed(&limit, flags, None, count, peer) {
        Ok(claim) => claim.settle(&limit, count, next(0, count)),
        Err(errno) => fail(errno),
    }
}

/// Receives by `next`, in the same way.
#[inline(always)]
pub fn receives(
    limit: Option<LimitedTransfer>,
    flags: c_int,
    count: usize,
    peer: impl FnOnce() -> Option<SocketEnd>,
    mut next: impl FnMut(usize, usize) -> isize,
) -> isize {
    let Some(limit) = limit else { return next(0, count) };
    let moves = flags & (c::MSG_PEEK | c::MSG_ERRQUEUE) == 0;
    let rate = limit.rate();
    if moves && rate != 0 && limit.word.is_stream() && !fits(rate, count) {
        return receive_pieces(&limit, flags, count, &mut next);
    }
    let admitted = match moves && rate != 0 {
        true => admitted(&limit, flags, count),
        false => ReceiveAdmission::Later,
    };
    if matches!(admitted, ReceiveAdmission::Refused) {
        return fail(c::EAGAIN);
    }
    let result = next(0, count);
    let peer = || if limit.word.is_stream() { None } else { peer() };
    if moves {
        admitted.settle(&limit, result, peer);
    }
    result
}

/// Whether a call may receive now, and what is claimed for it.
#[derive(Debug)]
pub enum ReceiveAdmission {
    /// So many bytes are claimed, and may have come.
    Now(u64),
    /// What it receives is claimed after it, and waited for.
    Later,
    /// It must not block, and would have to wait.
    Refused,
}

impl ReceiveAdmission {
    /// After the call.
    #[inline(always)]
    pub fn settle(
        self,
        limit: &LimitedTransfer,
        result: isize,
        peer: impl FnOnce() -> Option<SocketEnd>,
    ) {
        let bytes = result.max(0) as u64;
        match self {
            ReceiveAdmission::Now(claimed) => limit.correct(peer(), claimed, bytes),
            _ if bytes > 0 => limit.settle(peer(), bytes),
            _ => {}
        }
    }
}

/// Whether a call may receive up to so many bytes now.
#[inline(always)]
pub fn admitted(limit: &LimitedTransfer, flags: c_int, count: usize) -> ReceiveAdmission {
    let now = clock::now();
    let slot = limit.slot(now, None);
    let is_free = slot.budget(limit.direction).free_at_ns() <= now;
    if is_free && !turns::is_any() {
        ReceiveAdmission::Now(0)
    } else {
        in_turn(limit, flags, count, now, slot)
    }
}

#[cold]
fn in_turn(
    limit: &LimitedTransfer,
    flags: c_int,
    count: usize,
    now: u64,
    slot: &PacingBudgetSlot,
) -> ReceiveAdmission {
    let budget = slot.budget(limit.direction);
    match turns::take(limit, now) {
        PacingTurn::Now(claimed) => {
            budget.note_wait(now);
            ReceiveAdmission::Now(claimed)
        }
        PacingTurn::None if budget.free_at_ns() <= now => ReceiveAdmission::Now(0),
        _ if !limit.can_be_refused(flags) => ReceiveAdmission::Later,
        PacingTurn::At(_) => refuse(limit, now, slot, false),
        // What finds nothing, or the end of a connection, needs no turn.
        PacingTurn::None if !c::has_bytes(limit.fd) => ReceiveAdmission::Now(0),
        PacingTurn::None => {
            let bytes = count.min(part_of(limit, true, count)) as u64;
            let due = budget.claim(now, limit.rate().max(1), bytes);
            turns::keep(limit, due, bytes, slot);
            refuse(limit, now, slot, true)
        }
    }
}

fn refuse(
    limit: &LimitedTransfer,
    now: u64,
    slot: &PacingBudgetSlot,
    is_new: bool,
) -> ReceiveAdmission {
    slot.budget(limit.direction).note_wait(now);
    limit.region.count_wait(limit.direction, 0);
    watch::refused(limit.fd, is_new);
    ReceiveAdmission::Refused
}

/// Whether so many bytes are not more than a piece, whatever the rate makes of the smallest one.
#[inline(always)]
pub fn fits(rate: u64, count: usize) -> bool {
    /// Bits of a byte times nanoseconds of a second, by those of a piece.
    const PIECES: u64 = 8_000_000_000 / crate::pacing::controller::PIECE_NS;
    (count as u64).saturating_mul(PIECES) <= rate
}

/// Bytes that have been claimed, and when.
#[derive(Debug)]
pub struct BudgetClaim {
    begin: u64,
    slot: &'static PacingBudgetSlot,
}

impl BudgetClaim {
    /// After the call: what has not moved is given back.
    #[inline(always)]
    pub fn settle(self, limit: &LimitedTransfer, claimed: usize, result: isize) -> isize {
        let moved = result.max(0) as usize;
        if moved != 0 {
            limit.region.count(limit.direction, moved as u64, self.begin);
        }
        if moved < claimed {
            self.refund(limit, claimed - moved);
        }
        result
    }

    #[cold]
    fn refund(&self, limit: &LimitedTransfer, bytes: usize) {
        let rate = limit.rate();
        if rate != 0 {
            self.slot.budget(limit.direction).refund(rate, bytes as u64);
        }
    }
}

/// Claims bytes that are to be sent and waits for them; or an errno. `began`: when the call began, if
/// not now.
#[inline(always)]
pub fn claimed(
    limit: &LimitedTransfer,
    flags: c_int,
    began: Option<u64>,
    bytes: usize,
    peer: Option<SocketEnd>,
) -> Result<BudgetClaim, c_int> {
    let (now, rate) = (clock::now(), limit.rate().max(1));
    let slot = limit.slot(now, peer);
    if turns::is_any()
        && let Some(result) = claimed_before(limit, flags, bytes, now, slot)
    {
        return result;
    }
    let at = slot.budget(limit.direction).claim(now, rate, bytes as u64);
    if at > now {
        return claimed_later(limit, flags, began, bytes, DeferredTransfer { at, now, rate, slot });
    }
    Ok(BudgetClaim { begin: now, slot })
}

/// The same where the descriptor has a turn.
#[cold]
fn claimed_before(
    limit: &LimitedTransfer,
    flags: c_int,
    bytes: usize,
    now: u64,
    slot: &'static PacingBudgetSlot,
) -> Option<Result<BudgetClaim, c_int>> {
    match turns::take(limit, now) {
        PacingTurn::Now(claimed) => {
            let (budget, rate) = (slot.budget(limit.direction), limit.rate().max(1));
            budget.note_wait(now);
            let bytes = bytes as u64;
            if bytes > claimed {
                budget.charge(now, rate, bytes - claimed);
            } else {
                budget.refund(rate, claimed - bytes);
            }
            Some(Ok(BudgetClaim { begin: now, slot }))
        }
        PacingTurn::At(_) if limit.can_be_refused(flags) => {
            refuse(limit, now, slot, false);
            Some(Err(c::EAGAIN))
        }
        _ => None,
    }
}

/// Bytes that may not move yet.
#[derive(Debug)]
struct DeferredTransfer {
    at: u64,
    now: u64,
    rate: u64,
    slot: &'static PacingBudgetSlot,
}

#[cold]
fn claimed_later(
    limit: &LimitedTransfer,
    flags: c_int,
    began: Option<u64>,
    bytes: usize,
    to: DeferredTransfer,
) -> Result<BudgetClaim, c_int> {
    let is_nonblocking = limit.is_nonblocking(flags);
    // A program may take the refusal of a datagram for its loss: a few wait in a buffer, as it were.
    let is_buffered = is_nonblocking && !limit.word.is_stream() && to.at - to.now <= BUFFER_NS;
    if is_buffered {
        return Ok(BudgetClaim { begin: to.now, slot: to.slot });
    }
    if is_nonblocking && limit.can_be_refused(flags) {
        turns::keep(limit, to.at, bytes as u64, to.slot);
        refuse(limit, to.now, to.slot, true);
        return Err(c::EAGAIN);
    }
    // How long a call may block (`SO_SNDTIMEO` of socket(7)), all of its pieces together.
    let (most, from) = match is_nonblocking {
        true => (patience_ns(limit, to.rate), to.now),
        false => match c::send_timeout_ns(limit.fd) {
            0 => (u64::MAX, to.now),
            most => (most, began.unwrap_or(to.now)),
        },
    };
    let waited = limit.wait(to.at, to.now, to.rate, from.saturating_add(most));
    let now = clock::now();
    to.slot.budget(limit.direction).note_wait(now);
    let errno = match waited {
        PacingWaitOutcome::Done => return Ok(BudgetClaim { begin: now, slot: to.slot }),
        PacingWaitOutcome::Interrupted => c::EINTR,
        PacingWaitOutcome::Late => c::EAGAIN,
    };
    BudgetClaim { begin: to.now, slot: to.slot }.refund(limit, bytes);
    if is_nonblocking {
        watch::refused(limit.fd, true);
    }
    Err(errno)
}

/// How long a call that must not block waits for the pieces of others, if it has to: for one of a stream;
/// then it fails, as if the socket were full. A datagram waits as long as for the piece of a slow stream.
fn patience_ns(limit: &LimitedTransfer, rate: u64) -> u64 {
    let bits_ns = u128::from(piece(rate, true)) * 8_000_000_000;
    let one = u64::try_from(bits_ns / u128::from(rate.max(1))).unwrap_or(u64::MAX);
    // What a piece is rounded to, and a clock that is read later.
    let one = one.saturating_add(one / 8);
    if limit.word.is_stream() { one } else { one.max(PATIENCE_NS) }
}

/// A call that sends more than a piece of a stream.
#[cold]
#[inline(never)]
fn send_pieces(
    limit: &LimitedTransfer,
    flags: c_int,
    count: usize,
    peer: Option<SocketEnd>,
    next: &mut dyn FnMut(usize, usize) -> isize,
) -> isize {
    let is_nonblocking = limit.is_nonblocking(flags);
    let (errno, began) = (next::errno(), clock::now());
    let mut sent = 0;
    while sent < count {
        let part = part_of(limit, is_nonblocking, count - sent);
        let claim = match claimed(limit, flags, Some(began), part, peer) {
            Ok(claim) => claim,
            Err(_) if sent > 0 => break,
            Err(errno) => return fail(errno),
        };
        let result = claim.settle(limit, part, next(sent, part));
        if result < 0 && sent == 0 {
            return result;
        }
        sent += result.max(0) as usize;
        if result < part as isize {
            break;
        }
        // One that had to wait for its piece does not wait for another.
        if is_nonblocking && sent < count && !watch::can_be_refused(limit.fd) {
            watch::refused(limit.fd, true);
            break;
        }
    }
    // That a later piece failed is for the next call to say.
    next::set_errno(errno);
    sent as isize
}

/// A call that may receive more than a piece of a stream.
#[cold]
#[inline(never)]
fn receive_pieces(
    limit: &LimitedTransfer,
    flags: c_int,
    count: usize,
    next: &mut dyn FnMut(usize, usize) -> isize,
) -> isize {
    let is_nonblocking = limit.is_nonblocking(flags);
    let errno = next::errno();
    let mut received = 0;
    loop {
        let part = part_of(limit, is_nonblocking, count - received);
        let admitted = admitted(limit, flags, part);
        if matches!(admitted, ReceiveAdmission::Refused) {
            if received == 0 {
                return fail(c::EAGAIN);
            }
            break;
        }
        let result = next(received, part);
        admitted.settle(limit, result, || None);
        if result <= 0 && received == 0 {
            return result;
        }
        received += result.max(0) as usize;
        if result < part as isize || received >= count {
            break;
        }
        if is_nonblocking && !watch::can_be_refused(limit.fd) {
            watch::refused(limit.fd, true);
            break;
        }
        // One that blocks may return what there is, unless it is to wait for all.
        if !is_nonblocking && flags & c::MSG_WAITALL == 0 {
            break;
        }
    }
    next::set_errno(errno);
    received as isize
}

/// The next piece of so many bytes.
fn part_of(limit: &LimitedTransfer, is_nonblocking: bool, rest: usize) -> usize {
    let rate = limit.rate();
    let most = if rate == 0 { u64::MAX } else { piece(rate, is_nonblocking) };
    rest.min(usize::try_from(most).unwrap_or(usize::MAX)).max(1)
}

/// The result of a call that failed.
pub fn fail(errno: c_int) -> isize {
    next::set_errno(errno);
    -1
}

/// Buffers of a call, from a byte on, and no more than so many bytes of them: a copy of some.
#[derive(Debug)]
pub struct IoVecSlice {
    parts: [IoVec; PARTS],
    pub count: usize,
}

impl IoVecSlice {
    /// # Safety
    /// So many buffers are there.
    pub unsafe fn new(parts: *const IoVec, count: usize, from: usize, bytes: usize) -> IoVecSlice {
        let nothing = IoVec { base: core::ptr::null_mut(), length: 0 };
        let mut cut = IoVecSlice { parts: [nothing; PARTS], count: 0 };
        let (mut skip, mut left) = (from, bytes);
        for at in 0..count {
            // SAFETY: the caller's.
            let part = unsafe { *parts.add(at) };
            if skip >= part.length {
                skip -= part.length;
                continue;
            }
            if left == 0 || cut.count == PARTS {
                break;
            }
            let length = (part.length - skip).min(left);
            let base = part.base.cast::<u8>().wrapping_add(skip).cast();
            cut.parts[cut.count] = IoVec { base, length };
            cut.count += 1;
            left -= length;
            skip = 0;
        }
        cut
    }

    /// The buffers.
    pub fn parts(&self) -> *const IoVec {
        self.parts.as_ptr()
    }

    /// A message with these buffers; the rest of it goes with the first byte.
    pub fn message(&self, whole: &SocketMessageHeader, from: usize) -> SocketMessageHeader {
        let mut message = *whole;
        message.parts = self.parts.as_ptr().cast_mut();
        message.parts_count = self.count;
        if from > 0 {
            message.control = core::ptr::null_mut();
            message.control_length = 0;
        }
        message
    }
}

/// Buffers that a copy has room for: as many as a call may have.
const PARTS: usize = 1024;
