//! A frame where it lies after it has come.

use std::ops::{Deref, DerefMut};

/// A frame that has come, which may be changed where it lies.
#[derive(Debug)]
pub struct Frame<'a>(Place<'a>);

#[derive(Debug)]
enum Place<'a> {
    /// In the datagram that brought it.
    Datagram(&'a mut [u8]),
    /// In a buffer of its own, where its pieces were put together.
    Joined(&'a mut Vec<u8>),
}

impl<'a> Frame<'a> {
    pub(crate) fn in_datagram(bytes: &'a mut [u8]) -> Self {
        Frame(Place::Datagram(bytes))
    }

    pub(crate) fn joined(bytes: &'a mut Vec<u8>) -> Self {
        Frame(Place::Joined(bytes))
    }

    /// Moves the frame to `buffer`, with any content. A reassembled frame is not copied: its buffer
    /// is exchanged for this one, so give one of about its length.
    pub fn move_to(self, buffer: &mut Vec<u8>) {
        match self.0 {
            Place::Datagram(bytes) => {
                buffer.clear();
                buffer.extend_from_slice(bytes);
            }
            Place::Joined(bytes) => std::mem::swap(bytes, buffer),
        }
    }
}

impl Deref for Frame<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Datagram(bytes) => bytes,
            Place::Joined(bytes) => bytes,
        }
    }
}

impl DerefMut for Frame<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Datagram(bytes) => bytes,
            Place::Joined(bytes) => bytes,
        }
    }
}
