//! Where packet bytes live: buffers of a few sizes, lent out and given back, so that a running
//! engine allocates nothing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use crate::packet::PacketDescriptor;

/// The bytes of one frame, in a buffer that belongs to the engine: give it back with
/// [`Engine::recycle`](crate::Engine::recycle) when it has been sent.
#[derive(Debug)]
pub struct PacketBuf {
    bytes: Box<[u8]>,
    /// INVARIANT: at most `bytes.len()`.
    len: usize,
}

impl PacketBuf {
    /// Takes the bytes away; what stays is not a buffer.
    pub(crate) fn take(&mut self) -> Self {
        core::mem::replace(self, PacketBuf { bytes: Box::default(), len: 0 })
    }

    /// Shortens the frame.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The memory that it counts as, whatever the frame's length.
    pub(crate) fn capacity(&self) -> u64 {
        charge(self.bytes.len())
    }
}

impl Deref for PacketBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for PacketBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

/// The largest frame that fits a buffer: a 64 KiB IP packet with its Ethernet header, and some
/// room.
pub(crate) const FRAME_LEN_MAX: usize = 66 * 1024;

/// Small packets (acknowledgements, calls, games), kept close together so that many of them fit the
/// caches; ordinary packets; jumbo frames and short trains; long trains.
const CLASSES: [usize; 4] = [256, ORDINARY, 16 * 1024, FRAME_LEN_MAX];

const ORDINARY: usize = 2 * 1024;

/// The free lists, and the account of what is lent.
#[derive(Debug)]
pub(crate) struct PacketBufferPool {
    free: [Vec<Box<[u8]>>; CLASSES.len()],
    /// Where packets have lived.
    #[expect(clippy::vec_box, reason = "the boxes themselves are lent out")]
    vacant: Vec<Box<PacketDescriptor>>,
    /// What the buffers that are lent out count as.
    held: u64,
    limit: u64,
}

impl PacketBufferPool {
    pub(crate) fn new(limit: u64) -> Self {
        let free = [const { Vec::new() }; CLASSES.len()];
        PacketBufferPool { free, vacant: Vec::new(), held: 0, limit }
    }

    /// A buffer for a frame of `len` bytes, their values unspecified; `None` where the limit would
    /// be passed or no buffer is that long.
    pub(crate) fn take(&mut self, len: usize) -> Option<PacketBuf> {
        let class = CLASSES.iter().position(|size| len <= *size)?;
        if self.held.saturating_add(charge(CLASSES[class])) > self.limit {
            return None;
        }
        Some(self.lend(class, len))
    }

    /// A buffer that takes the place of another one, which comes back at once: the limit is not
    /// asked.
    pub(crate) fn take_instead(&mut self, len: usize) -> Option<PacketBuf> {
        let class = CLASSES.iter().position(|size| len <= *size)?;
        Some(self.lend(class, len))
    }

    /// A copy of `frame` in a buffer.
    #[inline]
    pub(crate) fn copy(&mut self, frame: &[u8]) -> Option<PacketBuf> {
        let mut buf = self.take(frame.len())?;
        buf.copy_from_slice(frame);
        Some(buf)
    }

    /// A frame of at most `room` bytes, of which `write` says how many it has written; `None` where
    /// it writes none, or where there is no memory.
    pub(crate) fn write(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<PacketBuf> {
        let mut buf = self.take(room)?;
        let Some(len) = write(&mut buf) else {
            self.give(buf);
            return None;
        };
        buf.truncate(len);
        Some(buf)
    }

    /// Takes a buffer back.
    #[inline]
    pub(crate) fn give(&mut self, buf: PacketBuf) {
        self.held = self.held.saturating_sub(buf.capacity());
        if let Some(class) = CLASSES.iter().position(|size| *size == buf.bytes.len()) {
            self.free[class].push(buf.bytes);
        }
    }

    /// A place for a packet.
    #[inline]
    pub(crate) fn house(&mut self, body: PacketDescriptor) -> Box<PacketDescriptor> {
        match self.vacant.pop() {
            Some(mut place) => {
                *place = body;
                place
            }
            None => Box::new(body),
        }
    }

    /// Takes the place of a packet back, whose buffer has been taken.
    #[inline]
    pub(crate) fn vacate(&mut self, place: Box<PacketDescriptor>) {
        self.vacant.push(place);
    }

    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    #[inline]
    fn lend(&mut self, class: usize, len: usize) -> PacketBuf {
        let size = CLASSES[class];
        let bytes = self.free[class].pop().unwrap_or_else(|| vec![0; size].into_boxed_slice());
        self.held += charge(size);
        PacketBuf { bytes, len }
    }
}

/// What a buffer counts as in the account: a small one like an ordinary one, so that the number of
/// packets for which there is room does not depend on what is in them.
fn charge(size: usize) -> u64 {
    bytes64(size.max(ORDINARY))
}

/// A length of memory; on every machine we build for it fits.
pub(crate) fn bytes64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_the_limit_counts_whole_buffers() {
        let mut pool = PacketBufferPool::new(2 * 2048 + 100);
        let first = pool.copy(b"abc").unwrap();
        assert_eq!(&first[..], b"abc");
        let second = pool.take(2048).unwrap();
        assert_eq!(pool.held(), 4096);
        assert!(pool.take(1).is_none());
        let place = first.as_ptr();
        pool.give(first);
        assert_eq!(pool.take(5).unwrap().as_ptr(), place);
        pool.give(second);
        assert!(pool.take(FRAME_LEN_MAX).is_none());
        assert!(PacketBufferPool::new(u64::MAX).take(FRAME_LEN_MAX + 1).is_none());
    }
}
