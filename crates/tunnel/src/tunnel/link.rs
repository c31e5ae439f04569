//! The socket: batches out by UDP GSO, batches in by GRO and `recvmmsg(2)`.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt;
use windtunnel_sys::poll::{self, PollFd, PollFlags};

use crate::members::{DatagramCarrier, DatagramCarrierRefusal};

/// Bytes that are asked for on either side of the socket; an ordinary user gets `net.core.rmem_max`
/// and `wmem_max` at the most.
const BUFFER_BYTES: usize = 16 << 20;
/// How often is waited between two rests, each time for up to [`WAIT`].
const WAITS_MAX: u32 = 5;
const WAIT: Duration = Duration::from_millis(1);

/// The socket's buffer sizes as the kernel counts them, which includes its bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// For datagrams that have arrived and are not yet read.
    pub receive: usize,
    /// For datagrams that are sent and have not yet left.
    pub send: usize,
}

pub(super) struct TunnelSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    waits: u32,
}

impl TunnelSocket {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&socket, BUFFER_BYTES).is_err() {
            sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES)?;
        }
        Ok(TunnelSocket { socket, state, waits: 0 })
    }

    pub(super) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> io::Result<usize> {
        self.state.recv((&self.socket).into(), buffers, metas)
    }

    pub(super) fn buffers(&self) -> io::Result<Buffers> {
        Ok(Buffers {
            receive: sockopt::socket_recv_buffer_size(&self.socket)?,
            send: sockopt::socket_send_buffer_size(&self.socket)?,
        })
    }

    /// From here on it may wait again.
    pub(super) fn rest(&mut self) {
        self.waits = 0;
    }

    fn send(
        &mut self,
        destination: SocketAddr,
        contents: &[u8],
        size: usize,
        patience: bool,
    ) -> Result<(), DatagramCarrierRefusal> {
        let segment_size = (contents.len() > size).then_some(size);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !patience || self.waits == WAITS_MAX {
                        return Err(DatagramCarrierRefusal::Blocked);
                    }
                    self.wait();
                }
                Err(error) => {
                    let too_big = Errno::from_io_error(&error) == Some(Errno::MSGSIZE);
                    return Err(if too_big {
                        DatagramCarrierRefusal::TooBig
                    } else {
                        DatagramCarrierRefusal::Failed
                    });
                }
            }
        }
    }

    /// The kernel's send buffer is full, and a packet should not be lost to that.
    fn wait(&mut self) {
        self.waits += 1;
        let mut watched = [PollFd::new(&self.socket, PollFlags::OUT)];
        // Any error shows again at the next send.
        let _: io::Result<usize> = poll::wait(&mut watched, Some(WAIT));
    }
}

impl DatagramCarrier for TunnelSocket {
    fn carry(
        &mut self,
        to: SocketAddr,
        bytes: &[u8],
        size: usize,
        patience: bool,
    ) -> Result<(), DatagramCarrierRefusal> {
        let before = self.state.max_gso_segments();
        if before > 1 || bytes.len() <= size {
            match self.send(to, bytes, size, patience) {
                // A device without checksums for GSO: from now on each datagram is sent by itself.
                Err(DatagramCarrierRefusal::Failed) if self.state.max_gso_segments() < before => {}
                outcome => return outcome,
            }
        }
        bytes.chunks(size).try_for_each(|datagram| self.send(to, datagram, size, patience))
    }
}

impl AsFd for TunnelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
