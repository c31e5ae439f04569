//! The contract of whatever says when bytes may move: the progress expression of a limit.

/// A controller of one direction, shared by all that move bytes against it.
///
/// Another progress expression is another implementation: for example one that counts messages in
/// place of bytes, or gives a burst of its own. What holds of all:
///
/// - Time is an argument, in nanoseconds of one clock that all users share and that never goes
///   backwards. Nothing here reads a clock or waits.
/// - `rate_bps` (whole bits a second, not 0) is an argument, so that it can change at any time;
///   after a change [`rescale`](PacingController::rescale) is called once.
/// - All methods may be called at once by any number of threads and processes, also in signal
///   handlers: the state is atomic words in memory that processes share, without locks or
///   pointers, and every loop ends as soon as others let it.
/// - A process may end at any point between two calls. What it has claimed then stays claimed.
pub trait PacingController {
    /// Claims so many bytes, which will move at once: when they may. The caller waits until then.
    /// Of claims that are made one after the other, the later never starts before the earlier.
    fn claim(&self, now_ns: u64, rate_bps: u64, bytes: u64) -> u64;

    /// Gives back bytes that were claimed and have not moved.
    fn refund(&self, rate_bps: u64, bytes: u64);

    /// Bytes have moved that were not claimed.
    fn charge(&self, now_ns: u64, rate_bps: u64, bytes: u64) {
        self.claim(now_ns, rate_bps, bytes);
    }

    /// From when on bytes may move: for what cannot be claimed, because its size is not known
    /// before.
    fn free_at_ns(&self) -> u64;

    /// A call has waited until now, or is refused: its program has more to move, and what it cannot claim
    /// in time as it is kept from running is lent to it.
    fn note_wait(&self, now_ns: u64);

    /// The rate has changed: what is claimed and not due yet takes as much more or less time.
    fn rescale(&self, now_ns: u64, old_bps: u64, new_bps: u64);
}

/// How a time that was claimed at one rate moves when the rate changes.
#[must_use]
pub fn rescaled(at_ns: u64, now_ns: u64, old_bps: u64, new_bps: u64) -> u64 {
    let ahead = u128::from(at_ns.saturating_sub(now_ns));
    let scaled = ahead * u128::from(old_bps) / u128::from(new_bps.max(1));
    if ahead == 0 { at_ns } else { now_ns.saturating_add(saturate(scaled)) }
}

/// The most bytes of a stream that move at once. What is sent in one call on a socket that blocks
/// is cut into such pieces: the bytes of [`PIECE_NS`], and at least a segment of TCP. A call on a
/// socket that must not block moves one piece, of which the wait of the next caller follows: hence
/// no more than the bytes of [`PATIENCE_NS`], and at least one.
#[must_use]
pub fn piece(rate_bps: u64, is_nonblocking: bool) -> u64 {
    let of = |ns: u64| saturate(u128::from(rate_bps) * u128::from(ns) / BITS_NS);
    let least = if is_nonblocking { of(PATIENCE_NS).clamp(1, SEGMENT) } else { SEGMENT };
    of(PIECE_NS).max(least)
}

pub(crate) fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// The time of a piece.
pub const PIECE_NS: u64 = 5_000_000;
/// The most that a call on a socket that must not block waits for one piece of another, where a
/// byte takes less.
pub const PATIENCE_NS: u64 = 100_000_000;
/// What TCP carries in one packet of 1500 bytes.
const SEGMENT: u64 = 1448;
/// Bits of a byte times nanoseconds of a second.
pub(crate) const BITS_NS: u128 = BITS_NS_NARROW as u128;
pub(crate) const BITS_NS_NARROW: u64 = 8_000_000_000;
