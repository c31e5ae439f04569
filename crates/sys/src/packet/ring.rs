//! The mapped ring of arrived frames.
//!
//! The ring's memory is shared with the kernel, slot by slot. The first word of a slot, its
//! status, says which side owns it: the kernel fills a slot whose status is `TP_STATUS_KERNEL` and
//! sets `TP_STATUS_USER` last; from then on it does not touch the slot until we write
//! `TP_STATUS_KERNEL` back. Reading the status acquires what the kernel wrote before, writing it
//! releases what we read. The kernel fills slots strictly in order, and so we read them in order.
//!
//! A slot is laid out as `tpacket2_hdr`, `sockaddr_ll`, padding, `virtio_net_hdr`, frame; the
//! header's `tp_mac` is the offset of the frame.

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::VNET_HEADER_BYTES;
use crate::ffi::set_option;

/// The fewest slots that a ring can have, and the granularity of its size: one block's worth.
pub const SLOTS_MIN: usize = 15;

/// The longest frame that a slot holds; a longer one is cut and marked. Room for a GSO packet of
/// 64 KiB with its link header and a good deal of encapsulation.
pub const FRAME_BYTES_MAX: usize = SLOT_BYTES - ETHERNET_OFFSET;

/// The frames that the kernel has delivered and that were not given back yet.
#[derive(Debug)]
pub struct PacketReceiveRing {
    /// INVARIANT: the start of a live mapping of `blocks * BLOCK_BYTES` bytes until drop.
    base: NonNull<u8>,
    slots: usize,
    /// The slot that the kernel fills next.
    cursor: Cell<usize>,
    /// INVARIANT: `held[i]` exactly while a `ReceiveRingFrame` of index `i` exists (or was leaked), so that
    /// no two `ReceiveRingFrame`s share memory.
    held: Box<[Cell<bool>]>,
}

/// One arrived frame. Its memory goes back to the kernel on drop.
#[derive(Debug)]
pub struct ReceiveRingFrame<'ring> {
    ring: &'ring PacketReceiveRing,
    index: usize,
    header: libc::tpacket2_hdr,
    /// The offset of the frame, and its length; INVARIANT: within the slot.
    frame: (usize, usize),
}

impl PacketReceiveRing {
    /// Makes the socket's ring and maps it, halving the number of slots on `ENOMEM`.
    pub(super) fn map(socket: BorrowedFd<'_>, slots: usize) -> io::Result<PacketReceiveRing> {
        let mut blocks = slots.div_ceil(SLOTS_MIN).max(1);
        loop {
            match PacketReceiveRing::map_blocks(socket, blocks) {
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && blocks > 1 => {
                    blocks /= 2;
                }
                result => return result,
            }
        }
    }

    fn map_blocks(socket: BorrowedFd<'_>, blocks: usize) -> io::Result<PacketReceiveRing> {
        request_ring(socket, blocks)?;
        let length = blocks * BLOCK_BYTES;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, socket, 0)
        };
        let mapped = match mapped {
            Ok(mapped) => mapped,
            Err(error) => {
                // Otherwise the next, smaller try would meet a ring that exists already.
                request_ring(socket, 0)?;
                return Err(error.into());
            }
        };
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        let slots = blocks * SLOTS_MIN;
        let held = (0..slots).map(|_| Cell::new(false)).collect();
        Ok(PacketReceiveRing { base, slots, cursor: Cell::new(0), held })
    }

    /// How many slots the ring has.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The oldest frame not taken yet, if there is one. Earlier slots may still be held; a slot
    /// that is held while the ring comes round to it makes the kernel drop (and count) frames.
    pub fn next(&self) -> Option<ReceiveRingFrame<'_>> {
        let index = self.cursor.get();
        if self.held[index].get() || self.status(index).load(Ordering::Acquire) & USER == 0 {
            return None;
        }
        let start = self.slot(index);
        // SAFETY: the kernel has handed over the slot, which begins with this header; no other
        // `ReceiveRingFrame` holds it.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        self.cursor.set((index + 1) % self.slots);
        self.held[index].set(true);
        Some(ReceiveRingFrame::new(self, index, header))
    }

    /// The status word of a slot.
    fn status(&self, index: usize) -> &AtomicU32 {
        let word = self.slot(index).cast::<u32>();
        // SAFETY: the word is mapped while `self` lives, aligned because slots are multiples of
        // 16 bytes, and both sides treat it as one atomic word.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }
    }

    /// The start of a slot.
    fn slot(&self, index: usize) -> NonNull<u8> {
        assert!(index < self.slots, "a slot's index is below the ring's size");
        let offset = index / SLOTS_MIN * BLOCK_BYTES + index % SLOTS_MIN * SLOT_BYTES;
        // SAFETY: the offset of an index below `slots` is within the mapping.
        unsafe { self.base.add(offset) }
    }
}

// SAFETY: the mapping belongs to the ring alone and to no thread in particular.
unsafe impl Send for PacketReceiveRing {}

impl Drop for PacketReceiveRing {
    fn drop(&mut self) {
        let length = self.slots / SLOTS_MIN * BLOCK_BYTES;
        // SAFETY: the mapping was made with this length, and no `ReceiveRingFrame` outlives the ring.
        // An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), length) };
    }
}

impl<'ring> ReceiveRingFrame<'ring> {
    fn new(
        ring: &'ring PacketReceiveRing,
        index: usize,
        header: libc::tpacket2_hdr,
    ) -> ReceiveRingFrame<'ring> {
        // The kernel keeps to these bounds; checking them makes the slices below sound whatever
        // it writes.
        let offset = usize::from(header.tp_mac).clamp(FRAME_OFFSET, SLOT_BYTES);
        let length = usize::try_from(header.tp_snaplen).unwrap_or(0).min(SLOT_BYTES - offset);
        let mut slot = ReceiveRingFrame { ring, index, header, frame: (offset, length) };
        if slot.truncated() {
            // The kernel writes no virtio-net header for a cut frame: what is there is old.
            slot.parts_mut().0.fill(0);
        }
        slot
    }

    /// The index of the interface on which the frame arrived.
    pub fn interface(&self) -> u32 {
        u32::try_from(self.address().sll_ifindex).unwrap_or(0)
    }

    /// When the kernel took the frame in, in nanoseconds of `CLOCK_REALTIME`.
    pub fn arrival_ns(&self) -> u64 {
        u64::from(self.header.tp_sec) * 1_000_000_000 + u64::from(self.header.tp_nsec)
    }

    /// Whether the frame was longer than [`FRAME_BYTES_MAX`] and its end is missing. Its
    /// virtio-net header is then all zero.
    pub fn truncated(&self) -> bool {
        self.header.tp_snaplen < self.header.tp_len
    }

    /// The frame's whole length in bytes, also where its end is missing.
    pub fn original_bytes(&self) -> u32 {
        self.header.tp_len
    }

    /// The 802.1Q tag control information that the kernel took out of the frame, if it did.
    pub fn vlan_tag(&self) -> Option<u16> {
        (self.header.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then_some(self.header.tp_vlan_tci)
    }

    /// The virtio-net header.
    pub fn vnet_header(&self) -> &[u8; VNET_HEADER_BYTES] {
        let start = self.start(self.frame.0 - VNET_HEADER_BYTES);
        // SAFETY: the bytes before the frame are within the slot, which is ours until drop.
        unsafe { start.cast().as_ref() }
    }

    /// The frame, from its Ethernet header on.
    pub fn frame(&self) -> &[u8] {
        let start = self.start(self.frame.0);
        // SAFETY: offset and length are within the slot, which is ours until drop.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.frame.1) }
    }

    /// The virtio-net header and the frame as one run of bytes, to change in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.start(self.frame.0 - VNET_HEADER_BYTES);
        let length = VNET_HEADER_BYTES + self.frame.1;
        // SAFETY: the bytes are within the slot, which is ours alone until drop.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
    }

    /// The virtio-net header and the frame, to change in place.
    pub fn parts_mut(&mut self) -> (&mut [u8; VNET_HEADER_BYTES], &mut [u8]) {
        self.bytes_mut()
            .split_first_chunk_mut()
            .expect("the run of bytes begins with the whole header")
    }

    /// Gives the slot back to the kernel, as dropping it does.
    pub fn release(self) {}

    /// A copy of the link-layer address that follows the slot's header.
    fn address(&self) -> libc::sockaddr_ll {
        let start = self.start(ADDRESS_OFFSET).cast::<libc::sockaddr_ll>();
        // SAFETY: the kernel has written the address here, at an aligned offset of the slot.
        unsafe { start.read() }
    }

    fn start(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: every offset used is a constant or was bounded in `new`, within the slot.
        unsafe { self.ring.slot(self.index).add(offset) }
    }
}

impl Drop for ReceiveRingFrame<'_> {
    fn drop(&mut self) {
        self.ring.status(self.index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.held[self.index].set(false);
    }
}

/// Asks the kernel for a ring of so many blocks; none takes the ring away.
fn request_ring(socket: BorrowedFd<'_>, blocks: usize) -> io::Result<()> {
    let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let number = |n: usize| libc::c_uint::try_from(n).map_err(invalid);
    let request = libc::tpacket_req {
        tp_block_size: number(if blocks == 0 { 0 } else { BLOCK_BYTES })?,
        tp_block_nr: number(blocks)?,
        tp_frame_size: number(if blocks == 0 { 0 } else { SLOT_BYTES })?,
        tp_frame_nr: number(blocks * SLOTS_MIN)?,
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
}

/// A block is what the kernel allocates in one piece, rounded up to a power of two: this is one.
const BLOCK_BYTES: usize = 1 << 20;

/// As many equal slots as hold 64 KiB and headers fit a block; a multiple of the alignment.
const SLOT_BYTES: usize = BLOCK_BYTES / SLOTS_MIN / ALIGNMENT * ALIGNMENT;

/// `TPACKET_ALIGNMENT` of linux/if_packet.h.
const ALIGNMENT: usize = 16;

/// `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`.
const ADDRESS_OFFSET: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(ALIGNMENT);

/// The least offset of a frame: after the header, the address and the virtio-net header.
const FRAME_OFFSET: usize = ADDRESS_OFFSET + size_of::<libc::sockaddr_ll>() + VNET_HEADER_BYTES;

/// Where the kernel puts an Ethernet frame (tpacket_rcv): it aligns what follows the Ethernet
/// header, for which it leaves 16 bytes, and puts the virtio-net header in after that.
const ETHERNET_OFFSET: usize = (ADDRESS_OFFSET + size_of::<libc::sockaddr_ll>() + 16)
    .next_multiple_of(ALIGNMENT)
    + VNET_HEADER_BYTES
    - 14;

const USER: u32 = libc::TP_STATUS_USER;

const _: () = assert!(BLOCK_BYTES / SLOT_BYTES == SLOTS_MIN, "the kernel derives the same number");
const _: () = assert!(FRAME_BYTES_MAX >= 65536 + 14 + 128, "a GSO packet fits a slot");
