//! Frames for one peer, packed into datagrams of one size that lie one behind the other, as UDP GSO
//! wants them.

use windtunnel_wire::tunnel::{FrameFragment, HEADER_LEN, Label};

/// Datagrams of one GSO send at the most (`UDP_MAX_SEGMENTS` of older kernels).
const DATAGRAMS_MAX: usize = 64;
/// Bytes of one send at the most: the payload of an IP packet of 65 535 bytes with IPv6 and UDP
/// headers.
pub(crate) const BYTES_MAX: usize = 65_487;

/// A row of datagrams that is being filled. Each has room for its header in front and a tag behind.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Bytes of a datagram, but for the last.
    size: usize,
    tag: usize,
    /// Where the open datagram begins.
    start: usize,
    /// Where the next piece goes.
    at: usize,
    /// Frames that end in the batch.
    frames: u64,
}

impl Batch {
    /// An empty batch of datagrams of `size` bytes that end with `tag` bytes for a seal.
    pub(crate) fn new(size: usize, tag: usize) -> Self {
        // Zeroed memory of this size is taken from the system only where it is written to.
        let bytes = vec![0; BYTES_MAX];
        Batch { bytes, size, tag, start: 0, at: HEADER_LEN, frames: 0 }
    }

    /// Adds as much of `frame` from `offset` on as the open datagram holds, and returns how much.
    /// Zero: it is full.
    pub(crate) fn add(&mut self, number: u32, label: &Label, frame: &[u8], offset: usize) -> usize {
        let end = self.start + self.size - self.tag;
        let room = self.bytes.get_mut(self.at..end).unwrap_or_default();
        let Some((written, taken)) = FrameFragment::write(number, label, frame, offset, room)
        else {
            return 0;
        };
        self.at += written;
        self.frames += u64::from(offset + taken == frame.len());
        taken
    }

    /// Whether the open datagram has something in it.
    pub(crate) fn is_open(&self) -> bool {
        self.at > self.start + HEADER_LEN
    }

    /// Ends the open datagram and returns it, its header and tag still to be written. With `more`
    /// to follow it is filled up with zeros, as all but the last are of one size.
    pub(crate) fn close(&mut self, more: bool) -> &mut [u8] {
        let end = self.start + self.size;
        if more {
            self.bytes[self.at..end - self.tag].fill(0);
            self.at = end - self.tag;
        }
        let (start, end) = (self.start, self.at + self.tag);
        (self.start, self.at) = (end, end + HEADER_LEN);
        &mut self.bytes[start..end]
    }

    /// Whether no datagram can follow those that are closed.
    pub(crate) fn is_full(&self) -> bool {
        self.start + self.size > BYTES_MAX || self.start / self.size >= DATAGRAMS_MAX
    }

    /// The closed datagrams, and the size of all but the last.
    pub(crate) fn closed(&self) -> (&[u8], usize) {
        (&self.bytes[..self.start], self.size)
    }

    /// Frames that end here.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Begins again, with datagrams of `size` bytes.
    pub(crate) fn reset(&mut self, size: usize) {
        (self.size, self.start, self.at) = (size.min(BYTES_MAX), 0, HEADER_LEN);
        self.frames = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { port: 1, lane: 2, intended: 3, vnet: [0; 10] };

    #[test]
    fn all_datagrams_but_the_last_are_of_one_size() {
        let mut batch = Batch::new(200, 16);
        // 200 - 24 - 16 = 160 bytes of payload, 38 of them before a frame's first byte.
        assert_eq!(batch.add(0, &LABEL, &[7; 100], 0), 100);
        assert_eq!(batch.add(1, &LABEL, &[8; 100], 0), 0, "22 bytes are left");
        let first = batch.close(true);
        assert_eq!(first.len(), 200);
        assert_eq!(first[162..184], [0; 22], "padding");
        assert_eq!(batch.add(1, &LABEL, &[8; 130], 0), 122);
        assert_eq!(batch.close(true).len(), 200);
        assert_eq!(batch.add(1, &LABEL, &[8; 130], 122), 8);
        assert!(batch.is_open());
        assert_eq!(batch.close(false).len(), 24 + 12 + 8 + 16);
        assert!(!batch.is_open());
        assert_eq!(batch.closed().0.len(), 460);
        assert_eq!(batch.frames(), 2);
    }

    #[test]
    fn a_batch_ends_with_64_datagrams_or_what_ip_carries() {
        for (size, datagrams) in [(1000, 64), (1472, 44), (32_000, 2), (65_487, 1)] {
            let mut batch = Batch::new(1000, 0);
            batch.reset(size);
            let mut closed = 0;
            while !batch.is_full() {
                batch.close(true);
                closed += 1;
            }
            assert_eq!(closed, datagrams, "{size}");
            assert!(batch.closed().0.len() <= BYTES_MAX);
        }
    }
}
