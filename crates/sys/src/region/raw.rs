//! A mapped region, as its writers see it. The preload library compiles this file into itself: it
//! uses `core` only.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::record::region::{HEADER_BYTES, RING_HEADER_BYTES, RecordRegionLayout, header, ring};
use super::record::{BYTES, EventRecord};

/// A region of known layout at an address. Everything in it is read and written atomically, so that
/// nothing that another process does to it is undefined here.
#[derive(Debug, Clone, Copy)]
pub struct RecordRegionView {
    /// INVARIANT: the start of a mapping of `layout.bytes()`, aligned to a page, that lives as long
    /// as any copy of this value is used.
    base: *mut u8,
    layout: RecordRegionLayout,
    slots_from: usize,
    sockets_from: usize,
}

impl RecordRegionView {
    /// The region at an address. Its words count as offsets only through [`check`].
    ///
    /// # Safety
    /// `layout.bytes()` from the address on are mapped for reading and writing while any copy of
    /// the result is used; the address is that of a page; the layout is valid by [`check`].
    #[must_use]
    pub const unsafe fn new(base: *mut u8, layout: RecordRegionLayout) -> RecordRegionView {
        RecordRegionView {
            base,
            layout,
            slots_from: layout.slot(0, 0),
            sockets_from: layout.socket(0),
        }
    }

    /// The layout.
    #[must_use]
    #[inline]
    pub const fn layout(&self) -> RecordRegionLayout {
        self.layout
    }

    /// The word [`header::RECORDING`].
    #[must_use]
    #[inline]
    pub fn recording(&self) -> u32 {
        self.half(header::RECORDING).load(Ordering::Relaxed)
    }

    /// The word [`header::PORTS`].
    #[must_use]
    #[inline]
    pub fn ports(&self) -> u64 {
        self.word(header::PORTS).load(Ordering::Relaxed)
    }

    /// The number of a new flow.
    #[must_use]
    pub fn number_flow(&self) -> u32 {
        self.half(header::LAST_FLOW).fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Writes a record to a ring (any number: it is taken modulo the number of rings). False: there
    /// was no room, and it was counted as lost.
    #[inline]
    pub fn push(&self, ring: u32, record: &EventRecord) -> bool {
        let ring = if ring < self.layout.rings { ring } else { ring % self.layout.rings };
        let Some(position) = self.take(ring) else {
            self.lose(ring, record.time);
            return false;
        };
        let slot = self.slot(ring, position);
        let [time, rest @ ..] = pack(record);
        for (index, word) in rest.into_iter().enumerate() {
            self.word(slot + 8 + index * 8).store(word, Ordering::Relaxed);
        }
        // The reader has passed over this slot, and has counted it as lost.
        let tail = self.word(ring_at(ring) + ring::TAIL).load(Ordering::Relaxed);
        if tail.wrapping_sub(position).cast_signed() > 0 {
            return false;
        }
        self.word(slot).store(time.max(1), Ordering::Release);
        true
    }

    /// Takes a slot of a ring. The tries are bounded, because what another process writes to the
    /// head is not.
    #[inline]
    fn take(&self, ring: u32) -> Option<u64> {
        let head = self.word(ring_at(ring) + ring::HEAD);
        let tail = self.word(ring_at(ring) + ring::TAIL);
        let mut position = head.load(Ordering::Relaxed);
        for _ in 0..TRIES_MAX {
            let used = position.wrapping_sub(tail.load(Ordering::Acquire)).cast_signed();
            if used >= i64::from(self.layout.slots) {
                return None;
            }
            if used < 0 {
                // The head that was read is older than the tail.
                position = head.load(Ordering::Relaxed);
                continue;
            }
            let next = position.wrapping_add(1);
            match head.compare_exchange_weak(position, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(position),
                Err(now) => position = now,
            }
        }
        None
    }

    /// Counts an event of this time as lost.
    #[cold]
    pub fn lose(&self, ring: u32, time_ns: u64) {
        let at = ring_at(if ring < self.layout.rings { ring } else { ring % self.layout.rings });
        self.word(at + ring::LOST_EARLIEST).fetch_max(!time_ns, Ordering::Relaxed);
        self.word(at + ring::LOST_LATEST).fetch_max(time_ns, Ordering::Relaxed);
        self.word(at + ring::LOST).fetch_add(1, Ordering::Release);
    }

    /// The offset of the slot of a position.
    #[inline]
    pub(super) fn slot(&self, ring: u32, position: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of slots")]
        let slot = (position & u64::from(self.layout.slots - 1)) as usize;
        self.slots_from + (ring as usize * self.layout.slots as usize + slot) * BYTES
    }

    /// The offset of an entry of the table of sockets (any number: it is taken modulo their
    /// number, of which there is at least one).
    #[inline]
    pub(super) fn socket(&self, entry: u32) -> usize {
        use super::record::region::SOCKET_BYTES;
        self.sockets_from + (entry & (self.layout.sockets - 1)) as usize * SOCKET_BYTES
    }

    /// The word of eight bytes at an offset: that of a field by the layout.
    #[inline]
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= self.layout.bytes());
        // SAFETY: offsets are those of the layout with bounded numbers, hence within the mapping.
        let field = unsafe { self.base.add(offset) };
        // SAFETY: mapped, aligned, and only ever used atomically, here and in other processes.
        unsafe { AtomicU64::from_ptr(field.cast()) }
    }

    /// The word of four bytes at an offset: that of a field by the layout.
    #[inline]
    pub(super) fn half(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= self.layout.bytes());
        // SAFETY: as in `word`.
        let field = unsafe { self.base.add(offset) };
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(field.cast()) }
    }

    /// The same of two bytes.
    #[inline]
    pub(super) fn quarter(&self, offset: usize) -> &AtomicU16 {
        debug_assert!(offset.is_multiple_of(2) && offset + 2 <= self.layout.bytes());
        // SAFETY: as in `word`.
        let field = unsafe { self.base.add(offset) };
        // SAFETY: as in `word`.
        unsafe { AtomicU16::from_ptr(field.cast()) }
    }

    /// The same of one.
    #[inline]
    pub(super) fn byte(&self, offset: usize) -> &AtomicU8 {
        debug_assert!(offset < self.layout.bytes());
        // SAFETY: as in `word`.
        let field = unsafe { self.base.add(offset) };
        // SAFETY: as in `word`.
        unsafe { AtomicU8::from_ptr(field) }
    }
}

// SAFETY: everything is accessed atomically, and the mapping belongs to no thread.
unsafe impl Send for RecordRegionView {}
// SAFETY: as for `Send`.
unsafe impl Sync for RecordRegionView {}

/// Whether a region of so many bytes can have this layout: there is a ring, slots and entries are
/// powers of two, all numbers are within bounds, and everything is within the bytes.
#[must_use]
pub const fn check(layout: &RecordRegionLayout, bytes: u64) -> bool {
    layout.rings >= 1
        && layout.rings <= RINGS_MAX
        && layout.slots.is_power_of_two()
        && layout.slots <= SLOTS_MAX
        && (layout.sockets == 0 || layout.sockets.is_power_of_two())
        && layout.sockets <= SOCKETS_MAX
        && layout.bytes() as u64 <= bytes
}

/// The offset of a ring's header.
#[inline]
pub(super) const fn ring_at(ring: u32) -> usize {
    HEADER_BYTES + ring as usize * RING_HEADER_BYTES
}

/// The words of a slot.
#[inline]
fn pack(record: &EventRecord) -> [u64; 4] {
    let [a, b, c, d] = record.args.map(u64::from);
    let kind = u64::from(record.kind) | u64::from(record.flags) << 8;
    let kind = kind | u64::from(record.extra) << 16 | u64::from(record.flow) << 32;
    [record.time, kind, a | b << 32, c | d << 32]
}

/// The record of the words of a slot.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "fields are taken out of the words")]
#[allow(dead_code, reason = "writers do not read records")]
pub(super) fn unpack([time, kind, ab, cd]: [u64; 4]) -> EventRecord {
    EventRecord {
        time,
        kind: kind as u8,
        flags: (kind >> 8) as u8,
        extra: (kind >> 16) as u16,
        flow: (kind >> 32) as u32,
        args: [ab as u32, (ab >> 32) as u32, cd as u32, (cd >> 32) as u32],
    }
}

/// Tries to take a slot before an event counts as lost: far more than writers can be in the way.
const TRIES_MAX: u32 = 4096;
const RINGS_MAX: u32 = 1 << 10;
const SLOTS_MAX: u32 = 1 << 24;
const SOCKETS_MAX: u32 = 1 << 20;
