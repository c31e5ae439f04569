//! One packet socket over all interfaces of the current network namespace.
//!
//! Theory of operation. Frames arrive through a mapped `TPACKET_V2` ring (see [`PacketReceiveRing`]): an
//! unprivileged user namespace cannot exceed `net.core.rmem_max`, but a ring's memory is not
//! socket memory, and each slot carries the kernel's arrival time. That is when the frame's device
//! handed it over, before it waits for a processor to take it further (`SO_TIMESTAMPNS`; without it,
//! the kernel would stamp a frame when it is copied into its slot). Frames leave through
//! `sendmmsg(2)`, which copies them once. Both ways a frame is preceded by the 10 bytes of
//! `struct virtio_net_hdr` (`PACKET_VNET_HDR`), so a 64 KiB GSO packet passes as one object and
//! a checksum may stay unfinished. The socket's own frames are not seen again
//! (`PACKET_IGNORE_OUTGOING`), and sending skips the queueing disciplines
//! (`PACKET_QDISC_BYPASS`), because the caller has already decided when a frame leaves.
//!
//! Source: packet(7), and the kernel's Documentation/networking/packet_mmap.rst.

mod ring;
mod send;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::ffi::{check, set_option, socklen};

pub use ring::{FRAME_BYTES_MAX, PacketReceiveRing, ReceiveRingFrame, SLOTS_MIN};
pub use send::{BATCH_MAX, PacketSender, TransmitFrame};

/// The length of `struct virtio_net_hdr`, which precedes each frame both ways.
pub const VNET_HEADER_BYTES: usize = 10;

/// A nonblocking raw packet socket over every interface of the network namespace in which it was
/// opened. It needs `CAP_NET_RAW` in the user namespace that owns that network namespace.
#[derive(Debug)]
pub struct PacketSocket {
    descriptor: OwnedFd,
    ring: PacketReceiveRing,
    scratch: send::SendBatchBuffers,
}

/// What the kernel counted at the socket since the last [`PacketSocket::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketSocketStatistics {
    /// Frames that reached the socket, those dropped included.
    pub packets: u32,
    /// Frames dropped because no slot of the ring was free.
    pub drops: u32,
}

impl PacketSocket {
    /// Opens the socket with a ring of about `slots` slots (rounded up to whole blocks of
    /// [`SLOTS_MIN`]). While the kernel has no memory for so many, half as many are tried;
    /// [`PacketReceiveRing::slots`] says how many there are in the end. One slot takes 68 KiB of the machine's
    /// memory for as long as the socket lives, and the kernel tries hard before it says no: ask
    /// for a small part of the memory only.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`; `ENOMEM` when not even one block can be had.
    pub fn open(slots: usize) -> io::Result<PacketSocket> {
        PacketSocket::adopt(open_descriptor()?, 0, slots)
    }

    /// As [`PacketSocket::open`], with the descriptor of [`open_deaf`], perhaps of another process, and for
    /// one interface (0: all) of the network namespace in which that was opened. No rights are needed.
    ///
    /// # Errors
    /// `ENODEV` where there is no such interface; `ENOMEM` as [`PacketSocket::open`].
    pub fn adopt(descriptor: OwnedFd, interface: u32, slots: usize) -> io::Result<PacketSocket> {
        let socket = descriptor.as_fd();
        // The order matters: the version and the header size cannot change once a ring exists.
        let version = libc::c_int::try_from(libc::tpacket_versions::TPACKET_V2 as u32)
            .map_err(io::Error::other)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON)?;
        set_option(socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &ON)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &ON)?;
        set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &ON)?;
        let ring = PacketReceiveRing::map(socket, slots)?;
        // Only now may frames come in; before, they would have gone to the socket's own queue.
        bind(socket, interface)?;
        Ok(PacketSocket { descriptor, ring, scratch: send::SendBatchBuffers::new() })
    }

    /// The ring of arrived frames.
    pub fn ring(&self) -> &PacketReceiveRing {
        &self.ring
    }

    /// The ring and the sending side at once, so that frames can be sent out of their slots.
    pub fn split(&mut self) -> (&PacketReceiveRing, PacketSender<'_>) {
        (&self.ring, PacketSender::new(self.descriptor.as_fd(), &mut self.scratch))
    }

    /// Sends frames; see [`PacketSender::send`].
    ///
    /// # Errors
    /// As [`PacketSender::send`].
    pub fn send(&mut self, batch: &[TransmitFrame<'_>]) -> io::Result<usize> {
        self.split().1.send(batch)
    }

    /// Frames and drops since the last call: the kernel's counters start again from zero.
    ///
    /// # Errors
    /// What getsockopt(2) says.
    pub fn statistics(&self) -> io::Result<PacketSocketStatistics> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = socklen::<libc::tpacket_stats>();
        // SAFETY: both pointers are to live values, and `length` is the size of the first.
        let returned = unsafe {
            libc::getsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        check(returned)?;
        Ok(PacketSocketStatistics { packets: stats.tp_packets, drops: stats.tp_drops })
    }

    /// Asks for room for `bytes` of frames on their way out and returns what was granted in the
    /// kernel's own count (which includes its bookkeeping: twice the bytes asked for, at most
    /// twice `net.core.wmem_max` unless the process has `CAP_NET_ADMIN` in the initial
    /// namespace).
    ///
    /// # Errors
    /// What setsockopt(2) says.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<usize> {
        use rustix::net::sockopt;
        if sockopt::set_socket_send_buffer_size_force(&self.descriptor, bytes).is_err() {
            sockopt::set_socket_send_buffer_size(&self.descriptor, bytes)?;
        }
        Ok(sockopt::socket_send_buffer_size(&self.descriptor)?)
    }
}

/// The sending side alone, which receives nothing. Its descriptor can be given to another process.
#[derive(Debug)]
pub struct PacketSendSocket {
    descriptor: OwnedFd,
    scratch: send::SendBatchBuffers,
}

impl PacketSendSocket {
    /// Opens one for the interfaces of the calling thread's network namespace.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`.
    pub fn open() -> io::Result<PacketSendSocket> {
        PacketSendSocket::adopt(open_descriptor()?)
    }

    /// One by the descriptor of [`open_deaf`], perhaps of another process.
    ///
    /// # Errors
    /// What setsockopt(2) says.
    pub fn adopt(descriptor: OwnedFd) -> io::Result<PacketSendSocket> {
        let socket = descriptor.as_fd();
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &ON)?;
        Ok(PacketSendSocket::from(descriptor))
    }

    /// Sends frames; see [`PacketSender::send`].
    ///
    /// # Errors
    /// As [`PacketSender::send`].
    pub fn send(&mut self, batch: &[TransmitFrame<'_>]) -> io::Result<usize> {
        PacketSender::new(self.descriptor.as_fd(), &mut self.scratch).send(batch)
    }
}

impl From<OwnedFd> for PacketSendSocket {
    /// That of another process, which has set its options.
    fn from(descriptor: OwnedFd) -> PacketSendSocket {
        PacketSendSocket { descriptor, scratch: send::SendBatchBuffers::new() }
    }
}

impl AsFd for PacketSendSocket {
    /// For polling: writable when the send buffer has room.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsFd for PacketSocket {
    /// For polling: readable when the newest slot that the kernel filled was not released yet.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A packet socket that receives nothing yet, for [`PacketSocket::adopt`] or [`PacketSendSocket::adopt`].
///
/// # Errors
/// `EPERM` without `CAP_NET_RAW`.
pub fn open_deaf() -> io::Result<OwnedFd> {
    open_descriptor()
}

/// Protocol 0 keeps the socket deaf until it is bound.
fn open_descriptor() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes no pointers.
    let raw = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the kernel has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Binds to an interface; 0: to all.
fn bind(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let interface = i32::try_from(interface).map_err(io::Error::other)?;
    let every_protocol = u16::try_from(libc::ETH_P_ALL).map_err(io::Error::other)?;
    let address = link_address(interface, every_protocol.to_be());
    // SAFETY: the pointer is to a live sockaddr_ll of the given length.
    let returned = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), socklen::<libc::sockaddr_ll>())
    };
    check(returned).map(drop)
}

/// An address of the interface with this index, or of all for 0; the protocol in network order.
fn link_address(interface: i32, protocol_be: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: AF_PACKET_FAMILY,
        sll_protocol: protocol_be,
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

const ON: libc::c_int = 1;

/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h (Linux 4.20).
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

#[expect(clippy::cast_possible_truncation, reason = "the constant is 17")]
const AF_PACKET_FAMILY: u16 = libc::AF_PACKET as u16;
