//! A frame where it lies after it has come.

use std::ops::{Deref, DerefMut};

/// A frame that has come, which may be changed where it lies.
#[derive(Debug)]
pub struct FrameBuffer<'a>(FrameStorage<'a>);

#[derive(Debug)]
enum FrameStorage<'a> {
    /// In the datagram that brought it.
    Datagram(&'a mut [u8]),
    /// In a buffer of its own, where its pieces were put together.
    Joined(&'a mut Vec<u8>),
}

impl<'a> FrameBuffer<'a> {
    pub(crate) fn in_datagram(bytes: &'a mut [u8]) -> Self {
        FrameBuffer(FrameStorage::Datagram(bytes))
    }

    pub(crate) fn joined(bytes: &'a mut Vec<u8>) -> Self {
        FrameBuffer(FrameStorage::Joined(bytes))
    }

    /// Moves the frame to `buffer`, with any content. A reassembled frame is not copied: its buffer
    /// is exchanged for this one, so give one of about its length.
    pub fn move_to(self, buffer: &mut Vec<u8>) {
        match self.0 {
            FrameStorage::Datagram(bytes) => {
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
            FrameStorage::Joined(bytes) => std::mem::swap(bytes, buffer),
        }
    }
}

impl Deref for FrameBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            FrameStorage::Datagram(bytes) => bytes,
            FrameStorage::Joined(bytes) => bytes,
        }
    }
}

impl DerefMut for FrameBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            FrameStorage::Datagram(bytes) => bytes,
            FrameStorage::Joined(bytes) => bytes,
        }
    }
}
