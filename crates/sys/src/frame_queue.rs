//! A bounded queue of frames in memory that two processes share: one puts frames in and never
//! waits, the other takes them out. Source: memfd_create(2), mmap(2), `F_ADD_SEALS` in fcntl(2).
//!
//! The memory begins with words at fixed places, each on a cache line of its own side, and a table
//! of shares by port, by which the taker asks the giver to discard early. The ring follows: frames
//! are contiguous, each after a header of 32 bytes, all aligned to 16; what is left before the end
//! and too short for the next frame is filled by a gap. Positions count bytes and never wrap.
//!
//! Each side keeps its own position in private memory and only publishes it. A position that the
//! other side publishes is used only if it lies where it can be; so the other process can spoil
//! frames, but nothing else.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::packet::{FRAME_BYTES_MAX, TransmitFrame, VNET_HEADER_BYTES};

/// The shared memory.
#[derive(Debug)]
struct FrameQueueMemory {
    /// INVARIANT: the start of a live mapping of `CONTROL_BYTES + capacity` bytes until drop.
    base: NonNull<u8>,
    /// Bytes of the ring; a multiple of [`ALIGN`].
    capacity: usize,
}

/// The side that puts frames in.
#[derive(Debug)]
pub struct FrameQueueProducer {
    memory: FrameQueueMemory,
    head: u64,
    /// What was put in.
    given: PacketByteCount,
}

/// The side that takes frames out.
#[derive(Debug)]
pub struct FrameQueueConsumer {
    memory: FrameQueueMemory,
    tail: u64,
    taken: PacketByteCount,
}

/// So much of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketByteCount {
    /// Packets: a frame may stand for several.
    pub packets: u64,
    /// Bytes of frames.
    pub bytes: u64,
}

impl FrameQueueProducer {
    /// A new queue with room for so many bytes of frames at least, and for the longest frame. The
    /// descriptor is for the taker. No process can make the memory shorter or longer.
    ///
    /// # Errors
    /// What memfd_create(2) and mmap(2) say.
    pub fn create(bytes: usize) -> io::Result<(FrameQueueProducer, OwnedFd)> {
        let capacity = bytes.max(2 * (FRAME_BYTES_MAX + HEADER_BYTES)).next_multiple_of(ALIGN);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("windtunnel-frames", flags)?;
        rustix::fs::ftruncate(&file, (CONTROL_BYTES + capacity) as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = FrameQueueMemory::map(&file, capacity)?;
        Ok((FrameQueueProducer { memory, head: 0, given: PacketByteCount::default() }, file))
    }

    /// What was not taken yet.
    #[must_use]
    pub fn queued(&self) -> PacketByteCount {
        let left =
            |given: u64, at| given.saturating_sub(self.memory.long(at).load(Ordering::Acquire));
        PacketByteCount {
            packets: left(self.given.packets, TAKEN_PACKETS),
            bytes: left(self.given.bytes, TAKEN_BYTES),
        }
    }

    /// Bytes of the ring that are in use, with headers and gaps.
    fn used(&self) -> u64 {
        // Beyond what can be there: the taker has spoiled its position, and gets no more frames.
        let used = self.head.wrapping_sub(self.memory.long(TAIL).load(Ordering::Acquire));
        if used > self.memory.capacity as u64 { self.memory.capacity as u64 } else { used }
    }

    /// Puts a frame in that stands for so many packets. False: there is no room, or it is longer
    /// than any frame may be.
    #[must_use]
    pub fn give(&mut self, outgoing: &TransmitFrame<'_>, packets: u32) -> bool {
        let length = (HEADER_BYTES + outgoing.frame.len()).next_multiple_of(ALIGN);
        let offset = self.memory.offset(self.head);
        let to_end = self.memory.capacity - offset;
        let gap = if length > to_end { to_end } else { 0 };
        let free = self.memory.capacity as u64 - self.used();
        if outgoing.frame.len() > FRAME_BYTES_MAX || (gap + length) as u64 > free {
            return false;
        }
        if gap > 0 {
            self.memory.write_gap(offset, gap);
        }
        self.memory.write_frame(if gap > 0 { 0 } else { offset }, length, outgoing, packets);
        self.head += (gap + length) as u64;
        self.given.packets += u64::from(packets);
        self.given.bytes += outgoing.frame.len() as u64;
        self.memory.long(GIVEN_PACKETS).store(self.given.packets, Ordering::Relaxed);
        self.memory.long(HEAD).store(self.head, Ordering::Release);
        true
    }

    /// What the taker has published of itself.
    #[must_use]
    pub fn account(&self) -> FrameConsumerStatistics {
        FrameConsumerStatistics {
            computed_ns: self.memory.long(COMPUTED).load(Ordering::Relaxed),
            overflowed: self.memory.long(OVERFLOWED).load(Ordering::Relaxed),
        }
    }

    /// Whether the taker sleeps and is to be woken: once for each time it says so.
    #[must_use]
    pub fn must_wake(&self) -> bool {
        // Orders the new head before the look at the flag, as the taker orders its flag before
        // its look at the head.
        fence(Ordering::SeqCst);
        let sleeps = self.memory.half(SLEEPS);
        sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::Relaxed) != 0
    }

    /// The share of datagrams to a UDP port that the taker wants, of 65536; `None`: all.
    #[must_use]
    pub fn wanted(&self, port: u16) -> Option<u32> {
        let count = self.memory.half(WANTED).load(Ordering::Relaxed) as usize;
        let entries = (0..count.min(WANTED_MAX)).map(|index| self.memory.half(entry(index)));
        let mut entries = entries.map(|entry| entry.load(Ordering::Relaxed));
        entries.find(|entry| entry >> 16 == u32::from(port)).map(|entry| (entry & 0xffff) + 1)
    }
}

impl FrameQueueConsumer {
    /// The other side of the queue in this file.
    ///
    /// # Errors
    /// `InvalidData` if the file cannot be one; what fstat(2) and mmap(2) say.
    pub fn open(file: impl AsFd) -> io::Result<FrameQueueConsumer> {
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        let capacity = bytes.saturating_sub(CONTROL_BYTES);
        if capacity == 0 || !capacity.is_multiple_of(ALIGN) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no queue of frames"));
        }
        Ok(FrameQueueConsumer {
            memory: FrameQueueMemory::map(&file, capacity)?,
            tail: 0,
            taken: PacketByteCount::default(),
        })
    }

    /// The frames that are there, the oldest first, at most as many as `batch` holds, and how many
    /// these are. They stay in the queue until [`FrameQueueConsumer::release`].
    pub fn look<'a>(&'a mut self, batch: &mut [TransmitFrame<'a>]) -> PeekedFrames {
        let head = self.memory.long(HEAD).load(Ordering::Acquire);
        let mut looked =
            PeekedFrames { frames: 0, amount: PacketByteCount::default(), until: self.tail };
        while looked.frames < batch.len() {
            let here = looked.until;
            let left = head.wrapping_sub(here);
            if left == 0 || left > self.memory.capacity as u64 {
                break;
            }
            let offset = self.memory.offset(here);
            let [length, interface, _, packets] = self.memory.read_header(offset);
            let length = length as usize;
            let fits = length <= self.memory.capacity - offset && length as u64 <= left;
            if length < ALIGN || !length.is_multiple_of(ALIGN) || !fits {
                break;
            }
            looked.until += length as u64;
            if interface == GAP {
                continue;
            }
            let Some((vnet_header, frame)) = self.memory.read_frame(offset, length) else { break };
            batch[looked.frames] = TransmitFrame { interface, vnet_header, frame };
            looked.frames += 1;
            looked.amount.packets += u64::from(packets);
            looked.amount.bytes += frame.len() as u64;
        }
        looked
    }

    /// Gives back the room of frames that were looked at.
    pub fn release(&mut self, looked: PeekedFrames) {
        self.tail = looked.until;
        self.taken.packets = self.taken.packets.wrapping_add(looked.amount.packets);
        self.taken.bytes += looked.amount.bytes;
        self.memory.long(TAKEN_PACKETS).store(self.taken.packets, Ordering::Release);
        self.memory.long(TAKEN_BYTES).store(self.taken.bytes, Ordering::Release);
        self.memory.long(TAIL).store(self.tail, Ordering::Release);
    }

    /// Packets that are there now.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        let given = self.memory.long(GIVEN_PACKETS).load(Ordering::Relaxed);
        given.saturating_sub(self.taken.packets)
    }

    /// Whether there is nothing to take; then the giver will say when there is
    /// ([`FrameQueueProducer::must_wake`]).
    #[must_use]
    pub fn begin_sleep(&self) -> bool {
        self.memory.half(SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_empty = self.memory.long(HEAD).load(Ordering::Acquire) == self.tail;
        if !is_empty {
            self.memory.half(SLEEPS).store(0, Ordering::Relaxed);
        }
        is_empty
    }

    /// Publishes what the giver cannot know.
    pub fn publish(&self, account: FrameConsumerStatistics) {
        self.memory.long(COMPUTED).store(account.computed_ns, Ordering::Relaxed);
        self.memory.long(OVERFLOWED).store(account.overflowed, Ordering::Relaxed);
    }

    /// Asks that of datagrams to these UDP ports only a share comes, of 65536, at least one; beyond
    /// [`WANTED_MAX`] ports the rest comes whole.
    pub fn want(&self, shares: impl Iterator<Item = (u16, u32)>) {
        let mut count = 0;
        for (port, share) in shares.take(WANTED_MAX) {
            let low = share.clamp(1, 1 << 16) - 1;
            self.memory.half(entry(count)).store(u32::from(port) << 16 | low, Ordering::Relaxed);
            count += 1;
        }
        self.memory.half(WANTED).store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
    }
}

/// What a taker does with frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameConsumerStatistics {
    /// Processor time that it has used, in nanoseconds.
    pub computed_ns: u64,
    /// Datagrams that sockets had no room for.
    pub overflowed: u64,
}

/// Frames that were looked at.
#[derive(Debug)]
#[must_use = "their room is to be given back"]
pub struct PeekedFrames {
    /// How many.
    pub frames: usize,
    amount: PacketByteCount,
    until: u64,
}

impl FrameQueueMemory {
    fn map(file: impl AsFd, capacity: usize) -> io::Result<FrameQueueMemory> {
        let length = CONTROL_BYTES + capacity;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)
        }?;
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        Ok(FrameQueueMemory { base, capacity })
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= CONTROL_BYTES && at.is_multiple_of(8));
        // SAFETY: the control words are within the mapping.
        let word = unsafe { self.base.add(at) };
        // SAFETY: mapped while `self` lives, aligned, and only used atomically.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    fn half(&self, at: usize) -> &AtomicU32 {
        debug_assert!(at + 4 <= CONTROL_BYTES && at.is_multiple_of(4));
        // SAFETY: as for `long`.
        let word = unsafe { self.base.add(at) };
        // SAFETY: as for `long`.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    /// Where a position is in the ring.
    fn offset(&self, position: u64) -> usize {
        usize::try_from(position % self.capacity as u64).expect("below the capacity")
    }

    /// The bytes of the ring from `offset` on, `length` of which are in it.
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.capacity && length <= self.capacity - offset);
        // SAFETY: just checked to be within the mapping.
        unsafe { self.base.as_ptr().add(CONTROL_BYTES + offset) }
    }

    fn write_gap(&self, offset: usize, length: usize) {
        self.write_header(offset, length, [GAP, 0, 0]);
    }

    fn write_header(&self, offset: usize, length: usize, [interface, frame, packets]: [u32; 3]) {
        let length = u32::try_from(length).expect("rings are shorter than 4 GiB");
        let words = [length, interface, frame, packets];
        let to = self.at(offset, size_of_val(&words)).cast::<u32>();
        // SAFETY: within the ring, aligned to 16, and the taker does not read there until the head
        // is published behind it.
        unsafe { ptr::copy_nonoverlapping(words.as_ptr(), to, words.len()) }
    }

    fn write_frame(
        &self,
        offset: usize,
        length: usize,
        outgoing: &TransmitFrame<'_>,
        packets: u32,
    ) {
        let bytes = u32::try_from(outgoing.frame.len()).expect("checked to be a frame's length");
        self.write_header(offset, length, [outgoing.interface, bytes, packets]);
        let (vnet, frame) = (outgoing.vnet_header, outgoing.frame);
        let to_vnet = self.at(offset + VNET_AT, VNET_HEADER_BYTES);
        let to_frame = self.at(offset + HEADER_BYTES, frame.len());
        // SAFETY: within the ring, in room that is free, which the taker does not read until the
        // head is published behind it; what is copied is not in the ring.
        unsafe { ptr::copy_nonoverlapping(vnet.as_ptr(), to_vnet, VNET_HEADER_BYTES) };
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(frame.as_ptr(), to_frame, frame.len()) };
    }

    /// The length with the header, the interface, bytes of the frame, packets.
    fn read_header(&self, offset: usize) -> [u32; 4] {
        let from = self.at(offset, size_of::<[u32; 4]>()).cast::<[u32; 4]>();
        // SAFETY: within the ring, aligned to 16, and the giver does not write there until the
        // tail is published behind it.
        unsafe { from.read() }
    }

    /// What lies behind a header of a frame of so many bytes with it.
    fn read_frame(
        &self,
        offset: usize,
        length: usize,
    ) -> Option<(&[u8; VNET_HEADER_BYTES], &[u8])> {
        if length < HEADER_BYTES {
            return None;
        }
        let bytes = self.read_header(offset)[2] as usize;
        let vnet = self.at(offset + VNET_AT, VNET_HEADER_BYTES).cast::<[u8; VNET_HEADER_BYTES]>();
        if bytes > length - HEADER_BYTES {
            return None;
        }
        let frame = self.at(offset + HEADER_BYTES, bytes);
        // SAFETY: within the ring. The slices live as long as the taker is borrowed: it publishes
        // its tail only afterwards, and until then the giver does not write there.
        let vnet = unsafe { &*vnet };
        // SAFETY: as above.
        Some((vnet, unsafe { std::slice::from_raw_parts(frame, bytes) }))
    }
}

// SAFETY: the mapping belongs to no thread; each side has one value that is used by one thread at
// a time, and the words that both use are atomic.
unsafe impl Send for FrameQueueMemory {}

impl Drop for FrameQueueMemory {
    fn drop(&mut self) {
        let length = CONTROL_BYTES + self.capacity;
        // SAFETY: the mapping was made with this length, and nothing that refers to it outlives
        // the value. An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), length) };
    }
}

/// The most UDP ports of which a share can be asked.
pub const WANTED_MAX: usize = 64;

const ALIGN: usize = 16;
/// Length, interface, bytes of the frame and packets as words of 32 bits; the virtio-net header.
const HEADER_BYTES: usize = 32;
const VNET_AT: usize = 16;
/// In place of an interface: there is no frame.
const GAP: u32 = u32::MAX;

const CONTROL_BYTES: usize = 4096;
const HEAD: usize = 0;
const GIVEN_PACKETS: usize = 8;
const TAIL: usize = 64;
const TAKEN_PACKETS: usize = 72;
const TAKEN_BYTES: usize = 80;
const COMPUTED: usize = 88;
const OVERFLOWED: usize = 96;
const SLEEPS: usize = 128;
const WANTED: usize = 192;

/// A port in the high half, its share less one in the low half.
const fn entry(index: usize) -> usize {
    256 + index * 4
}

#[cfg(test)]
mod tests;
