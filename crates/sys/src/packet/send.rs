//! Sending frames in batches.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use super::{VNET_HEADER_BYTES, link_address};
use crate::ffi::{check, socklen};

/// The most frames that one call sends.
pub const BATCH_MAX: usize = 64;

/// One frame to send.
#[derive(Clone, Copy, Debug)]
pub struct TransmitFrame<'a> {
    /// The index of the interface out of which it goes.
    pub interface: u32,
    /// `struct virtio_net_hdr`: what is left to segment and to checksum; all zero for nothing.
    pub vnet_header: &'a [u8; VNET_HEADER_BYTES],
    /// The frame from its Ethernet header on.
    pub frame: &'a [u8],
}

/// The sending side of a [`PacketSocket`](super::PacketSocket).
#[derive(Debug)]
pub struct PacketSender<'socket> {
    descriptor: BorrowedFd<'socket>,
    scratch: &'socket mut SendBatchBuffers,
}

/// The arrays that sendmmsg(2) wants, made once so that a call allocates nothing.
pub(super) struct SendBatchBuffers {
    messages: Box<[libc::mmsghdr; BATCH_MAX]>,
    pieces: Box<[[libc::iovec; 2]; BATCH_MAX]>,
    addresses: Box<[libc::sockaddr_ll; BATCH_MAX]>,
}

impl<'socket> PacketSender<'socket> {
    pub(super) fn new(
        descriptor: BorrowedFd<'socket>,
        scratch: &'socket mut SendBatchBuffers,
    ) -> Self {
        PacketSender { descriptor, scratch }
    }

    /// Hands the first [`BATCH_MAX`] frames to their interfaces, in order, and returns how many
    /// went: fewer than given when the next one met an error, which the next call then returns.
    ///
    /// # Errors
    /// That of the first frame: `EAGAIN` when the send buffer is full, `ENOBUFS` when the device
    /// dropped the frame, `ENETDOWN` when the interface is down, `ENXIO` when it is gone,
    /// `EINVAL` for a frame or header that makes no sense, `EMSGSIZE` for one above the MTU
    /// (GSO packets excepted).
    pub fn send(&mut self, batch: &[TransmitFrame<'_>]) -> io::Result<usize> {
        let count = batch.len().min(BATCH_MAX);
        if count == 0 {
            return Ok(0);
        }
        for (index, outgoing) in batch.iter().take(count).enumerate() {
            self.scratch.fill(index, outgoing);
        }
        let length = libc::c_uint::try_from(count).expect("at most 64");
        let messages = self.scratch.messages.as_mut_ptr();
        // SAFETY: the first `count` messages were filled above; what they point to lives in the
        // scratch arrays and in `batch`, both borrowed for the whole call.
        let sent = unsafe { libc::sendmmsg(self.descriptor.as_raw_fd(), messages, length, 0) };
        check(sent).map(|sent| usize::try_from(sent).expect("checked not to be negative"))
    }
}

impl AsFd for PacketSender<'_> {
    /// For polling: writable when the send buffer has room.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor
    }
}

impl SendBatchBuffers {
    pub(super) fn new() -> SendBatchBuffers {
        let piece = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: every field of a mmsghdr is a number or a pointer, and zero is valid for each.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        SendBatchBuffers {
            messages: Box::new([message; BATCH_MAX]),
            pieces: Box::new([[piece; 2]; BATCH_MAX]),
            addresses: Box::new([link_address(0, 0); BATCH_MAX]),
        }
    }

    fn fill(&mut self, index: usize, outgoing: &TransmitFrame<'_>) {
        // An index beyond i32 names no interface, and neither does -1: the kernel says ENXIO.
        let interface = i32::try_from(outgoing.interface).unwrap_or(-1);
        let protocol = outgoing.frame.get(ETHERTYPE).and_then(|bytes| bytes.first_chunk::<2>());
        // Kept in network order, as in the frame.
        let protocol = protocol.map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        self.addresses[index] = link_address(interface, protocol);
        self.pieces[index] = [piece(outgoing.vnet_header), piece(outgoing.frame)];
        let header = &mut self.messages[index].msg_hdr;
        header.msg_name = (&raw mut self.addresses[index]).cast();
        header.msg_namelen = socklen::<libc::sockaddr_ll>();
        header.msg_iov = self.pieces[index].as_mut_ptr();
        header.msg_iovlen = 2;
    }
}

// SAFETY: the pointers inside are written anew by each call and read by that call only.
unsafe impl Send for SendBatchBuffers {}

impl fmt::Debug for SendBatchBuffers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// The kernel only reads what it sends, for all that C's type says.
fn piece(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Where an Ethernet frame says what it carries.
const ETHERTYPE: std::ops::Range<usize> = 12..14;
